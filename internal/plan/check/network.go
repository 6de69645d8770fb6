package check

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/kept"
	"github.com/cldmnky/oooi/internal/nad"
	"github.com/cldmnky/oooi/internal/plan/apps"
	"github.com/cldmnky/oooi/internal/plan/input"
	"github.com/cldmnky/oooi/internal/plan/subject"
	"github.com/cldmnky/oooi/internal/plan/vlan"
)

// network checks the network that our pods would join.
func network(in apps.Published) []finding.Finding {
	n, key := in.VLAN, input.Refs(in.Infra).NAD
	refuse := func(reason string) finding.Builder { return finding.Refuse(v1alpha1.ConditionNetworkReady, reason) }
	switch {
	case n.Source == nil:
		return []finding.Finding{refuse("NADNotFound").At(subject.FieldNAD).Say("NetworkAttachmentDefinition %s not found; create it, or set networkConfig.networkAttachmentDefinition and networkAttachmentNamespace to another", key)}
	case n.Broken != "":
		at := originOf(n.Source)
		return []finding.Finding{refuse("NADUnsupported").In(at.object).At(at.field).Say("NetworkAttachmentDefinition %s cannot be used: %s%s", key, n.Broken, at.told)}
	case n.Config.IsOVN() && len(in.Infra.Spec.NetworkConfig.ClientCIDRs) > 0:
		return []finding.Finding{refuse("PolicyRoutingUnavailable").
			At("spec.networkConfig.clientCIDRs").Set(finding.Values{"spec.networkConfig.clientCIDRs": nil}).
			Say("networkConfig.clientCIDRs needs routes to those networks in our pods, but on NetworkAttachmentDefinition %s OVN-Kubernetes sets at most a default route, which would send our DNS server's own queries to the VLAN's router; "+
				"use a bridge or cnv-bridge, or let the router translate those clients' addresses (SNAT) to its own", key)}
	case in.SysctlAllowlist != nil && !n.Config.IsOVN():
		if large := kept.Judge(v1alpha1.ConditionNetworkReady, in.SysctlAllowlist); large != nil { // taken for one without our line, it would replace pods
			return large
		}
	}
	return networkNotes(in)
}

func networkNotes(in apps.Published) []finding.Finding {
	n := in.VLAN
	var all []finding.Finding
	warn := func(reason string) finding.Builder { return finding.Warn(v1alpha1.ConditionNetworkReady, reason) }
	ours := vlan.Attachment{Source: n.Source, Config: n.Config}
	all = append(all, untagged(ours)...)
	if !n.Config.IsOVN() && !n.Tuned {
		found := warn("ForwardingNotPrevented").In(allowlistObject).At("data")
		if in.SysctlAllowlist != nil { // a new one with our line alone would remove all others from the nodes
			found = found.Set(finding.Values{"data": map[string]any{nad.SysctlAllowlistKey: withLine(in.SysctlAllowlist)}})
		}
		all = append(all, found.Say("our pods' VLAN interface may forward packets; add the line %s to %s of ConfigMap %s (this restarts no pod; it takes effect for new pods)",
			nad.AllowlistLine(), nad.SysctlAllowlistKey, nad.SysctlAllowlist))
	}
	at := originOf(n.Source)
	if n.Config.IsOVN() && !n.Config.PortSecured() {
		all = append(all, warn("ForwardingNotPrevented").In(at.object).At(at.field).
			Say("our pods' VLAN interface may forward packets: NetworkAttachmentDefinition %s has macSecurityMode Disabled, and OVN-Kubernetes accepts no plugin that turns forwarding off; use a network with port security", input.Refs(in.Infra).NAD))
	}
	if n.Config.IsOVN() && n.Config.MTU() == 0 && !at.userDefined() { // user-defined networks always have one
		all = append(all, at.mended(warn("MTUNotSpecified"), n.Config.Tagged().WithMTU(nad.UsualMTU)).Say("NetworkAttachmentDefinition %s has no mtu, so OVN-Kubernetes gives its interfaces the pod network's MTU (status.clusterNetworkMTU of Network cluster, 1400 where nodes have 1500) and drops larger packets; if the VLAN's MTU is %d, set it there%s", input.Refs(in.Infra).NAD, nad.UsualMTU, at.told))
	}
	return append(all, apart(ours)...)
}

func withLine(allowlist *corev1.ConfigMap) string {
	lines := strings.TrimRight(allowlist.Data[nad.SysctlAllowlistKey], "\n")
	if lines != "" {
		lines += "\n"
	}
	return lines + nad.AllowlistLine() + "\n"
}

// allowlistObject lists the sysctls that the tuning plugin may set on OpenShift.
var allowlistObject = finding.Object{APIVersion: "v1", Kind: "ConfigMap", Namespace: nad.SysctlAllowlist.Namespace, Name: nad.SysctlAllowlist.Name}
