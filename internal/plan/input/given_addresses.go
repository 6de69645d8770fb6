package input

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/component"
	"github.com/cldmnky/oooi/internal/ipam"
	"github.com/cldmnky/oooi/internal/names"
)

// memory is what was assigned, as the Infra's annotation AnnotationGiven records it. A backup has no status, and its restore creates an
// Infra before its ProxyServer (Velero: by resource name), while the manager runs.
type memory struct {
	// Of is the Infra as namespace/name: nothing was assigned to a copy of it.
	Of        string                        `json:"of"`
	Addresses map[component.Name]netip.Addr `json:"addresses"`
	Pool      []netip.Addr                  `json:"pool,omitempty"` // first and last
}

// Memory is the value of AnnotationGiven for what a plan has assigned to an Infra.
func Memory(infra *v1alpha1.Infra, addresses map[component.Name]netip.Addr, pool ipam.Range) string {
	m := memory{Of: infra.Namespace + "/" + infra.Name, Addresses: addresses}
	if pool.IsValid() {
		m.Pool = []netip.Addr{pool.First, pool.Last}
	}
	text, err := json.Marshal(m)
	if err != nil {
		panic(fmt.Sprintf("%v is not encoded: %v", m, err)) // addresses encode
	}
	return string(text)
}

// remembered is what an Infra's annotation says; nothing if it is for another Infra or network.
func remembered(infra *v1alpha1.Infra) (m memory) {
	text, ok := infra.Annotations[names.AnnotationGiven]
	cidr, err := netip.ParsePrefix(string(infra.Spec.NetworkConfig.CIDR))
	if !ok || err != nil || json.Unmarshal([]byte(text), &m) != nil || m.Of != infra.Namespace+"/"+infra.Name {
		return memory{}
	}
	for _, at := range slices.AppendSeq(slices.Clone(m.Pool), maps.Values(m.Addresses)) {
		if !cidr.Contains(at) {
			return memory{}
		}
	}
	return m
}

// Given are the addresses that were assigned before: those of the children, else of the annotation, else of status, so that a restore
// assigns the same ones. Users may write the last two: a name that is no component's gets no address.
func Given(infra *v1alpha1.Infra, children Children) map[component.Name]netip.Addr {
	all := map[component.Name]netip.Addr{}
	for _, a := range infra.Status.Addresses {
		at, err := netip.ParseAddr(string(a.IP))
		switch name := component.Name(a.Component); {
		case err != nil:
		case a.Instance == 0:
			all[name] = at
		case a.Instance == 1:
			all[name.Second()] = at
		}
	}
	assigned := children.Addresses()
	if len(assigned) < len(Instances(infra.Spec.InfraComponents)) { // else the annotation is not needed
		maps.Copy(all, remembered(infra).Addresses)
	}
	maps.Copy(all, assigned)
	maps.DeleteFunc(all, func(name component.Name, _ netip.Addr) bool {
		return !slices.Contains(component.Names(), name) && !slices.Contains(component.Seconds(), name)
	})
	return all
}

// GivenPool is the pool of the DHCPServer, else that of the annotation.
func GivenPool(infra *v1alpha1.Infra, children Children) ipam.Range {
	if pool := children.Pool(); pool.IsValid() || children.DHCP() != nil {
		return pool
	}
	if m := remembered(infra); len(m.Pool) == 2 {
		return ipam.Range{First: m.Pool[0], Last: m.Pool[1]}
	}
	return ipam.Range{}
}
