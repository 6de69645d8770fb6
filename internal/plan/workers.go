package plan

import (
	"fmt"
	"slices"
	"strings"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/nad"
	"github.com/cldmnky/oooi/internal/permit"
)

// workers judges how the workers' VirtualMachines are plugged in. Nothing is held back for them: those that are plugged in
// well are served, and the others once they are.
func (v *view) workers() []finding.Finding {
	if v.vlan.source == nil || v.vlan.broken != "" {
		return nil
	}
	return slices.Concat(v.attachments(), v.plugs())
}

// pools are the HostedCluster's, of VirtualMachines.
func (v *view) pools() []*hyperv1.NodePool { return ofMachines(v.NodePools) }

// ofMachines are the NodePools of VirtualMachines that stay: one that is going may drain for hours, and says nothing any more.
func ofMachines(pools []hyperv1.NodePool) []*hyperv1.NodePool {
	var all []*hyperv1.NodePool
	for i := range pools {
		if p := &pools[i]; p.DeletionTimestamp == nil && p.Spec.Platform.Kubevirt != nil {
			all = append(all, p)
		}
	}
	return all
}

// sockets are the networks of the VLAN that machines are plugged into.
func (v *view) sockets(p *hyperv1.KubevirtNodePoolPlatform) []socket {
	if v.HostedCluster == nil {
		return nil
	}
	var all []socket
	for _, n := range p.AdditionalNetworks {
		if s, ok := v.socket(attachmentOf(n, v.HostedCluster)); ok {
			all = append(all, s)
		}
	}
	return all
}

// socket is a network that machines are plugged into.
type socket struct {
	source *nad.NetworkAttachmentDefinition
	config nad.Config
}

func (v *view) socket(key types.NamespacedName) (socket, bool) {
	if key == Refs(v.Infra).NAD {
		return socket{v.vlan.source, v.vlan.config}, true
	}
	for i := range v.Attachable {
		n := &v.Attachable[i]
		reference := permit.Reference{
			From: v.Infra.Namespace, Namespace: n.Namespace, Annotations: n.Annotations,
			Lent: append([]string{v.HostedCluster.Namespace, v.ControlPlaneNamespace()}, v.Settings.NADSourceNamespaces...),
		}
		if n.Namespace != key.Namespace || n.Name != key.Name || !reference.Allowed() {
			continue
		}
		config, err := nad.Parse(n.Spec.Config)
		return socket{n, config}, err == nil
	}
	return socket{}, false
}

// plugs: some NodePool must be on the VLAN, and what is on it must be on nothing else: a machine on the pod network too
// has its routes and its name from there.
func (v *view) plugs() []finding.Finding {
	var strangers, plugged []finding.Finding
	pools := v.pools()
	for _, p := range pools {
		if len(v.sockets(p.Spec.Platform.Kubevirt)) == 0 {
			strangers = append(strangers, v.notOnVLAN(p))
			continue
		}
		if ptr.Deref(p.Spec.Platform.Kubevirt.AttachDefaultNetwork, true) {
			plugged = append(plugged, onPodNetworkToo(p))
		}
		plugged = append(plugged, v.unplugged(p)...)
	}
	if len(strangers) == len(pools) {
		return strangers
	}
	return plugged // a NodePool elsewhere is none of ours
}

// unplugged: a machine of which one network is refused does not start.
func (v *view) unplugged(p *hyperv1.NodePool) (all []finding.Finding) {
	for _, n := range p.Spec.Platform.Kubevirt.AdditionalNetworks {
		at := attachmentOf(n, v.HostedCluster)
		if !v.lends(at.Namespace) {
			all = append(all, finding.Fails(v1alpha1.ConditionNetworkReady, "WorkerNADIsolated").In(poolObject(p)).At(fieldNetworks).
				Say("NodePool %s/%s names %s, and its machines run in namespace %s: OpenShift's Multus gives a pod networks of its own namespace and of %s alone, so they do not start; have the NetworkAttachmentDefinition in one of these, and name that",
					p.Namespace, p.Name, at, v.ControlPlaneNamespace(), strings.Join(v.Settings.NADSourceNamespaces, ", ")))
		}
		if dotted(at) { // kubevirt: pkg/network/admitter/netiface.go; hypershift: nodepool/kubevirt, virtualMachineInterfaceName
			all = append(all, finding.Fails(v1alpha1.ConditionNetworkReady, "WorkerNADNameUnfit").In(poolObject(p)).At(fieldNetworks).
				Say("NodePool %s/%s names %s: HyperShift calls the machines' card so, and KubeVirt takes no dot there; make the NetworkAttachmentDefinition anew as %s, and name that",
					p.Namespace, p.Name, at, strings.ReplaceAll(at.Name, ".", "-")))
		}
	}
	return all
}

// lends says whether Multus gives machines the networks of a namespace. OpenShift's keeps pods from those of most others
// (cluster-network-operator: bindata/network/multus/multus.yaml); elsewhere it is as it was installed.
func (v *view) lends(namespace string) bool {
	isolates := v.OpenShift || v.Settings.IsolatesNetworks
	return !isolates || namespace == v.ControlPlaneNamespace() || slices.Contains(v.Settings.NADSourceNamespaces, namespace)
}

func dotted(at types.NamespacedName) bool { return strings.Contains(at.Name, ".") }

const (
	fieldNetworks       = "spec.platform.kubevirt.additionalNetworks"
	fieldDefaultNetwork = "spec.platform.kubevirt.attachDefaultNetwork"
)

func (v *view) notOnVLAN(p *hyperv1.NodePool) finding.Finding {
	ours := Refs(v.Infra).NAD
	var names []string
	networks := []any{map[string]any{"name": ours.String()}} // the first card; a merge patch replaces lists, so the others are in it too
	for _, n := range p.Spec.Platform.Kubevirt.AdditionalNetworks {
		names, networks = append(names, n.Name), append(networks, map[string]any{"name": n.Name})
	}
	found, name := finding.Fails(v1alpha1.ConditionNetworkReady, "NodePoolNotOnVLAN").In(poolObject(p)).At(fieldNetworks), "name that one"
	if v.lends(ours.Namespace) && !dotted(ours) {
		found = found.Set(finding.Values{fieldNetworks: networks, fieldDefaultNetwork: false})
	} else {
		name = fmt.Sprintf("have one for machines, which do not start on that one, in namespace %s or default and without a dot in its name, and name it", v.ControlPlaneNamespace())
	}
	return found.Say("NodePool %s/%s is not on the VLAN of NetworkAttachmentDefinition %s (its additionalNetworks: %s); %s", p.Namespace, p.Name, ours, orElse(strings.Join(names, ", "), "none"), name)
}

func onPodNetworkToo(p *hyperv1.NodePool) finding.Finding {
	return finding.Fails(v1alpha1.ConditionNetworkReady, "DefaultNetworkAttached").
		In(poolObject(p)).At(fieldDefaultNetwork).Set(finding.Values{fieldDefaultNetwork: false}).
		Say("NodePool %s/%s is on the pod network too, from where its workers would have their routes and resolvers; set attachDefaultNetwork: false", p.Namespace, p.Name)
}

func poolObject(p *hyperv1.NodePool) finding.Object {
	return finding.Object{APIVersion: hyperv1.GroupVersion.String(), Kind: "NodePool", Namespace: p.Namespace, Name: p.Name}
}

// attachments judges the networks that machines are plugged into; where no NodePool says, that is the Infra's.
func (v *view) attachments() []finding.Finding {
	var all []socket
	for _, p := range v.pools() {
		for _, s := range v.sockets(p.Spec.Platform.Kubevirt) {
			if !slices.ContainsFunc(all, func(o socket) bool { return o.source == s.source }) {
				all = append(all, s)
			}
		}
	}
	if len(all) == 0 {
		all = []socket{{v.vlan.source, v.vlan.config}}
	}
	var findings []finding.Finding
	for _, s := range all {
		findings = append(findings, s.unfit()...)
		if s.source != v.vlan.source { // of that its own notes tell
			findings = append(findings, slices.Concat(s.untagged(), s.apart())...)
		}
		findings = append(findings, s.addressing()...)
		if v.platform() != nil {
			findings = append(findings, s.bridged()...)
		}
		findings = append(findings, s.frames(v)...)
	}
	return findings
}

// unfit: what keeps our pods from the VLAN on a network keeps machines from it, or from our pods, on another of the same layer 2.
func (s socket) unfit() []finding.Finding {
	why := s.config.Unfit(s.source.Namespace, s.source.Name)
	if why == "" {
		return nil
	}
	at := originOf(s.source)
	return []finding.Finding{finding.Fails(v1alpha1.ConditionNetworkReady, "NADUnfit").In(at.object).At(at.field).
		Say("NetworkAttachmentDefinition %s/%s, which workers are plugged into, does not fit: %s%s", s.source.Namespace, s.source.Name, why, at.told)}
}

// untagged: a VLAN under another plugin's key is none, and everything is joined on whatever the untagged network is.
func (s socket) untagged() []finding.Finding {
	wrote, write, tagged, ok := s.config.MisnamedVLAN()
	if !ok {
		return nil
	}
	at := originOf(s.source)
	return []finding.Finding{at.mended(finding.Note(v1alpha1.ConditionNetworkReady, "VLANKeyIgnored"), tagged).Say("NetworkAttachmentDefinition %s/%s has its VLAN as %q, a key that plugin %s does not know and passes over: workers and our pods are on the untagged network; write %s%s",
		s.source.Namespace, s.source.Name, wrote, s.config.Type(), write, at.told)}
}

// apart: workers and our pods may be on different nodes, which nothing here says.
func (s socket) apart() []finding.Finding {
	mode := s.config.KeepsApart()
	if mode == "" {
		return nil
	}
	at := originOf(s.source)
	return []finding.Finding{finding.Note(v1alpha1.ConditionNetworkReady, "SameNodeUnreachable").In(at.object).At(at.field).
		Say(`NetworkAttachmentDefinition %s/%s says "mode": %q: workers do not reach those of our pods that run on their own node; keep them on different nodes by nodeSelector of infraComponents and NodePools, or write "mode": "bridge"%s`, s.source.Namespace, s.source.Name, mode, at.told)}
}

// addressing: with bridge binding, an address from the CNI makes virt-launcher answer the guest's DHCP in our place; on
// OVN-Kubernetes it pins the port to that address.
func (s socket) addressing() []finding.Finding {
	if !s.config.AssignsAddresses() {
		return nil
	}
	fails, network := finding.Fails(v1alpha1.ConditionNetworkReady, "WorkerNADHasIPAM"), s.source.Namespace+"/"+s.source.Name
	at := originOf(s.source)
	if at.userDefined() {
		return []finding.Finding{fails.In(at.object).At("spec.network.localnet.ipam.mode").
			Say("NetworkAttachmentDefinition %s assigns addresses: %s%s with ipam.mode: Disabled, and without subnets, excludeSubnets and ipam.lifecycle", network, pinned, at.told)}
	}
	fails = at.mended(fails, s.config.Tagged().WithoutAddresses())
	if s.config.IsOVN() {
		return []finding.Finding{fails.Say("NetworkAttachmentDefinition %s assigns addresses: %s; remove its subnets and ipam%s", network, pinned, at.told)}
	}
	return []finding.Finding{fails.Say("NetworkAttachmentDefinition %s assigns addresses: KubeVirt would answer workers' DHCP itself; remove its ipam%s", network, at.told)}
}

// bridged: HyperShift binds machines' cards by a bridge, with the MAC that the pod's card had (hypershift: nodepool/kubevirt; kubevirt:
// pkg/network/setup); macvlan passes nothing on to a MAC that no card of its own has (linux: drivers/net/macvlan.c).
func (s socket) bridged() []finding.Finding {
	if s.config.Type() != "macvlan" {
		return nil
	}
	return []finding.Finding{finding.Note(v1alpha1.ConditionNetworkReady, "WorkerNADIsMacvlan").In(nadObject(s.source)).At("spec.config").
		Say("NetworkAttachmentDefinition %s/%s is macvlan, which passes on only what is for the MAC of its own card; KubeVirt gives that MAC to the machine, behind a bridge, and the card another, so replies do not reach workers; use a bridge or OVN-Kubernetes localnet",
			s.source.Namespace, s.source.Name)}
}

// pinned is what OVN-Kubernetes does to a worker whose address it assigned (port_security of its port).
const pinned = "OVN-Kubernetes drops what a worker sends from any other, such as our leases and MetalLB's and egress addresses"

// frames: workers that send longer frames than their network carries lose them without a word; shorter ones work.
func (s socket) frames(v *view) []finding.Finding {
	handed, carried := v.mtu(), s.config.Carries()
	if handed == 0 || carried == 0 || handed == carried || !enabled(v.Infra.Spec.InfraComponents.DHCP.Enabled) {
		return nil
	}
	begin, what := finding.Fails, "longer frames are lost"
	if handed < carried {
		begin, what = finding.Note, "it works, and wastes what the network has"
	}
	return []finding.Finding{begin(v1alpha1.ConditionNetworkReady, "MTUMismatch").
		At(fieldMTU).Set(finding.Values{fieldMTU: carried}).
		Say("workers are told MTU %d, and NetworkAttachmentDefinition %s/%s carries %d: %s; make networkConfig.mtu and the NetworkAttachmentDefinition's agree", handed, s.source.Namespace, s.source.Name, carried, what)}
}
