package workload

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	acapps "k8s.io/client-go/applyconfigurations/apps/v1"
	accore "k8s.io/client-go/applyconfigurations/core/v1"
	acmeta "k8s.io/client-go/applyconfigurations/meta/v1"
	acnetworking "k8s.io/client-go/applyconfigurations/networking/v1"
	acpolicy "k8s.io/client-go/applyconfigurations/policy/v1"
	acrbac "k8s.io/client-go/applyconfigurations/rbac/v1"

	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/plan/desired"
)

// account is the daemon's ServiceAccount, and its rights in its own namespace.
func (w workload) account(rules ...*acrbac.PolicyRuleApplyConfiguration) []runtime.ApplyConfiguration {
	role := acrbac.Role(w.own(), w.namespace()).WithLabels(w.labels()).WithOwnerReferences(w.owner()).WithRules(rules...)
	binding := acrbac.RoleBinding(w.own(), w.namespace()).WithLabels(w.labels()).WithOwnerReferences(w.owner()).
		WithRoleRef(acrbac.RoleRef().WithAPIGroup("rbac.authorization.k8s.io").WithKind("Role").WithName(w.own())).
		WithSubjects(acrbac.Subject().WithKind("ServiceAccount").WithName(w.own()).WithNamespace(w.namespace()))
	return []runtime.ApplyConfiguration{
		accore.ServiceAccount(w.own(), w.namespace()).WithLabels(w.labels()).WithOwnerReferences(w.owner()), role, binding,
	}
}

// ownObject lets a daemon watch its own object, write its status, and report Events.
func (w workload) ownObject() []*acrbac.PolicyRuleApplyConfiguration {
	return []*acrbac.PolicyRuleApplyConfiguration{
		desired.Reading("hostedcluster.densityops.com", w.serves.Resource).WithResourceNames(w.name()),
		acrbac.PolicyRule().WithAPIGroups("hostedcluster.densityops.com").WithResources(w.serves.Resource + "/status").WithVerbs("patch").WithResourceNames(w.name()),
		desired.TellingEvents(),
	}
}

// one is a StatefulSet of one pod, so that the old and the new pod never have the address at the same time.
func (w workload) one(r chosenTemplate) runtime.ApplyConfiguration {
	return acapps.StatefulSet(names.InstanceWorkload(w.App, w.name(), w.Instance), w.namespace()).WithLabels(w.labels()).WithOwnerReferences(w.owner()).WithAnnotations(r.annotations).
		WithSpec(acapps.StatefulSetSpec().WithReplicas(1).WithRevisionHistoryLimit(2).
			// With OrderedReady, a pod that is never Ready keeps its template even if a new one mends it (stateful_set_control.go).
			WithPodManagementPolicy(appsv1.ParallelPodManagement).
			WithSelector(acmeta.LabelSelector().WithMatchLabels(w.instance())).WithTemplate(r.template))
}

// budget lets one pod at a time be evicted, of all instances together.
func (w workload) budget() runtime.ApplyConfiguration {
	return acpolicy.PodDisruptionBudget(w.own(), w.namespace()).WithLabels(w.labels()).WithOwnerReferences(w.owner()).
		WithSpec(acpolicy.PodDisruptionBudgetSpec().WithMaxUnavailable(intstr.FromInt32(1)).WithSelector(acmeta.LabelSelector().WithMatchLabels(w.selector())))
}

// policy allows, on the pod network, only metrics, the ports of service for any pod, and what the pod itself has to reach. NetworkPolicies do
// not cover the VLAN, where daemons bind to address and device.
func (w workload) policy(out reach, service ...*acnetworking.NetworkPolicyPortApplyConfiguration) runtime.ApplyConfiguration {
	spec := acnetworking.NetworkPolicySpec().WithPodSelector(acmeta.LabelSelector().WithMatchLabels(w.selector())).
		WithPolicyTypes(networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress).WithEgress(out.rules()...)
	if from := namespaces(w.settings.MetricsNamespaces); from != nil {
		spec.WithIngress(acnetworking.NetworkPolicyIngressRule().WithFrom(from).WithPorts(policyPort(corev1.ProtocolTCP, names.MetricsPort)))
	}
	if len(service) > 0 {
		anyPod := acnetworking.NetworkPolicyPeer().WithNamespaceSelector(acmeta.LabelSelector())
		spec.WithIngress(acnetworking.NetworkPolicyIngressRule().WithFrom(anyPod).WithPorts(service...))
	}
	return acnetworking.NetworkPolicy(w.own(), w.namespace()).WithLabels(w.labels()).WithOwnerReferences(w.owner()).WithSpec(spec)
}

func (w workload) service(ports ...*accore.ServicePortApplyConfiguration) runtime.ApplyConfiguration {
	return accore.Service(names.Service(w.App, w.name()), w.namespace()).WithLabels(w.labels()).WithOwnerReferences(w.owner()).
		WithSpec(accore.ServiceSpec().WithType(corev1.ServiceTypeClusterIP).WithSelector(w.selector()).WithPorts(ports...))
}
