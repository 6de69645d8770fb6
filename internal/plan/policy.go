package plan

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	acmeta "k8s.io/client-go/applyconfigurations/meta/v1"
	acnetworking "k8s.io/client-go/applyconfigurations/networking/v1"

	"github.com/cldmnky/oooi/internal/names"
)

// podSet is what one NetworkPolicy opens: pods that Services of endpoints select, and the pod ports behind those.
type podSet struct {
	name     string // of its first Service
	selector map[string]string
	ports    []int32
}

// policies let the proxy reach each backend in the control plane's namespace: HyperShift's own policies keep pods of other
// namespaces from all but the API. One is made only where another already selects the pods: the first policy on a pod
// would shut everybody else out.
func (v *view) policies(child string) []runtime.ApplyConfiguration {
	var all []runtime.ApplyConfiguration
	for _, set := range v.podSets() {
		if len(set.ports) > 0 && v.isolated(set.selector) {
			all = append(all, v.policy(child, set))
		}
	}
	return all
}

func (v *view) podSets() []podSet {
	var sets []podSet
	for _, e := range v.table.Endpoints {
		s := v.serviceOf(e.Backend.Namespace, e.Backend.Service)
		if s == nil || len(s.Spec.Selector) == 0 {
			continue
		}
		i := slices.IndexFunc(sets, func(set podSet) bool { return maps.Equal(set.selector, s.Spec.Selector) })
		if i < 0 {
			i, sets = len(sets), append(sets, podSet{name: s.Name, selector: s.Spec.Selector})
		}
		sets[i].ports = append(sets[i].ports, v.behind(s, e.Backend.Port)...)
		slices.Sort(sets[i].ports)
		sets[i].ports = slices.Compact(sets[i].ports)
	}
	return sets
}

// serviceOf finds a Service of the control plane's namespace.
func (v *view) serviceOf(namespace, name string) *corev1.Service {
	for i := range v.Services {
		if s := &v.Services[i]; s.Namespace == namespace && s.Name == name && namespace == v.ControlPlaneNamespace() {
			return s
		}
	}
	return nil
}

// behind are the pods' ports behind one port of a Service.
func (v *view) behind(s *corev1.Service, number int32) []int32 {
	at := slices.IndexFunc(s.Spec.Ports, func(p corev1.ServicePort) bool { return p.Port == number })
	if at < 0 {
		return nil
	}
	return listening(s, s.Spec.Ports[at], v.EndpointSlices)
}

// isolated says whether somebody else's ingress policy selects the pods that a Service selects.
func (v *view) isolated(pods map[string]string) bool {
	return slices.ContainsFunc(v.NetworkPolicies, func(p networkingv1.NetworkPolicy) bool {
		if p.Namespace != v.ControlPlaneNamespace() || p.Labels[names.LabelManagedBy] == names.ManagedBy || !forIngress(p) {
			return false
		}
		selector, err := metav1.LabelSelectorAsSelector(&p.Spec.PodSelector)
		return err == nil && selector.Matches(labels.Set(pods))
	})
}

func forIngress(p networkingv1.NetworkPolicy) bool {
	return len(p.Spec.PolicyTypes) == 0 || slices.Contains(p.Spec.PolicyTypes, networkingv1.PolicyTypeIngress)
}

func (v *view) policy(child string, set podSet) runtime.ApplyConfiguration {
	from := acnetworking.NetworkPolicyPeer().
		WithNamespaceSelector(acmeta.LabelSelector().WithMatchLabels(map[string]string{corev1.LabelMetadataName: v.Infra.Namespace})).
		WithPodSelector(acmeta.LabelSelector().WithMatchLabels(map[string]string{names.LabelApp: "proxy", names.LabelInstance: child}))
	rule := acnetworking.NetworkPolicyIngressRule().WithFrom(from)
	for _, port := range set.ports {
		rule.WithPorts(acnetworking.NetworkPolicyPort().WithProtocol(corev1.ProtocolTCP).WithPort(intstr.FromInt32(port)))
	}
	return acnetworking.NetworkPolicy(names.Qualified(v.Infra.Namespace, child)+"."+set.name, v.ControlPlaneNamespace()).WithLabels(v.labels()).
		WithSpec(acnetworking.NetworkPolicySpec().WithPolicyTypes(networkingv1.PolicyTypeIngress).
			WithPodSelector(acmeta.LabelSelector().WithMatchLabels(set.selector)).WithIngress(rule))
}
