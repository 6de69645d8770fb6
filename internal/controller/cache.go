package controller

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/observe"
)

// CacheOptions keep in memory what is needed: of kinds that every cluster has many of, only ours; of managedFields, only
// our own entry, which tells whether somebody changed what we applied.
func CacheOptions() cache.Options {
	ours := labels.SelectorFromSet(labels.Set{names.LabelManagedBy: names.ManagedBy})
	byObject := map[client.Object]cache.ByObject{
		&corev1.ConfigMap{}: {Namespaces: map[string]cache.Config{
			cache.AllNamespaces:               {LabelSelector: ours},
			observe.SysctlAllowlist.Namespace: {FieldSelector: fields.OneTermEqualSelector("metadata.name", observe.SysctlAllowlist.Name)},
		}},
	}
	for _, kind := range []client.Object{
		&corev1.ServiceAccount{}, &appsv1.Deployment{}, &appsv1.StatefulSet{}, &policyv1.PodDisruptionBudget{}, &rbacv1.Role{}, &rbacv1.RoleBinding{},
	} {
		byObject[kind] = cache.ByObject{Label: ours}
	}
	return cache.Options{DefaultTransform: trim, ByObject: byObject}
}

func trim(o any) (any, error) {
	if object, ok := o.(client.Object); ok {
		object.SetManagedFields(slices.DeleteFunc(object.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool {
			return e.Manager != names.ManagerFieldOwner || e.Subresource != ""
		}))
	}
	return o, nil
}
