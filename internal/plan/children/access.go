package children

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	acrbac "k8s.io/client-go/applyconfigurations/rbac/v1"

	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/plan/apps"
	"github.com/cldmnky/oooi/internal/plan/desired"
)

// dhcpAccess lets the DHCP daemon look up VirtualMachines by hardware address (option 12 must be the machine's name), and create Events
// in their namespace.
func dhcpAccess(in apps.Published, child string) []runtime.ApplyConfiguration {
	namespace := in.VMNamespace()
	if namespace == "" {
		return nil
	}
	return access(in, child, namespace,
		desired.Reading("kubevirt.io", "virtualmachines", "virtualmachineinstances"),
		desired.Reading("", "pods"), desired.TellingEvents())
}

// proxyAccess lets the proxy's sidecar watch its backends and their pods: it does not trust an EndpointSlice alone.
func proxyAccess(in apps.Published, child string) []runtime.ApplyConfiguration {
	var namespaces []string
	for _, e := range in.Table.Endpoints {
		if e.Backend.Service != "" {
			namespaces = append(namespaces, e.Backend.Namespace)
		}
	}
	slices.Sort(namespaces)
	var all []runtime.ApplyConfiguration
	for _, namespace := range slices.Compact(namespaces) {
		all = append(all, access(in, child, namespace, desired.Reading("", "services", "pods"), desired.Reading("discovery.k8s.io", "endpointslices"))...)
	}
	return all
}

// access grants rules in another namespace to a child's ServiceAccount, which has the child's name (names.Own). Package workload grants
// those in the child's own namespace.
func access(in apps.Published, child, namespace string, rules ...*acrbac.PolicyRuleApplyConfiguration) []runtime.ApplyConfiguration {
	if namespace == in.Infra.Namespace {
		return nil
	}
	name := names.Qualified(in.Infra.Namespace, child)
	return []runtime.ApplyConfiguration{
		acrbac.Role(name, namespace).WithLabels(desired.Labels(in.Infra)).WithRules(rules...),
		acrbac.RoleBinding(name, namespace).WithLabels(desired.Labels(in.Infra)).
			WithRoleRef(acrbac.RoleRef().WithAPIGroup("rbac.authorization.k8s.io").WithKind("Role").WithName(name)).
			WithSubjects(acrbac.Subject().WithKind("ServiceAccount").WithName(child).WithNamespace(in.Infra.Namespace)),
	}
}
