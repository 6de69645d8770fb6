package workload

import (
	accore "k8s.io/client-go/applyconfigurations/core/v1"
	acrbac "k8s.io/client-go/applyconfigurations/rbac/v1"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/plan/desired"
	"github.com/cldmnky/oooi/internal/plan/input"
	"github.com/cldmnky/oooi/internal/plan/permission"
)

func dhcpReferences(s *v1alpha1.DHCPServer) References {
	return References{Attachment: s.Spec.NetworkConfig.Attachment, Namespaces: []string{string(s.Spec.VMNamespace)}}
}

// DHCP plans one DHCPServer.
func DHCP(in Child[*v1alpha1.DHCPServer]) ChildPlan {
	spec := in.Server.Spec
	targets := map[string]v1alpha1.ObjectName{}
	if spec.VMNamespace != "" {
		targets["vmNamespace"] = spec.VMNamespace
	}
	p, stop := judged(append(permission.ImageOverrides(in.Settings, permission.WrittenImages(in.Server)), in.references(spec.NetworkConfig.Attachment, targets)...))
	if stop {
		return p
	}
	all := workloadsOf(in, serverIPs(in.Server, string(spec.NetworkConfig.CIDR)), spec.Placement, spec.Image)
	w := all[0]
	if second := all[len(all)-1]; awaitsFirst(in, second) {
		all = all[:1]
		p.Find(second.waitsForFirst())
	}
	chosen := chooseEach(&p, all, func(w workload) *accore.PodTemplateSpecApplyConfiguration { return w.dhcp(in.Settings) }, dhcpRules(w, spec)...)

	p.Want(w.account(rulesOfAll(chosen)...)...)
	p.Want(w.policy(reaching(in.Services, in.EndpointSlices)), w.budget())
	for i, instance := range all {
		p.Want(instance.one(chosen[i]))
	}
	return p
}

func (p pod) dhcp(s input.Settings) *accore.PodTemplateSpecApplyConfiguration {
	daemon := p.daemon(s, p.daemonArgs("dhcp-name", "log-level")...).WithResources(p.resources("10m", "32Mi", "128Mi"))
	return p.template(s, guarded(daemon))
}

func dhcpRules(w workload, spec v1alpha1.DHCPServerSpec) []*acrbac.PolicyRuleApplyConfiguration {
	rules := append(w.ownObject(),
		acrbac.PolicyRule().WithAPIGroups("hostedcluster.densityops.com").WithResources("dhcpleases").WithVerbs("create", "get", "list", "update", "watch"))
	if string(spec.VMNamespace) == w.namespace() { // in another namespace, only the Infra may grant it
		rules = append(rules, desired.Reading("kubevirt.io", "virtualmachines", "virtualmachineinstances"), desired.Reading("", "pods"))
	}
	return rules
}
