package plan

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	acrbac "k8s.io/client-go/applyconfigurations/rbac/v1"

	"github.com/cldmnky/oooi/internal/names"
)

// dhcpAccess lets the DHCP daemon look VirtualMachines up by hardware address (option 12 must be the machine's name), and
// tell events of them where they live.
func (v *view) dhcpAccess(child string) []runtime.ApplyConfiguration {
	namespace := v.vmNamespace()
	if namespace == "" {
		return nil
	}
	return v.access(child, namespace,
		reading("kubevirt.io", "virtualmachines", "virtualmachineinstances"),
		reading("", "pods"), tellingEvents())
}

// proxyAccess lets the proxy's sidecar follow its backends.
func (v *view) proxyAccess(child string) []runtime.ApplyConfiguration {
	var namespaces []string
	for _, e := range v.table.Endpoints {
		if e.Backend.Service != "" {
			namespaces = append(namespaces, e.Backend.Namespace)
		}
	}
	slices.Sort(namespaces)
	var all []runtime.ApplyConfiguration
	for _, namespace := range slices.Compact(namespaces) {
		all = append(all, v.access(child, namespace, reading("", "services"), reading("discovery.k8s.io", "endpointslices"))...)
	}
	return all
}

func reading(group string, resources ...string) *acrbac.PolicyRuleApplyConfiguration {
	return acrbac.PolicyRule().WithAPIGroups(group).WithResources(resources...).WithVerbs("get", "list", "watch")
}

func tellingEvents() *acrbac.PolicyRuleApplyConfiguration {
	return acrbac.PolicyRule().WithAPIGroups("").WithResources("events").WithVerbs("create")
}

// access grants a child's ServiceAccount, which has its name (names.Own), rules in another namespace; in its own its workload
// has them.
func (v *view) access(child, namespace string, rules ...*acrbac.PolicyRuleApplyConfiguration) []runtime.ApplyConfiguration {
	if namespace == v.Infra.Namespace {
		return nil
	}
	name := names.Qualified(v.Infra.Namespace, child)
	return []runtime.ApplyConfiguration{
		acrbac.Role(name, namespace).WithLabels(v.labels()).WithRules(rules...),
		acrbac.RoleBinding(name, namespace).WithLabels(v.labels()).
			WithRoleRef(acrbac.RoleRef().WithAPIGroup("rbac.authorization.k8s.io").WithKind("Role").WithName(name)).
			WithSubjects(acrbac.Subject().WithKind("ServiceAccount").WithName(child).WithNamespace(v.Infra.Namespace)),
	}
}
