package check

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"k8s.io/utils/ptr"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/plan/apps"
	"github.com/cldmnky/oooi/internal/plan/input"
	"github.com/cldmnky/oooi/internal/plan/subject"
	"github.com/cldmnky/oooi/internal/plan/vlan"
)

// workers checks how the workers' VirtualMachines are attached. Nothing waits for that: those that are attached correctly are served, and
// the others once they are.
func workers(in apps.Published) []finding.Finding {
	if in.VLAN.Source == nil || in.VLAN.Broken != "" {
		return nil
	}
	return slices.Concat(attachments(in), nodePools(in))
}

// nodePools: a NodePool must be on the VLAN, and those that are must not be on the pod network, from which a machine would get its routes
// and its name.
func nodePools(in apps.Published) []finding.Finding {
	var strangers, found []finding.Finding
	pools := in.Machines()
	for _, p := range pools {
		if len(in.Attachments(p.Spec.Platform.Kubevirt)) == 0 {
			strangers = append(strangers, notOnVLAN(in, p))
			continue
		}
		if ptr.Deref(p.Spec.Platform.Kubevirt.AttachDefaultNetwork, true) {
			found = append(found, onPodNetworkToo(p))
		}
		found = append(found, notAttached(in, p)...)
	}
	if len(strangers) == len(pools) {
		return strangers
	}
	return found // other NodePools may be elsewhere
}

// notAttached: a machine does not start if one of its networks is refused.
func notAttached(in apps.Published, p *hyperv1.NodePool) (all []finding.Finding) {
	for _, n := range p.Spec.Platform.Kubevirt.AdditionalNetworks {
		at := vlan.AttachmentOf(n, in.HostedCluster)
		if !in.Lends(at.Namespace) {
			all = append(all, finding.Fail(v1alpha1.ConditionNetworkReady, "WorkerNADIsolated").In(subject.NodePool(p)).At(subject.FieldNetworks).
				Say("NodePool %s/%s names %s, but its machines run in namespace %s: OpenShift's Multus lets a pod use only networks of its own namespace and of %s, so the machines do not start; create the NetworkAttachmentDefinition in one of these, and name that",
					p.Namespace, p.Name, at, in.ControlPlaneNamespace(), strings.Join(in.Settings.NADSourceNamespaces, ", ")))
		}
		if vlan.Dotted(at) { // kubevirt: pkg/network/admitter/netiface.go; hypershift: nodepool/kubevirt, virtualMachineInterfaceName
			all = append(all, finding.Fail(v1alpha1.ConditionNetworkReady, "WorkerNADNameInvalid").In(subject.NodePool(p)).At(subject.FieldNetworks).
				Say("NodePool %s/%s names %s: HyperShift uses this name for the machines' interface, and KubeVirt allows no dot in it; recreate the NetworkAttachmentDefinition as %s, and name that",
					p.Namespace, p.Name, at, strings.ReplaceAll(at.Name, ".", "-")))
		}
	}
	return all
}

func notOnVLAN(in apps.Published, p *hyperv1.NodePool) finding.Finding {
	ours := input.Refs(in.Infra).NAD
	var names []string
	networks := []any{map[string]any{"name": ours.String()}} // the first interface; a merge patch replaces lists, so it has the others too
	for _, n := range p.Spec.Platform.Kubevirt.AdditionalNetworks {
		names, networks = append(names, n.Name), append(networks, map[string]any{"name": n.Name})
	}
	found, name := finding.Fail(v1alpha1.ConditionNetworkReady, "NodePoolNotOnVLAN").In(subject.NodePool(p)).At(subject.FieldNetworks), "name that one"
	if in.Lends(ours.Namespace) && !vlan.Dotted(ours) {
		found = found.Set(finding.Values{subject.FieldNetworks: networks, subject.FieldDefaultNetwork: false})
	} else {
		name = fmt.Sprintf("have one for machines, which do not start on that one, in namespace %s or default and without a dot in its name, and name it", in.ControlPlaneNamespace())
	}
	return found.Say("NodePool %s/%s is not on the VLAN of NetworkAttachmentDefinition %s (its additionalNetworks: %s); %s", p.Namespace, p.Name, ours, cmp.Or(strings.Join(names, ", "), "none"), name)
}

func onPodNetworkToo(p *hyperv1.NodePool) finding.Finding {
	return finding.Fail(v1alpha1.ConditionNetworkReady, "DefaultNetworkAttached").
		In(subject.NodePool(p)).At(subject.FieldDefaultNetwork).Set(finding.Values{subject.FieldDefaultNetwork: false}).
		Say("NodePool %s/%s is also on the pod network, which would give its workers their routes and resolvers; set attachDefaultNetwork: false", p.Namespace, p.Name)
}

// attachments checks the networks that machines are attached to; if no NodePool names one, the Infra's.
func attachments(in apps.Published) []finding.Finding {
	var all []vlan.Attachment
	for _, p := range in.Machines() {
		for _, s := range in.Attachments(p.Spec.Platform.Kubevirt) {
			if !slices.ContainsFunc(all, func(o vlan.Attachment) bool { return o.Source == s.Source }) {
				all = append(all, s)
			}
		}
	}
	if len(all) == 0 {
		all = []vlan.Attachment{{Source: in.VLAN.Source, Config: in.VLAN.Config}}
	}
	var findings []finding.Finding
	for _, s := range all {
		findings = append(findings, unfit(s)...)
		if s.Source != in.VLAN.Source { // networkNotes reports these of the VLAN's own
			findings = append(findings, slices.Concat(untagged(s), apart(s))...)
		}
		findings = append(findings, assigned(s)...)
		if in.Platform() != nil {
			findings = append(findings, bridged(s)...)
		}
		findings = append(findings, mtu(s, in)...)
	}
	return findings
}
