package plan

import (
	"cmp"
	"net/netip"

	accore "k8s.io/client-go/applyconfigurations/core/v1"
	acrbac "k8s.io/client-go/applyconfigurations/rbac/v1"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/names"
)

// DHCP says what one DHCPServer becomes.
func DHCP(in Child[*v1alpha1.DHCPServer]) ChildPlan {
	spec := in.Server.Spec
	targets := map[string]v1alpha1.ObjectName{}
	if spec.VMNamespace != "" {
		targets["vmNamespace"] = spec.VMNamespace
	}
	p, stop := held(append(imageOverrides(in.Settings, map[string]string{"image": spec.Image}), in.references(spec.NetworkConfig.Attachment, targets)...))
	if stop {
		return p
	}
	w := workloadOf(in, names.DHCP, "DHCPServer")
	w.attachment, w.placement = spec.NetworkConfig.Attachment, spec.Placement
	w.addresses = []netip.Prefix{within(string(spec.NetworkConfig.ServerIP), string(spec.NetworkConfig.CIDR))}

	daemon := w.daemon(names.DHCP, cmp.Or(spec.Image, in.Settings.Image), w.daemonArgs("dhcp-name", "log-level")...).WithResources(w.resources("10m", "32Mi", "128Mi"))
	template := w.pod(accore.PodSpec().WithContainers(daemon))
	rolledOut := w.keepImages(template, unless(spec.Image, names.DHCP)...)

	p.Want(w.account(dhcpRules(w, spec)...)...)
	p.Want(w.admission(), w.budget(), w.one(template, rolledOut))
	return p
}

func dhcpRules(w workload, spec v1alpha1.DHCPServerSpec) []*acrbac.PolicyRuleApplyConfiguration {
	rules := append(w.ownObject("dhcpservers"),
		acrbac.PolicyRule().WithAPIGroups("hostedcluster.densityops.com").WithResources("dhcpleases").WithVerbs("create", "get", "list", "update", "watch"))
	if string(spec.VMNamespace) == w.namespace() { // of another namespace only the Infra may grant it
		rules = append(rules, reading("kubevirt.io", "virtualmachines", "virtualmachineinstances"), reading("", "pods"))
	}
	return rules
}

// unless lists the containers whose image is the operator's to choose: none where one was written.
func unless(written string, containers ...string) []string {
	if written != "" {
		return nil
	}
	return containers
}
