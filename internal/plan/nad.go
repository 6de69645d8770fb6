package plan

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/endpoint"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/ipam"
	"github.com/cldmnky/oooi/internal/nad"
	"github.com/cldmnky/oooi/internal/names"
)

// allowlistKey is where ConfigMap cni-sysctl-allowlist has its lines (openshift/cluster-network-operator).
const allowlistKey = "allowlist.conf"

// vlan is the network of the workers and how our pods join it.
type vlan struct {
	source *nad.NetworkAttachmentDefinition
	config nad.Config
	broken string // why the configuration could not be read, or does not fit
	// direct: pods attach to the source itself.
	direct bool
	// tuned: forwarding is turned off on our pods' interface.
	tuned bool
	// anywhere: clients are in every network.
	anywhere bool
}

func vlanOf(in Input) vlan {
	v := vlanAt(in.NAD)
	v.anywhere = slices.ContainsFunc(clientNetworks(in.Infra), func(p netip.Prefix) bool { return p.Bits() == 0 })
	v.tuned = in.tuningAdmitted() && !v.config.IsOVN()
	if in.NAD != nil {
		lent := in.NAD.Namespace == in.Infra.Namespace || slices.Contains(in.Settings.NADSourceNamespaces, in.NAD.Namespace)
		v.direct = v.config.IsOVN() && !v.config.AssignsAddresses() && lent
	}
	return v
}

// vlanAt is the network as such, whoever joins it.
func vlanAt(source *nad.NetworkAttachmentDefinition) vlan {
	v := vlan{source: source}
	if source == nil {
		return v
	}
	config, err := nad.Parse(source.Spec.Config)
	if err != nil {
		v.broken = err.Error()
		return v
	}
	v.config, v.broken = config, config.Unfit(source.Namespace, source.Name)
	return v
}

// tuningAdmitted says whether Multus lets forwarding be turned off. On OpenShift the nodes keep the list when its ConfigMap is
// deleted, which then is made anew without our line (cluster-network-operator, pkg/controller/allowlist); elsewhere there is none.
func (in Input) tuningAdmitted() bool {
	if in.SysctlAllowlist == nil {
		return !in.OpenShift
	}
	return nad.Admits(in.SysctlAllowlist.Data[allowlistKey])
}

func (n vlan) findings(v *view) []finding.Finding {
	key := Refs(v.Infra).NAD
	wrong := func(reason string) finding.Builder { return finding.Wrong(v1alpha1.ConditionNetworkReady, reason) }
	switch {
	case n.source == nil:
		return []finding.Finding{wrong("NADNotFound").At(fieldNAD).Say("NetworkAttachmentDefinition %s not found; create it, or name another in networkConfig.networkAttachmentDefinition and networkAttachmentNamespace", key)}
	case n.broken != "":
		at := originOf(n.source)
		return []finding.Finding{wrong("NADUnfit").In(at.object).At(at.field).Say("NetworkAttachmentDefinition %s does not fit: %s%s", key, n.broken, at.told)}
	case n.config.IsOVN() && len(v.Infra.Spec.NetworkConfig.ClientCIDRs) > 0:
		return []finding.Finding{wrong("PolicyRoutingUnavailable").
			At("spec.networkConfig.clientCIDRs").Set(finding.Values{"spec.networkConfig.clientCIDRs": nil}).
			Say("networkConfig.clientCIDRs needs routes to those networks in our pods, and on NetworkAttachmentDefinition %s OVN-Kubernetes sets a default route at most, which would take what our DNS asks the nodes' resolvers to the VLAN's router; "+
				"use a bridge or cnv-bridge, or let the router translate those clients' addresses (SNAT) to its own", key)}
	}
	return n.notes(v)
}

func (n vlan) notes(v *view) []finding.Finding {
	var all []finding.Finding
	note := func(reason string) finding.Builder { return finding.Note(v1alpha1.ConditionNetworkReady, reason) }
	ours := socket{n.source, n.config}
	all = append(all, ours.untagged()...)
	if !n.config.IsOVN() && !n.tuned {
		found := note("ForwardingNotPrevented").In(allowlistObject).At("data")
		if v.SysctlAllowlist != nil { // one that is made of our line alone would take all others from the nodes
			found = found.Set(finding.Values{"data": map[string]any{allowlistKey: withLine(v.SysctlAllowlist)}})
		}
		all = append(all, found.Say("our pods' VLAN interface may forward packets; add the line %s to %s of ConfigMap openshift-multus/cni-sysctl-allowlist (no pod is restarted for it; the next one that is made takes it up)",
			nad.AllowlistLine(), allowlistKey))
	}
	at := originOf(n.source)
	if n.config.IsOVN() && !n.config.PortSecured() {
		all = append(all, note("ForwardingNotPrevented").In(at.object).At(at.field).
			Say("our pods' VLAN interface may forward packets: NetworkAttachmentDefinition %s says macSecurityMode Disabled, and OVN-Kubernetes takes no plugin that turns forwarding off; use a network with port security", Refs(v.Infra).NAD))
	}
	if n.config.IsOVN() && n.config.MTU() == 0 && !at.userDefined() { // those always say one
		all = append(all, at.mended(note("MTUNotSaid"), n.config.Tagged().WithMTU(nad.UsualMTU)).Say("NetworkAttachmentDefinition %s says no mtu, so OVN-Kubernetes gives its interfaces the pod network's (status.clusterNetworkMTU of Network cluster, 1400 where nodes have 1500), and loses longer frames; where the VLAN carries %d, say so there%s", Refs(v.Infra).NAD, nad.UsualMTU, at.told))
	}
	return append(all, ours.apart()...)
}

// origin is where the configuration of a network is written: in itself, or in what it is rendered from, which told says then.
type origin struct {
	object      finding.Object
	field, told string
}

func originOf(n *nad.NetworkAttachmentDefinition) origin {
	by, rendered := n.Renderer()
	switch of := (finding.Object{APIVersion: "k8s.ovn.org/v1", Kind: by.Kind, Name: by.Name}); {
	case !rendered:
		return origin{object: nadObject(n), field: "spec.config"}
	case by.Kind == nad.OperatorNetwork:
		of.APIVersion = "operator.openshift.io/v1"
		return origin{of, "spec.additionalNetworks", fmt.Sprintf("; OpenShift's network operator renders it and puts it back: change entry %s in spec.additionalNetworks of Network.operator.openshift.io %s, which takes any configuration as rawCNIConfig where its type is Raw", n.Name, by.Name)}
	case by.Kind == "UserDefinedNetwork":
		of.Namespace = n.Namespace
		fallthrough
	default:
		return origin{of, "spec", fmt.Sprintf("; its controller made it from %s %s, whose spec does not change: make that anew", by.Kind, by.Name)}
	}
}

// mended begins a finding whose YAML has the configuration put right. What is rendered has none: its source has another form.
func (o origin) mended(b finding.Builder, config nad.Config) finding.Builder {
	b = b.In(o.object).At(o.field)
	if o.told != "" {
		return b
	}
	return b.Set(finding.Values{o.field: config.String()})
}

func (o origin) userDefined() bool { return o.object.APIVersion == "k8s.ovn.org/v1" }

// allowlistObject is what Multus' tuning plugin admits on OpenShift.
var allowlistObject = finding.Object{APIVersion: "v1", Kind: "ConfigMap", Namespace: "openshift-multus", Name: "cni-sysctl-allowlist"}

func withLine(allowlist *corev1.ConfigMap) string {
	lines := strings.TrimRight(allowlist.Data[allowlistKey], "\n")
	if lines != "" {
		lines += "\n"
	}
	return lines + nad.AllowlistLine() + "\n"
}

// attachment is how the pod of one component joins the VLAN: by a network of its own that gives it its addresses; on
// OVN-Kubernetes, where the pod's annotation gives them, by the source, or by a copy that all share.
func (v *view) attachment(child string, addresses ...netip.Addr) (v1alpha1.Attachment, *nad.ApplyConfiguration) {
	a := v1alpha1.Attachment{MACAddress: v1alpha1.MACAddress(names.MAC(v.Infra.Namespace, v.Infra.Name, addresses[0]))}
	if v.vlan.direct {
		a.NetworkAttachmentDefinition = v1alpha1.ObjectName(v.NAD.Name)
		a.NetworkAttachmentNamespace = v1alpha1.ObjectName(v.NAD.Namespace)
		return a, nil
	}
	a.NetworkAttachmentNamespace = v1alpha1.ObjectName(v.Infra.Namespace)
	if v.shares(child) {
		a.NetworkAttachmentDefinition = v1alpha1.ObjectName(names.SharedNetwork(v.Infra.Name))
		return a, nil
	}
	a.NetworkAttachmentDefinition = v1alpha1.ObjectName(child)
	return a, v.derived(child, v.derivedConfig(child, addresses), addresses)
}

func (v *view) derived(name string, config nad.Config, addresses []netip.Addr) *nad.ApplyConfiguration {
	n := nad.Apply(v.Infra.Namespace, name, config)
	n.WithLabels(v.labels()).WithAnnotations(v.derivedAnnotations(addresses)).WithOwnerReferences(v.owner())
	return n
}

// shares says whether a component is on the copy that all share. One that an older manager put on a copy of its own stays there
// until it is made anew: another network is another pod, and a running pod loses a network that is renamed.
func (v *view) shares(child string) bool {
	return v.vlan.config.IsOVN() && !v.vlan.direct && v.Children.network(child) != child
}

// shared is the copy that components share; nil where none does.
func (v *view) shared() *nad.ApplyConfiguration {
	for component, on := range switchedOn(v.Infra.Spec.InfraComponents) {
		if on && v.shares(names.Child(v.Infra.Name, string(component))) {
			name := names.SharedNetwork(v.Infra.Name)
			return v.derived(name, v.vlan.config.CopyForOVN(nad.NetworkOnOVN(v.Infra.Namespace, v.Infra.Name), v.Infra.Namespace, name), nil)
		}
	}
	return nil
}

// network is the NetworkAttachmentDefinition that a child has; empty while there is no child.
func (c Children) network(child string) string {
	switch {
	case c.DHCP != nil && c.DHCP.Name == child:
		return string(c.DHCP.Spec.NetworkConfig.NetworkAttachmentDefinition)
	case c.DNS != nil && c.DNS.Name == child:
		return string(c.DNS.Spec.NetworkConfig.NetworkAttachmentDefinition)
	case c.Proxy != nil && c.Proxy.Name == child:
		return string(c.Proxy.Spec.NetworkConfig.NetworkAttachmentDefinition)
	}
	return ""
}

func (v *view) derivedConfig(child string, addresses []netip.Addr) nad.Config {
	if v.vlan.config.IsOVN() { // as an older manager named the network
		return v.vlan.config.CopyForOVN(fmt.Sprintf("%s.%s", v.Infra.Namespace, v.Infra.Name), v.Infra.Namespace, child)
	}
	s := nad.Static{
		Name: child, Gateway: v.gateway, Routes: clientNetworks(v.Infra), Anywhere: v.vlan.anywhere, PreventForwarding: v.vlan.tuned,
		Addresses: []netip.Prefix{netip.PrefixFrom(addresses[0], v.cidr.Bits())},
	}
	for _, literal := range addresses[1:] {
		s.Addresses = append(s.Addresses, netip.PrefixFrom(literal, literal.BitLen()))
	}
	return v.vlan.config.WithStatic(s)
}

// derivedAnnotations are the source's resource name, by which pods are scheduled, and what the network was derived from, which
// tells the pods on it whether anybody but a newer manager wants another network (podOf). All others of the source are about the
// source itself: OVN-Kubernetes writes its network's ID and name (k8s.ovn.org/, networkmanager/nad_controller.go) on ours too, and
// puts back what we would copy; a GitOps tool prunes what carries its mark.
func (v *view) derivedAnnotations(addresses []netip.Addr) map[string]string {
	all := map[string]string{
		names.AnnotationSource:       v.NAD.Namespace + "/" + v.NAD.Name,
		names.AnnotationInputs:       digest([]any{v.vlan.config.Carrier(), v.cidr, v.gateway, addresses, clientNetworks(v.Infra)}),
		names.AnnotationFormerInputs: v.formerInputs(addresses, true) + "," + v.formerInputs(addresses, false),
	}
	if resource := v.NAD.Annotations[nad.ResourceName]; resource != "" {
		all[nad.ResourceName] = resource
	}
	return all
}

// formerInputs are what managers before v0.2 took of the same for its inputs, tuned or not. Pods that they sealed are the same.
func (v *view) formerInputs(addresses []netip.Addr, tuned bool) string {
	return digest([]any{v.NAD.Spec.Config, v.cidr, v.gateway, addresses, clientNetworks(v.Infra), tuned})
}

func clientNetworks(infra *v1alpha1.Infra) []netip.Prefix {
	var all []netip.Prefix
	for _, text := range infra.Spec.NetworkConfig.ClientCIDRs {
		if p, err := netip.ParsePrefix(string(text)); err == nil {
			all = append(all, p)
		}
	}
	return all
}

// request gathers what ipam has to know: what is written, what was given, and what belongs to others.
func (v *view) request() ipam.Request {
	c := v.Infra.Spec.InfraComponents
	return ipam.Request{
		CIDR: v.cidr, Gateway: v.gateway,
		Enabled: switchedOn(c),
		Written: written(v.Infra), Given: given(v.Infra, v.Children),
		WrittenPool: span(c.DHCP.RangeStart, c.DHCP.RangeEnd), GivenPool: givenPool(v.Infra, v.Children),
		Taken: slices.Concat(v.takenHere(), v.takenByEndpoints(), v.takenByApps(), v.takenByNeighbours()),
	}
}

// takenHere are addresses of this VLAN that the user tells us of, and those of the network's own IPAM.
func (v *view) takenHere() []ipam.Taken {
	n, dhcp := v.Infra.Spec.NetworkConfig, v.Infra.Spec.InfraComponents.DHCP
	var taken []ipam.Taken
	for _, r := range dhcp.Reservations {
		taken = append(taken, ipam.Taken{Range: span(r.IP, r.IP), By: "a reservation", Reserved: true})
	}
	keepFree := func(r ipam.Range) { taken = append(taken, ipam.Taken{Range: r}) }
	if at := endpoint.Advertised(v.HostedCluster); at.IsValid() {
		keepFree(ipam.Single(at))
	}
	for _, r := range dhcp.ExcludeRanges {
		keepFree(span(r.Start, r.End))
	}
	for _, a := range n.DNSServers {
		keepFree(span(a, a))
	}
	for _, a := range n.NTPServers {
		keepFree(span(a, a))
	}
	for _, r := range n.Routes {
		keepFree(span(r.Gateway, r.Gateway))
	}
	if v.vlan.broken == "" && v.vlan.source != nil {
		for _, r := range v.vlan.config.Addresses() {
			keepFree(r)
		}
	}
	return taken
}

// takenByEndpoints are what workers dial on the VLAN itself, where the proxy may stand, and what the proxy dials there.
func (v *view) takenByEndpoints() []ipam.Taken {
	var taken []ipam.Taken
	for _, e := range append(slices.Clone(v.table.Endpoints), v.table.Announced()...) {
		for _, a := range e.Literals {
			taken = append(taken, ipam.Taken{Range: ipam.Single(a), By: "endpoint " + e.Name, But: ipam.Proxy})
		}
		for _, target := range e.Backend.Addresses {
			taken = append(taken, ipam.Taken{Range: ipam.Single(target.Addr()), By: "the target of endpoint " + e.Name})
		}
	}
	return taken
}

// written are the addresses in the Infra's spec.
func written(infra *v1alpha1.Infra) map[ipam.Component]netip.Addr {
	c := infra.Spec.InfraComponents
	return addresses(c.DHCP.ServerIP, c.DNS.ServerIP, c.Proxy.ServerIP)
}

func (c Children) addresses() map[ipam.Component]netip.Addr {
	var dhcp v1alpha1.IPv4Address
	var dns, proxy v1alpha1.IPAddress
	if c.DHCP != nil {
		dhcp = c.DHCP.Spec.NetworkConfig.ServerIP
	}
	if c.DNS != nil {
		dns = c.DNS.Spec.NetworkConfig.ServerIP
	}
	if c.Proxy != nil {
		proxy = c.Proxy.Spec.NetworkConfig.ServerIP
	}
	return addresses(dhcp, dns, proxy)
}

func (c Children) pool() ipam.Range {
	if c.DHCP == nil {
		return ipam.Range{}
	}
	return span(c.DHCP.Spec.LeaseConfig.RangeStart, c.DHCP.Spec.LeaseConfig.RangeEnd)
}

func (c Children) exclusions() []ipam.Range {
	if c.DHCP == nil {
		return nil
	}
	var all []ipam.Range
	for _, r := range c.DHCP.Spec.ExcludeRanges {
		all = append(all, span(r.Start, r.End))
	}
	return all
}

func addresses(dhcp v1alpha1.IPv4Address, dns, proxy v1alpha1.IPAddress) map[ipam.Component]netip.Addr {
	all := map[ipam.Component]netip.Addr{}
	add := func(c ipam.Component, text string) {
		if a, err := netip.ParseAddr(text); err == nil {
			all[c] = a
		}
	}
	add(ipam.DHCP, string(dhcp))
	add(ipam.DNS, string(dns))
	add(ipam.Proxy, string(proxy))
	return all
}

func span[T ~string](first, last T) ipam.Range {
	var r ipam.Range
	r.First, _ = netip.ParseAddr(string(first))
	r.Last, _ = netip.ParseAddr(string(last))
	return r
}
