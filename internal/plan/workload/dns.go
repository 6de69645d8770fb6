package workload

import (
	corev1 "k8s.io/api/core/v1"
	accore "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/plan/desired"
	"github.com/cldmnky/oooi/internal/plan/input"
	"github.com/cldmnky/oooi/internal/plan/permission"
)

func dnsReferences(s *v1alpha1.DNSServer) References {
	return References{Attachment: s.Spec.NetworkConfig.Attachment, Addresses: upstreams(s.Spec)}
}

// DNS plans one DNSServer.
func DNS(in Child[*v1alpha1.DNSServer]) ChildPlan {
	spec := in.Server.Spec
	p, stop := judged(append(permission.ImageOverrides(in.Settings, permission.WrittenImages(in.Server)), in.references(spec.NetworkConfig.Attachment, nil)...))
	if stop {
		return p
	}
	all := workloadsOf(in, serverIPs(in.Server, string(spec.NetworkConfig.SecondaryNetworkCIDR)), spec.Placement, spec.Image)
	w := all[0]
	chosen := chooseEach(&p, all, func(w workload) *accore.PodTemplateSpecApplyConfiguration { return w.dns(in.Settings) },
		append(w.ownObject(), desired.TellingStages()...)...)

	p.Want(w.account(rulesOfAll(chosen)...)...)
	p.Want(w.service(desired.ServicePort("dns", corev1.ProtocolUDP, dnsPort), desired.ServicePort("dns-tcp", corev1.ProtocolTCP, dnsPort)),
		w.policy(reaching(in.Services, in.EndpointSlices).resolvers(in), policyPort(corev1.ProtocolUDP, dnsPort), policyPort(corev1.ProtocolTCP, dnsPort)), w.budget())
	for i, instance := range all {
		p.Want(instance.one(chosen[i]))
	}
	return p
}

func (p pod) dns(s input.Settings) *accore.PodTemplateSpecApplyConfiguration {
	daemon := p.daemon(s, p.daemonArgs("dns-name", "log-level")...).WithResources(p.resources("20m", "48Mi", "256Mi"))
	// Default means the node's resolvers, never the management cluster's own DNS, which may forward to us.
	return p.template(s, guarded(daemon).WithDNSPolicy(corev1.DNSDefault))
}
