package controller

import (
	"maps"
	"regexp"
	"runtime"
	"slices"
	"sync"
	"unique"
	"weak"

	routev1 "github.com/openshift/api/route/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/cldmnky/oooi/internal/kept"
	"github.com/cldmnky/oooi/internal/kubelet"
	"github.com/cldmnky/oooi/internal/managedfields"
	"github.com/cldmnky/oooi/internal/nad"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/plan/workload"
)

// oursOnly are kinds that every cluster has many of: only those with our label are kept in memory.
var oursOnly = []client.Object{
	&corev1.ConfigMap{}, &corev1.ServiceAccount{}, &appsv1.Deployment{}, &appsv1.StatefulSet{}, &policyv1.PodDisruptionBudget{}, &rbacv1.Role{}, &rbacv1.RoleBinding{},
	&corev1.Pod{},
}

// partial names them.
func partial(scheme *apiruntime.Scheme) map[schema.GroupKind]bool {
	all := map[schema.GroupKind]bool{}
	for _, kind := range oursOnly {
		gvk, err := apiutil.GVKForObject(kind, scheme)
		utilruntime.Must(err)
		all[gvk.GroupKind()] = true
	}
	return all
}

// CacheOptions keep in memory what is read, and no more.
func CacheOptions() cache.Options {
	ours := labels.SelectorFromSet(labels.Set{names.LabelManagedBy: names.ManagedBy})
	byObject := map[client.Object]cache.ByObject{}
	for _, kind := range oursOnly {
		byObject[kind] = cache.ByObject{Label: ours}
		if _, is := kind.(*corev1.ConfigMap); is {
			byObject[kind] = cache.ByObject{Namespaces: map[string]cache.Config{
				cache.AllNamespaces:           {LabelSelector: ours},
				nad.SysctlAllowlist.Namespace: {FieldSelector: fields.OneTermEqualSelector("metadata.name", nad.SysctlAllowlist.Name)},
			}}
		}
	}
	return cache.Options{DefaultTransform: trim, ByObject: byObject}
}

// mostBootstrap is how many octets of Envoy's bootstrap are kept: ours has some thousand.
const mostBootstrap = 16 << 10

// trim drops what nobody reads: of managedFields all but what tells whether somebody changed what we applied; of objects of ours their content, which we made.
func trim(o any) (any, error) {
	object, ok := o.(client.Object)
	if !ok {
		return o, nil
	}
	if node, is := o.(*corev1.Node); is { // a cluster may have a thousand
		meta := metav1.ObjectMeta{Name: node.Name, UID: node.UID, ResourceVersion: node.ResourceVersion}
		return &corev1.Node{ObjectMeta: meta, Spec: corev1.NodeSpec{PodCIDRs: node.Spec.PodCIDRs}, Status: reached(node.Status)}, nil
	}
	if object.GetLabels()[names.LabelManagedBy] == names.ManagedBy {
		trimOurs(object)
	} else {
		trimOthers(object)
	}
	return kept.Of(object), nil
}

func trimOthers(object client.Object) {
	object.SetManagedFields(nil)
	switch of := object.(type) {
	case *corev1.Service: // OVN-Kubernetes and kubectl write much there
		of.Annotations = nil
	case *networkingv1.NetworkPolicy: // whom it lets in nobody reads
		of.Annotations = nil
		of.Spec = networkingv1.NetworkPolicySpec{PodSelector: of.Spec.PodSelector, PolicyTypes: of.Spec.PolicyTypes}
	case *discoveryv1.EndpointSlice: // which pods are behind a Service the proxy knows; here its ports count
		of.Annotations, of.OwnerReferences, of.Endpoints = nil, nil, nil
	case *routev1.Route: // certificates are read by nobody, and a private key may be among them
		of.Annotations = nil
		of.Spec = routev1.RouteSpec{Host: of.Spec.Host, To: of.Spec.To, Port: of.Spec.Port}
		of.Status = routev1.RouteStatus{Ingress: given(of.Status.Ingress)}
	}
}

func trimOurs(object client.Object) {
	object.SetManagedFields(telling(object.GetManagedFields()))
	intern(object)
	switch of := object.(type) {
	case *corev1.ConfigMap: // of a proxy what its pods read may have to stay
		of.BinaryData = nil
		maps.DeleteFunc(of.Data, func(key, text string) bool { return key != workload.BootstrapKey || len(text) > mostBootstrap })
	case *rbacv1.Role:
		of.Rules = nil
	case *rbacv1.RoleBinding:
		of.Subjects = nil
	case *networkingv1.NetworkPolicy:
		of.Spec = networkingv1.NetworkPolicySpec{}
	case *policyv1.PodDisruptionBudget:
		of.Spec, of.Status = policyv1.PodDisruptionBudgetSpec{}, policyv1.PodDisruptionBudgetStatus{}
	case *appsv1.Deployment:
		of.Spec = appsv1.DeploymentSpec{Replicas: of.Spec.Replicas}
	case *appsv1.StatefulSet:
		of.Spec = appsv1.StatefulSetSpec{Replicas: of.Spec.Replicas}
	case *corev1.Pod:
		if of.Labels[names.LabelPulls] != "" { // these we make, and they say of each image whether it is there
			break
		}
		of.SetAnnotations(nil)
		of.Spec, of.Status = corev1.PodSpec{NodeName: of.Spec.NodeName}, standing(of.Status)
	}
}

// given are the names that routers gave a Route.
func given(all []routev1.RouteIngress) (names []routev1.RouteIngress) {
	for _, i := range all {
		names = append(names, routev1.RouteIngress{Host: i.Host, RouterName: i.RouterName, RouterCanonicalHostname: i.RouterCanonicalHostname})
	}
	return names
}

// standing is whether a pod is Ready, and if not, what is known of why.
func standing(s corev1.PodStatus) corev1.PodStatus {
	out := corev1.PodStatus{}
	for _, c := range s.Conditions {
		switch {
		case c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue:
			return corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: c.Type, Status: c.Status}}}
		case c.Type == corev1.PodReady || c.Type == corev1.PodScheduled:
			out.Conditions = append(out.Conditions, corev1.PodCondition{Type: c.Type, Status: c.Status, Message: c.Message})
		}
	}
	for _, c := range s.InitContainerStatuses {
		out.InitContainerStatuses = append(out.InitContainerStatuses, corev1.ContainerStatus{Name: c.Name, State: c.State, LastTerminationState: c.LastTerminationState})
	}
	for _, c := range s.ContainerStatuses {
		out.ContainerStatuses = append(out.ContainerStatuses, corev1.ContainerStatus{Name: c.Name, State: c.State, LastTerminationState: c.LastTerminationState})
	}
	return out
}

// reached is how and whether a Node can be, and the devices that it has.
func reached(s corev1.NodeStatus) corev1.NodeStatus {
	var out corev1.NodeStatus
	for _, a := range s.Addresses {
		if a.Type == corev1.NodeExternalIP || a.Type == corev1.NodeInternalIP {
			out.Addresses = append(out.Addresses, a)
		}
	}
	for _, c := range s.Conditions {
		if c.Type == corev1.NodeReady {
			out.Conditions = []corev1.NodeCondition{{Type: c.Type, Status: c.Status, LastTransitionTime: c.LastTransitionTime}}
		}
	}
	out.Allocatable = kubelet.Devices(s.Allocatable)
	return out
}

// telling are our own entry, and one of who added something, until it is taken away: what that is, is read then.
func telling(all []metav1.ManagedFieldsEntry) (told []metav1.ManagedFieldsEntry) {
	if i := slices.IndexFunc(all, applied); i >= 0 && all[i].FieldsV1 != nil {
		ours := all[i]
		ours.FieldsV1, ours.Time = fieldSets.shared(ours.FieldsV1), nil
		told = append(told, ours)
	}
	if slices.ContainsFunc(all, managedfields.Adds) {
		told = append(told, managedfields.Addition)
	}
	return told
}

func applied(e metav1.ManagedFieldsEntry) bool {
	return e.Manager == names.ManagerFieldOwner && e.Subresource == "" && e.Operation == metav1.ManagedFieldsOperationApply
}

// sharedSets are sets of fields of which there is one copy, as long as any object has it: what we apply of one kind differs from Infra to
// Infra in values, seldom in fields.
type sharedSets struct{ sync.Map }

var fieldSets sharedSets

// shared is the one copy. Only the key of the ownerReference has the owner's UID in it; that it is the owner's, apply.Owner sees by the
// reference itself.
func (s *sharedSets) shared(f *metav1.FieldsV1) *metav1.FieldsV1 {
	text := ownerKey.ReplaceAllString(f.GetRawString(), `"k:{}"`)
	fresh := metav1.NewFieldsV1(text)
	mine := weak.Make(fresh)
	for {
		other, there := s.LoadOrStore(text, mine)
		if !there {
			runtime.AddCleanup(fresh, func(text string) { s.CompareAndDelete(text, mine) }, text)
			return fresh
		}
		if kept := other.(weak.Pointer[metav1.FieldsV1]).Value(); kept != nil {
			return kept
		}
		s.CompareAndDelete(text, other) // nobody has it any more, and its cleanup is to come
	}
}

// ownerKey of a metadata.ownerReferences entry, as FieldsV1 writes it (meta/v1, FieldsV1).
var ownerKey = regexp.MustCompile(`"k:\{\\"uid\\":\\"[^\\"]*\\"\}"`)

// intern keeps one copy of each text that the objects of one Infra, or of all, have in common.
func intern(object client.Object) {
	labels, annotations := map[string]string{}, map[string]string{}
	for key, value := range object.GetLabels() {
		labels[one(key)] = one(value)
	}
	for key, value := range object.GetAnnotations() {
		annotations[one(key)] = value
	}
	owners := object.GetOwnerReferences()
	for i, o := range owners {
		owners[i].APIVersion, owners[i].Kind, owners[i].Name, owners[i].UID = one(o.APIVersion), one(o.Kind), one(o.Name), one(o.UID)
	}
	object.SetLabels(labels)
	object.SetAnnotations(annotations)
	object.SetOwnerReferences(owners)
}

func one[T ~string](text T) T { return unique.Make(text).Value() }
