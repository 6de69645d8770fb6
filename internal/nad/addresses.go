package nad

import (
	"encoding/json"
	"net/netip"
	"strings"

	"github.com/cldmnky/oooi/internal/ipam"
)

// AssignsAddresses says whether the network assigns addresses to its pods. With bridge binding KubeVirt would then answer the guest's DHCP
// itself, and OVN-Kubernetes would pin the port to that address.
func (c Config) AssignsAddresses() bool {
	if c.IsOVN() {
		return c.assignsOnOVN()
	}
	var ipam struct {
		Type string `json:"type"`
	}
	return json.Unmarshal(c.main.IPAM, &ipam) == nil && ipam.Type != ""
}

type ipamPlugin struct {
	Range      string          `json:"range"`
	Start      string          `json:"range_start"`
	End        string          `json:"range_end"`
	Subnet     string          `json:"subnet"`
	RangeStart string          `json:"rangeStart"`
	RangeEnd   string          `json:"rangeEnd"`
	Ranges     [][]ipamPlugin  `json:"ranges"`
	Addresses  []staticAddress `json:"addresses"`
}

type staticAddress struct {
	Address string `json:"address"`
	Gateway string `json:"gateway,omitempty"`
}

// Addresses are the ranges from which the network's own IPAM may assign addresses to others: host-local's, whereabouts' and static's. A
// range that is a whole subnet is left out: it does not say which addresses are in use.
func (c Config) Addresses() []ipam.Range {
	var p ipamPlugin
	if json.Unmarshal(c.main.IPAM, &p) != nil {
		return nil
	}
	all := p.ranges()
	for _, set := range p.Ranges {
		for _, one := range set {
			all = append(all, one.ranges()...)
		}
	}
	for _, a := range p.Addresses {
		if prefix, err := netip.ParsePrefix(a.Address); err == nil {
			all = append(all, ipam.Single(prefix.Addr()))
		}
	}
	return all
}

// BakesAddresses says whether the network's static IPAM itself names the pod's addresses. The pod must not ask Multus for them again: if
// the network lacks the capability `ips`, Multus passes them as CNI_ARGS, static adds them a second time, and the CNI ADD fails with "file
// exists".
func (c Config) BakesAddresses() bool {
	var p ipamPlugin
	return json.Unmarshal(c.main.IPAM, &p) == nil && len(p.Addresses) > 0
}

// ranges reads the one range that is written in host-local's keys (subnet, rangeStart, rangeEnd) or in those of whereabouts (range, which
// may be first-last/bits, range_start, range_end).
func (p ipamPlugin) ranges() []ipam.Range {
	first, last := orElse(p.RangeStart, p.Start), orElse(p.RangeEnd, p.End)
	if from, to, ok := strings.Cut(p.Range, "-"); ok {
		to, _, _ = strings.Cut(to, "/")
		first, last = orElse(first, from), orElse(last, to)
	}
	if first == "" && last == "" {
		return nil
	}
	subnet, _ := netip.ParsePrefix(orElse(p.Subnet, p.Range))
	r := ipam.Usable(subnet)
	if a, err := netip.ParseAddr(first); err == nil {
		r.First = a
	}
	if a, err := netip.ParseAddr(last); err == nil {
		r.Last = a
	}
	if !r.IsValid() {
		return nil
	}
	return []ipam.Range{r}
}

func orElse(value, fallback string) string {
	if value == "" {
		return fallback
	}
	return value
}
