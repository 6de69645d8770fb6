package plan

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/cldmnky/oooi/api/v1alpha1"
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
	v := vlan{source: in.NAD, tuned: tuningAdmitted(in.SysctlAllowlist)}
	v.anywhere = slices.ContainsFunc(clientNetworks(in.Infra), func(p netip.Prefix) bool { return p.Bits() == 0 })
	if in.NAD == nil {
		return v
	}
	config, err := nad.Parse(in.NAD.Spec.Config)
	if err != nil {
		v.broken = err.Error()
		return v
	}
	v.config, v.broken = config, config.Unfit()
	lent := in.NAD.Namespace == in.Infra.Namespace || slices.Contains(in.Settings.NADSourceNamespaces, in.NAD.Namespace)
	v.direct = config.IsOVN() && !config.AssignsAddresses() && lent
	v.tuned = v.tuned && !config.IsOVN()
	return v
}

func tuningAdmitted(allowlist *corev1.ConfigMap) bool {
	return allowlist == nil || nad.Admits(allowlist.Data[allowlistKey])
}

func (n vlan) findings(v *view) []finding.Finding {
	key := Refs(v.Infra).NAD
	wrong := func(reason string) finding.Builder { return finding.Wrong(v1alpha1.ConditionNetworkReady, reason) }
	switch {
	case n.source == nil:
		return []finding.Finding{wrong("NADNotFound").At(fieldNAD).Say("NetworkAttachmentDefinition %s not found; create it, or set networkConfig.networkAttachmentDefinition", key)}
	case n.broken != "":
		return []finding.Finding{wrong("NADUnfit").In(nadObject(n.source)).At("spec.config").Say("NetworkAttachmentDefinition %s does not fit: %s", key, n.broken)}
	case n.config.IsOVN() && len(v.Infra.Spec.NetworkConfig.ClientCIDRs) > 0:
		return []finding.Finding{wrong("PolicyRoutingUnavailable").
			At("spec.networkConfig.clientCIDRs").Set(finding.Values{"spec.networkConfig.clientCIDRs": nil}).
			Say("networkConfig.clientCIDRs needs routes in our pods, which OVN-Kubernetes does not set on NetworkAttachmentDefinition %s; use a bridge, cnv-bridge or macvlan, or let the router translate those clients' addresses (SNAT) to its own", key)}
	}
	return n.notes(v)
}

func (n vlan) notes(v *view) []finding.Finding {
	var all []finding.Finding
	note := func(reason string) finding.Builder { return finding.Note(v1alpha1.ConditionNetworkReady, reason) }
	if !n.config.IsOVN() && !n.tuned {
		all = append(all, note("ForwardingNotPrevented").In(allowlistObject).At("data").Set(finding.Values{"data": map[string]any{allowlistKey: withLine(v.SysctlAllowlist)}}).
			Say("our pods' VLAN interface may forward packets; add the line %s to %s of ConfigMap openshift-multus/cni-sysctl-allowlist", nad.AllowlistLine(), allowlistKey))
	}
	if n.config.IsOVN() {
		all = append(all, note("ForwardingNotPrevented").In(nadObject(n.source)).At("spec.config").
			Say("our pods' VLAN interface may forward packets: OVN-Kubernetes takes no plugin that turns it off; its port security must drop foreign sources on the pod network"))
	}
	return all
}

// allowlistObject is what Multus' tuning plugin admits on OpenShift.
var allowlistObject = finding.Object{APIVersion: "v1", Kind: "ConfigMap", Namespace: "openshift-multus", Name: "cni-sysctl-allowlist"}

func withLine(allowlist *corev1.ConfigMap) string {
	lines := strings.TrimRight(allowlist.Data[allowlistKey], "\n")
	if lines != "" {
		lines += "\n"
	}
	return lines + nad.AllowlistLine() + "\n"
}

// attachment is how the pod of one component joins the VLAN: by a network of its own that gives it its addresses, on
// OVN-Kubernetes by the source or a copy, where the pod's annotation gives them.
func (v *view) attachment(child string, addresses ...netip.Addr) (v1alpha1.Attachment, *nad.ApplyConfiguration) {
	a := v1alpha1.Attachment{MACAddress: v1alpha1.MACAddress(names.MAC(v.Infra.Namespace, v.Infra.Name, addresses[0]))}
	if v.vlan.direct {
		a.NetworkAttachmentDefinition = v1alpha1.ObjectName(v.NAD.Name)
		a.NetworkAttachmentNamespace = v1alpha1.ObjectName(v.NAD.Namespace)
		return a, nil
	}
	a.NetworkAttachmentDefinition, a.NetworkAttachmentNamespace = v1alpha1.ObjectName(child), v1alpha1.ObjectName(v.Infra.Namespace)
	derived := nad.Apply(v.Infra.Namespace, child, v.derivedConfig(child, addresses))
	derived.WithLabels(v.labels()).WithAnnotations(v.derivedAnnotations(addresses)).WithOwnerReferences(v.owner())
	return a, derived
}

func (v *view) derivedConfig(child string, addresses []netip.Addr) nad.Config {
	if v.vlan.config.IsOVN() {
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

// derivedAnnotations are the source's, k8s.v1.cni.cncf.io/resourceName above all (pods are scheduled by it), without
// those that are about the source itself. What it was derived from tells the pods on it whether anybody but a newer
// manager wants another network (podOf).
func (v *view) derivedAnnotations(addresses []netip.Addr) map[string]string {
	all := maps.Clone(v.NAD.Annotations)
	delete(all, corev1.LastAppliedConfigAnnotation)
	delete(all, names.AnnotationAllowedNamespaces)
	if all == nil {
		all = map[string]string{}
	}
	all[names.AnnotationSource] = v.NAD.Namespace + "/" + v.NAD.Name
	all[names.AnnotationInputs] = digest([]any{v.NAD.Spec.Config, v.cidr, v.gateway, addresses, clientNetworks(v.Infra), v.vlan.tuned})
	return all
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
		WrittenPool: span(c.DHCP.RangeStart, c.DHCP.RangeEnd), GivenPool: v.Children.pool(),
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
	for _, e := range v.table.Endpoints {
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

// given are the addresses that were given before: as the children have them, else as status says, so that a restore
// without status gives the same ones.
func given(infra *v1alpha1.Infra, children Children) map[ipam.Component]netip.Addr {
	all := map[ipam.Component]netip.Addr{}
	for _, a := range infra.Status.Addresses {
		if at, err := netip.ParseAddr(string(a.IP)); err == nil && a.Instance == 0 {
			all[ipam.Component(a.Component)] = at
		}
	}
	maps.Copy(all, children.addresses())
	return all
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
	for c, text := range map[ipam.Component]string{ipam.DHCP: string(dhcp), ipam.DNS: string(dns), ipam.Proxy: string(proxy)} {
		if a, err := netip.ParseAddr(text); err == nil {
			all[c] = a
		}
	}
	return all
}

func span[T ~string](first, last T) ipam.Range {
	var r ipam.Range
	r.First, _ = netip.ParseAddr(string(first))
	r.Last, _ = netip.ParseAddr(string(last))
	return r
}
