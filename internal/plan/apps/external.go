package apps

import (
	"net/netip"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/plan/address"
	"github.com/cldmnky/oooi/internal/plan/input"
)

// accept uses the external IPs that may be used; while there is none, the route stays as it is.
func (a *publisher) accept(ips []netip.Addr, service types.NamespacedName) {
	good := slices.DeleteFunc(slices.Clone(ips), func(at netip.Addr) bool { return a.Refuses(at) != (address.Refusal{}) })
	for _, at := range ips {
		f, refused := a.refused(at)
		if len(good) > 0 && at.Is4() != a.CIDR.Addr().Is4() { // a dual-stack MetalLB gives one of each family
			f.Severity = finding.Warning
		}
		if refused {
			a.findings = append(a.findings, f)
		}
	}
	if len(good) == 0 {
		return
	}
	slices.SortFunc(good, netip.Addr.Compare)
	a.route = a.leadingTo(good, "Service "+service.String()+" of the hosted cluster")
}

func (a *publisher) leadingTo(addresses []netip.Addr, source string) input.AppsRoute {
	dialled := a.dialled(addresses)
	return input.AppsRoute{HTTPS: at(dialled, int32(a.spec.Ports.HTTPS)), HTTP: at(dialled, int32(a.spec.Ports.HTTP)), Answers: addresses, Source: source}
}

func at(addresses []netip.Addr, port int32) []netip.AddrPort {
	var all []netip.AddrPort
	for _, a := range addresses {
		all = append(all, netip.AddrPortFrom(a, uint16(port)))
	}
	return all
}

// dialled are the addresses on the VLAN, if there are any: for these the proxy binds its own address there, which it cannot for others.
func (a *publisher) dialled(all []netip.Addr) []netip.Addr {
	inside := slices.DeleteFunc(slices.Clone(all), func(at netip.Addr) bool { return !a.CIDR.Contains(at) })
	if len(inside) > 0 {
		return inside
	}
	return all
}

// refused says why an external IP is not used.
func (a *publisher) refused(at netip.Addr) (finding.Finding, bool) {
	const unused = "it is not used"
	outside := fail("ExternalIPOutsideNetwork", fieldApps)
	switch r := a.Refuses(at); {
	case r.Holder != "":
		return outside.Say("the hosted cluster gives *.apps the address %s, which is %s; %s: remove it from MetalLB's pools", at, r.Holder, unused), true
	case r.Outside:
		return outside.Say("the hosted cluster gives *.apps the address %s, which is not a host address in networkConfig.cidr %s; %s: configure MetalLB to give an address of the VLAN, or ask the administrator to add this address's network to --extra-endpoint-cidrs", at, a.CIDR, unused), true
	case r.BeyondPool:
		return fail("ExternalIPOutsidePool", fieldPool).Say("the hosted cluster gives *.apps the address %s, which lies outside appsIngress.metallb.ipAddressPoolRange %v; %s: add its range, or set appsIngress.metallb.addressPoolName", at, a.spec.MetalLB.IPAddressPoolRange, unused), true
	}
	return finding.Finding{}, false
}
