package provision

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"k8s.io/apimachinery/pkg/types"

	ac "github.com/cldmnky/oooi/api/v1alpha1/applyconfiguration/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/ipam"
	"github.com/cldmnky/oooi/internal/nad"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/plan/desired"
	"github.com/cldmnky/oooi/internal/plan/input"
)

// cidr is the VLAN's subnet, by the best source: our annotation, or else the HostedCluster's network of machines, or else the workers'
// NetworkAttachmentDefinition, or else the Infras that are on it already.
func (d *derivation) cidr(at types.NamespacedName) netip.Prefix {
	const key = names.AnnotationCIDR
	if _, set := d.HostedCluster.Annotations[key]; set {
		return annotated(d, key, "NETWORK/BITS", network)
	}
	cidr, err := machineNetwork(d.HostedCluster)
	if cidr = cmp.Or(cidr, d.ofNetwork(), d.ofInfras(at)); !cidr.IsValid() {
		machines := "spec.networking.machineNetwork"
		if err != nil {
			machines += fmt.Sprintf(" (%v)", err)
		}
		d.miss("CIDRMissing", key, "NETWORK/BITS", nil, "the VLAN's subnet is not known; these were tried in order: %s, the subnet in the workers' NetworkAttachmentDefinition, and the one that all Infras on it share", machines)
	}
	return cidr
}

// machineNetwork is the workers' in the HostedCluster; zero if it has none. Of two families it is IPv4's, which has DHCP.
func machineNetwork(hc *hyperv1.HostedCluster) (netip.Prefix, error) {
	machines := hc.Spec.Networking.MachineNetwork
	if len(machines) == 0 {
		return netip.Prefix{}, nil
	}
	at := max(0, slices.IndexFunc(machines, func(m hyperv1.MachineNetworkEntry) bool { return m.CIDR.IP.To4() != nil }))
	return network(machines[at].CIDR.String())
}

// ofNetwork is the subnet in the workers' NetworkAttachmentDefinition, unless that is another tenant's without a reference grant.
func (d *derivation) ofNetwork() netip.Prefix {
	if !d.mayJoin(d.NAD, d.HostedCluster.Namespace, d.ControlPlane) {
		return netip.Prefix{}
	}
	config, err := nad.Parse(d.NAD.Spec.Config)
	if err != nil {
		return netip.Prefix{}
	}
	cidr, _ := network(config.Subnet().String())
	return cidr
}

// ofInfras is the subnet of the existing Infra, or else the one that all others on the VLAN share. These need a reference grant to our
// network too, because anybody can be on its layer 2 with a copy of it in a namespace of their own.
func (d *derivation) ofInfras(at types.NamespacedName) netip.Prefix {
	if !d.mayJoin(d.NAD, d.HostedCluster.Namespace, d.ControlPlane) {
		return netip.Prefix{}
	}
	var all []netip.Prefix
	for _, n := range d.OnVLAN {
		cidr, err := network(string(n.Infra.Spec.NetworkConfig.CIDR))
		switch {
		case err != nil || !d.mayJoin(n.NAD, n.Infra.Namespace) || n.Infra.Namespace != d.HostedCluster.Namespace && !d.mayJoin(d.NAD, n.Infra.Namespace):
		case n.Infra.Namespace == d.HostedCluster.Namespace && n.Infra.Name == d.HostedCluster.Name && input.Refs(n.Infra).NAD == at:
			return cidr
		case !slices.Contains(all, cidr):
			all = append(all, cidr)
		}
	}
	if len(all) != 1 {
		return netip.Prefix{}
	}
	return all[0]
}

// dhcp has the range of the pool, if an annotation sets one. There is no DHCPv6.
func (d *derivation) dhcp(cidr netip.Prefix) *ac.DHCPConfigApplyConfiguration {
	if cidr.Addr().Is6() {
		d.findings = append(d.findings, finding.Warn(finding.Provisioned, "DHCPUnavailable").At(annotationField(names.AnnotationCIDR)).
			Say("the VLAN's subnet %s is IPv6, which our DHCP server does not support: workers must get their addresses elsewhere; if the VLAN has IPv4: %s", cidr, d.command(names.AnnotationCIDR, "NETWORK/BITS")))
		return ac.DHCPConfig().WithEnabled(false)
	}
	pool := annotated(d, names.AnnotationDHCPRange, "FIRST-LAST", func(text string) (ipam.Range, error) {
		first, last, found := strings.Cut(text, "-")
		if !found {
			return ipam.Range{}, errors.New("it is not a range such as 192.168.100.10-192.168.100.99")
		}
		in := inside(cidr)
		start, err := in(strings.TrimSpace(first))
		end, endErr := in(strings.TrimSpace(last))
		if err = errors.Join(err, endErr); err == nil && end.Less(start) {
			err = fmt.Errorf("%s lies before %s", end, start)
		}
		return ipam.Range{First: start, Last: end}, err
	})
	if !pool.IsValid() {
		return nil
	}
	return ac.DHCPConfig().WithRangeStart(desired.IPv4(pool.First)).WithRangeEnd(desired.IPv4(pool.Last))
}
