package children

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
	"github.com/cldmnky/oooi/internal/plan/apps"
	"github.com/cldmnky/oooi/internal/plan/desired"
)

// podSet is what one NetworkPolicy opens: the pods that Services of endpoints select, and the target ports.
type podSet struct {
	name     string // of the first Service
	selector map[string]string
	ports    []int32
}

// policies let the proxy reach each backend in the control-plane namespace, where HyperShift's own policies allow pods of other namespaces
// only the API. A policy is made only if another one already selects the pods: the first one would isolate them from everybody else.
func policies(in apps.Published, child string) []runtime.ApplyConfiguration {
	var all []runtime.ApplyConfiguration
	for _, set := range podSets(in) {
		if len(set.ports) > 0 && isolated(in, set.selector) {
			all = append(all, policy(in, child, set))
		}
	}
	return all
}

func podSets(in apps.Published) []podSet {
	var sets []podSet
	for _, e := range in.Table.Endpoints {
		s := serviceOf(in, e.Backend.Namespace, e.Backend.Service)
		if s == nil || len(s.Spec.Selector) == 0 {
			continue
		}
		i := slices.IndexFunc(sets, func(set podSet) bool { return maps.Equal(set.selector, s.Spec.Selector) })
		if i < 0 {
			i, sets = len(sets), append(sets, podSet{name: s.Name, selector: s.Spec.Selector})
		}
		sets[i].ports = append(sets[i].ports, behind(in, s, e.Backend.Port)...)
		slices.Sort(sets[i].ports)
		sets[i].ports = slices.Compact(sets[i].ports)
	}
	return sets
}

func serviceOf(in apps.Published, namespace, name string) *corev1.Service {
	for i := range in.Services {
		if s := &in.Services[i]; s.Namespace == namespace && s.Name == name && namespace == in.ControlPlaneNamespace() {
			return s
		}
	}
	return nil
}

func behind(in apps.Published, s *corev1.Service, number int32) []int32 {
	at := slices.IndexFunc(s.Spec.Ports, func(p corev1.ServicePort) bool { return p.Port == number })
	if at < 0 {
		return nil
	}
	return desired.Listening(s, s.Spec.Ports[at], in.EndpointSlices)
}

// isolated says whether an ingress policy that is not ours selects the pods of a Service.
func isolated(in apps.Published, pods map[string]string) bool {
	return slices.ContainsFunc(in.NetworkPolicies, func(p networkingv1.NetworkPolicy) bool {
		if p.Namespace != in.ControlPlaneNamespace() || p.Labels[names.LabelManagedBy] == names.ManagedBy || !forIngress(p) {
			return false
		}
		selector, err := metav1.LabelSelectorAsSelector(&p.Spec.PodSelector)
		return err == nil && selector.Matches(labels.Set(pods))
	})
}

func forIngress(p networkingv1.NetworkPolicy) bool {
	return len(p.Spec.PolicyTypes) == 0 || slices.Contains(p.Spec.PolicyTypes, networkingv1.PolicyTypeIngress)
}

func policy(in apps.Published, child string, set podSet) runtime.ApplyConfiguration {
	from := acnetworking.NetworkPolicyPeer().
		WithNamespaceSelector(acmeta.LabelSelector().WithMatchLabels(map[string]string{corev1.LabelMetadataName: in.Infra.Namespace})).
		WithPodSelector(acmeta.LabelSelector().WithMatchLabels(map[string]string{names.LabelApp: "proxy", names.LabelInstance: child}))
	rule := acnetworking.NetworkPolicyIngressRule().WithFrom(from)
	for _, port := range set.ports {
		rule.WithPorts(acnetworking.NetworkPolicyPort().WithProtocol(corev1.ProtocolTCP).WithPort(intstr.FromInt32(port)))
	}
	return acnetworking.NetworkPolicy(names.Qualified(in.Infra.Namespace, child)+"."+set.name, in.ControlPlaneNamespace()).WithLabels(desired.Labels(in.Infra)).
		WithSpec(acnetworking.NetworkPolicySpec().WithPolicyTypes(networkingv1.PolicyTypeIngress).
			WithPodSelector(acmeta.LabelSelector().WithMatchLabels(set.selector)).WithIngress(rule))
}
