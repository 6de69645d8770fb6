package address

import (
	"slices"

	"github.com/cldmnky/oooi/internal/ipam"
	"github.com/cldmnky/oooi/internal/plan/input"
)

// request is the input of ipam: what the user wrote, what was given earlier, and what is taken.
func (a Addressed) request() ipam.Request {
	c := a.Infra.Spec.InfraComponents
	return ipam.Request{
		CIDR: a.CIDR, Gateway: a.Gateway,
		Enabled: input.Instances(c),
		Written: input.Written(a.Infra), Given: input.Given(a.Infra, a.Children),
		WrittenPool: input.Span(c.DHCP.RangeStart, c.DHCP.RangeEnd), GivenPool: input.GivenPool(a.Infra, a.Children),
		Taken: slices.Concat(a.takenHere(), a.takenByEndpoints(), a.takenByApps(), a.takenByNeighbours()),
	}
}

// WholePool is the largest pool that the VLAN has room for, and whether that has as many addresses as are needed.
func (a Addressed) WholePool(needs int64) (ipam.Range, bool) {
	r := a.request()
	r.WrittenPool, r.GivenPool = ipam.Range{}, ipam.Range{}
	whole := ipam.Assign(r)
	return whole.Pool, int64(whole.Size()) >= needs
}
