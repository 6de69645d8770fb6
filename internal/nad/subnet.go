package nad

import (
	"encoding/json"
	"net/netip"
	"slices"
	"strings"
)

// Subnet is the one network that the configuration's addresses are in, IPv4 before IPv6: from OVN-Kubernetes' subnets, and from the IPAM
// plugins host-local, whereabouts and static. The zero Prefix if there is none, or several of one family.
func (c Config) Subnet() netip.Prefix {
	texts := strings.Split(c.main.Subnets, ",")
	var p ipamPlugin
	if json.Unmarshal(c.main.IPAM, &p) == nil {
		texts = append(texts, p.subnets()...)
	}
	var v4, v6 []netip.Prefix
	for _, text := range texts {
		switch one, err := netip.ParsePrefix(strings.TrimSpace(text)); {
		case err != nil:
		case one.Addr().Is4() && !slices.Contains(v4, one.Masked()):
			v4 = append(v4, one.Masked())
		case one.Addr().Is6() && !slices.Contains(v6, one.Masked()):
			v6 = append(v6, one.Masked())
		}
	}
	switch {
	case len(v4) == 1:
		return v4[0]
	case len(v4) == 0 && len(v6) == 1:
		return v6[0]
	}
	return netip.Prefix{}
}

// subnets are as written; whereabouts may write first-last/bits.
func (p ipamPlugin) subnets() []string {
	all := []string{p.Subnet, p.Range}
	if _, last, spanned := strings.Cut(p.Range, "-"); spanned {
		all = append(all, last)
	}
	for _, a := range p.Addresses {
		all = append(all, a.Address)
	}
	for _, set := range p.Ranges {
		for _, one := range set {
			all = append(all, one.subnets()...)
		}
	}
	return all
}
