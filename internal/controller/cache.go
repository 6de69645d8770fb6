package controller

import (
	"maps"
	"regexp"
	"runtime"
	"slices"
	"sync"
	"unique"
	"weak"

	configv1 "github.com/openshift/api/config/v1"
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

	"github.com/cldmnky/oooi/internal/clusterapi"
	"github.com/cldmnky/oooi/internal/dpf"
	"github.com/cldmnky/oooi/internal/kept"
	"github.com/cldmnky/oooi/internal/kubelet"
	"github.com/cldmnky/oooi/internal/managedfields"
	"github.com/cldmnky/oooi/internal/nad"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/plan/bridge"
	"github.com/cldmnky/oooi/internal/plan/workload"
)

// oursOnly are kinds of which every cluster has many: the cache keeps only objects with our label.
var oursOnly = []client.Object{
	&corev1.ConfigMap{}, &corev1.ServiceAccount{}, &appsv1.Deployment{}, &appsv1.StatefulSet{}, &policyv1.PodDisruptionBudget{}, &rbacv1.Role{}, &rbacv1.RoleBinding{},
	&corev1.Pod{},
}

// partial is oursOnly as a set.
func partial(scheme *apiruntime.Scheme) map[schema.GroupKind]bool {
	all := map[schema.GroupKind]bool{}
	for _, kind := range oursOnly {
		gvk, err := apiutil.GVKForObject(kind, scheme)
		utilruntime.Must(err)
		all[gvk.GroupKind()] = true
	}
	return all
}

// CacheOptions limit the cache to what is read.
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
	byObject[&appsv1.DaemonSet{}] = cache.ByObject{Namespaces: map[string]cache.Config{
		bridge.HostOVN.Namespace: {FieldSelector: fields.OneTermEqualSelector("metadata.name", bridge.HostOVN.Name)},
	}}
	return cache.Options{DefaultTransform: trim, ByObject: byObject}
}

// mostBootstrap is the size in octets up to which an Envoy bootstrap is kept; ours takes a few thousand.
const mostBootstrap = 16 << 10

// trim drops what is not read: managedFields except what shows that others changed what we applied, and the content of our own objects.
func trim(o any) (any, error) {
	object, ok := o.(client.Object)
	if !ok {
		return o, nil
	}
	if node, is := o.(*corev1.Node); is { // a cluster may have a thousand Nodes
		meta := metav1.ObjectMeta{Name: node.Name, UID: node.UID, ResourceVersion: node.ResourceVersion}
		return &corev1.Node{ObjectMeta: meta, Spec: corev1.NodeSpec{PodCIDRs: node.Spec.PodCIDRs}, Status: reached(node.Status)}, nil
	}
	if machine, is := o.(*clusterapi.Machine); is {
		return kept.Of(machine.Trimmed()), nil
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
	case *appsv1.DaemonSet: // scripts are long
		of.Annotations = map[string]string{bridge.AnnotationHostRelease: of.Annotations[bridge.AnnotationHostRelease]}
		of.Spec = appsv1.DaemonSetSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: imagesOf(of.Spec.Template.Spec.Containers)}}}
	case *configv1.ClusterVersion: // so are the updates that it offers
		of.Spec, of.Status = configv1.ClusterVersionSpec{}, configv1.ClusterVersionStatus{Desired: configv1.Release{Architecture: of.Status.Desired.Architecture, Image: of.Status.Desired.Image}}
	case *corev1.Service: // OVN-Kubernetes and kubectl write large ones
		of.Annotations = nil
	case *networkingv1.NetworkPolicy: // its rules are not read
		of.Annotations = nil
		of.Spec = networkingv1.NetworkPolicySpec{PodSelector: of.Spec.PodSelector, PolicyTypes: of.Spec.PolicyTypes}
	case *discoveryv1.EndpointSlice: // the proxy itself reads the endpoints; here only ports are read
		of.Annotations, of.OwnerReferences, of.Endpoints = nil, nil, nil
	case *routev1.Route: // certificates are not read, and may include a private key
		of.Annotations = nil
		of.Spec = routev1.RouteSpec{Host: of.Spec.Host, To: of.Spec.To, Port: of.Spec.Port}
		of.Status = routev1.RouteStatus{Ingress: given(of.Status.Ingress)}
	}
}

func trimOurs(object client.Object) {
	object.SetManagedFields(telling(object.GetManagedFields()))
	intern(object)
	switch of := object.(type) {
	case *corev1.ConfigMap: // the bootstrap that a proxy's pods read may have to stay
		of.BinaryData = nil
		if text, is := of.Data[dpf.TemplateKey]; is && of.Labels[names.LabelBridgeTemplate] != "" {
			of.Data = map[string]string{dpf.TemplateKey: bridge.TemplateDigest(text)}
			break
		}
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
		if of.Labels[names.LabelPulls] != "" { // our image-pulling pods: their status says of each image whether it is there
			break
		}
		of.SetAnnotations(nil)
		of.Spec, of.Status = corev1.PodSpec{NodeName: of.Spec.NodeName}, standing(of.Status)
	}
}

// imagesOf keeps the names and images of containers.
func imagesOf(all []corev1.Container) (images []corev1.Container) {
	for _, c := range all {
		images = append(images, corev1.Container{Name: c.Name, Image: c.Image})
	}
	return images
}

// given keeps only the names that routers gave a Route.
func given(all []routev1.RouteIngress) (names []routev1.RouteIngress) {
	for _, i := range all {
		names = append(names, routev1.RouteIngress{Host: i.Host, RouterName: i.RouterName, RouterCanonicalHostname: i.RouterCanonicalHostname})
	}
	return names
}

// standing keeps whether a pod is Ready and, if it is not, what is known of the cause.
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

// reached keeps a Node's addresses, its Ready condition and its devices.
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

// telling keeps our own entry, and a marker while others have added fields; what they added is read when it is removed.
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

// sharedSets keeps one copy of each field set while any object uses it: what we apply of one kind differs between Infras in values, seldom in
// fields.
type sharedSets struct{ sync.Map }

var fieldSets sharedSets

// shared returns the common copy. Of a field set only the ownerReference's key contains the owner's UID, and is blanked; apply.Owner checks
// the reference itself.
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
		s.CompareAndDelete(text, other) // it is collected, and its cleanup has not run yet
	}
}

// ownerKey matches the key of a metadata.ownerReferences entry as FieldsV1 writes it (meta/v1, FieldsV1).
var ownerKey = regexp.MustCompile(`"k:\{\\"uid\\":\\"[^\\"]*\\"\}"`)

// intern keeps one copy of each string that the objects of one Infra, or of all Infras, share.
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
