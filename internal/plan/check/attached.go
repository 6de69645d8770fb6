package check

import (
	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/plan/apps"
	"github.com/cldmnky/oooi/internal/plan/input"
	"github.com/cldmnky/oooi/internal/plan/subject"
	"github.com/cldmnky/oooi/internal/plan/vlan"
)

// unfit: a configuration that would keep our pods off the VLAN also keeps machines off it, or away from our pods.
func unfit(s vlan.Attachment) []finding.Finding {
	why := s.Config.Unfit(s.Source.Namespace, s.Source.Name)
	if why == "" {
		return nil
	}
	at := originOf(s.Source)
	return []finding.Finding{finding.Fail(v1alpha1.ConditionNetworkReady, "NADUnsupported").In(at.object).At(at.field).
		Say("NetworkAttachmentDefinition %s/%s, which workers are attached to, cannot be used: %s%s", s.Source.Namespace, s.Source.Name, why, at.told)}
}

// untagged: a plugin ignores a VLAN under another plugin's key, and attaches everything to the untagged network.
func untagged(s vlan.Attachment) []finding.Finding {
	wrote, write, tagged, ok := s.Config.MisnamedVLAN()
	if !ok {
		return nil
	}
	at := originOf(s.Source)
	return []finding.Finding{at.mended(finding.Warn(v1alpha1.ConditionNetworkReady, "VLANKeyIgnored"), tagged).Say("NetworkAttachmentDefinition %s/%s has its VLAN as %q, a key that plugin %s ignores: workers and our pods are on the untagged network; write %s%s",
		s.Source.Namespace, s.Source.Name, wrote, s.Config.Type(), write, at.told)}
}

// apart: workers cannot reach our pods on the same node; whether they are on different nodes is not known here.
func apart(s vlan.Attachment) []finding.Finding {
	mode := s.Config.KeepsApart()
	if mode == "" {
		return nil
	}
	at := originOf(s.Source)
	return []finding.Finding{finding.Warn(v1alpha1.ConditionNetworkReady, "SameNodeUnreachable").In(at.object).At(at.field).
		Say(`NetworkAttachmentDefinition %s/%s says "mode": %q: workers cannot reach our pods that run on the same node; set nodeSelector of infraComponents and NodePools to keep them on different nodes, or write "mode": "bridge"%s`, s.Source.Namespace, s.Source.Name, mode, at.told)}
}

// assigned: with bridge binding, an address from the CNI has virt-launcher answer the guest's DHCP in our place; on OVN-Kubernetes it pins
// the port to that address.
func assigned(s vlan.Attachment) []finding.Finding {
	if !s.Config.AssignsAddresses() {
		return nil
	}
	fail, network := finding.Fail(v1alpha1.ConditionNetworkReady, "WorkerNADHasIPAM"), s.Source.Namespace+"/"+s.Source.Name
	at := originOf(s.Source)
	if at.userDefined() {
		return []finding.Finding{fail.In(at.object).At("spec.network.localnet.ipam.mode").
			Say("NetworkAttachmentDefinition %s assigns addresses: %s%s with ipam.mode: Disabled, and without subnets, excludeSubnets and ipam.lifecycle", network, pinned, at.told)}
	}
	fail = at.mended(fail, s.Config.Tagged().WithoutAddresses())
	if s.Config.IsOVN() {
		return []finding.Finding{fail.Say("NetworkAttachmentDefinition %s assigns addresses: %s; remove its subnets and ipam%s", network, pinned, at.told)}
	}
	return []finding.Finding{fail.Say("NetworkAttachmentDefinition %s assigns addresses: KubeVirt would answer the workers' DHCP requests instead of our server; remove its ipam%s", network, at.told)}
}

// bridged: HyperShift attaches machines by bridge binding, with the MAC address that the pod's interface had (hypershift: nodepool/kubevirt;
// kubevirt: pkg/network/setup); macvlan delivers nothing to a MAC that none of its interfaces has (linux: drivers/net/macvlan.c).
func bridged(s vlan.Attachment) []finding.Finding {
	if s.Config.Type() != "macvlan" {
		return nil
	}
	return []finding.Finding{finding.Warn(v1alpha1.ConditionNetworkReady, "WorkerNADIsMacvlan").In(subject.NAD(s.Source)).At("spec.config").
		Say("NetworkAttachmentDefinition %s/%s is macvlan, which delivers only packets for its own interface's MAC address; KubeVirt moves that address to the virtual machine, behind a bridge, so replies never reach workers; use a bridge or OVN-Kubernetes localnet",
			s.Source.Namespace, s.Source.Name)}
}

// pinned is what OVN-Kubernetes does to a worker whose address it assigned (port_security of its port).
const pinned = "OVN-Kubernetes drops packets that a worker sends from any other address, such as our leases and the addresses of MetalLB and egress IPs"

// mtu: packets that are larger than the network's MTU are lost silently; a smaller MTU works.
func mtu(s vlan.Attachment, in apps.Published) []finding.Finding {
	handed, carried := in.MTU(), s.Config.Carries()
	if handed == 0 || carried == 0 || handed == carried || !input.Enabled(in.Infra.Spec.InfraComponents.DHCP.Enabled) {
		return nil
	}
	begin, what := finding.Fail, "larger packets are lost"
	if handed < carried {
		begin, what = finding.Warn, "this works, but does not use the network's full MTU"
	}
	return []finding.Finding{begin(v1alpha1.ConditionNetworkReady, "MTUMismatch").
		At(subject.FieldMTU).Set(finding.Values{subject.FieldMTU: carried}).
		Say("DHCP announces MTU %d to workers, but NetworkAttachmentDefinition %s/%s has %d: %s; set networkConfig.mtu and the NetworkAttachmentDefinition's mtu to the same value", handed, s.Source.Namespace, s.Source.Name, carried, what)}
}
