package diffcli

import (
	"context"
	"fmt"
	"net/netip"
	"reflect"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/change"
	"github.com/cldmnky/oooi/internal/component"
	"github.com/cldmnky/oooi/internal/dhcp"
	"github.com/cldmnky/oooi/internal/dhcp/leasekube"
	"github.com/cldmnky/oooi/internal/dhcp/pool"
)

// Lease is one that a change touches.
type Lease struct {
	IP       string `json:"ip"`
	MAC      string `json:"mac,omitempty"`
	Hostname string `json:"hostname,omitempty"`
	Notices  string `json:"notices"`
}

// leases of an Infra that a change of its DHCPServer touches.
func (d *differ) leases(ctx context.Context, before, after change.Picture) (touched []Lease, err error) {
	was, is := dhcpServer(before), dhcpServer(after)
	if was == nil || is == nil || reflect.DeepEqual(was.Spec, is.Spec) {
		return nil, nil
	}
	all := &v1alpha1.DHCPLeaseList{}
	if err := d.List(ctx, all, client.InNamespace(was.Namespace)); err != nil {
		return nil, err
	}
	from, err := dhcp.ConfigOf(was, 0)
	if err != nil {
		return nil, nil // its daemon serves what it had before, which nobody else knows
	}
	to, err := dhcp.ConfigOf(is, 0)
	if err != nil {
		return nil, nil
	}
	for _, l := range all.Items {
		if string(l.Spec.ServerRef.Name) != was.Name || l.Spec.State != v1alpha1.LeaseBound {
			continue
		}
		if why := notices(&from, &to, l.Spec); why != "" {
			touched = append(touched, Lease{IP: string(l.Spec.IP), MAC: string(l.Spec.MAC), Hostname: l.Spec.Hostname, Notices: why})
		}
	}
	return touched, nil
}

func dhcpServer(p change.Picture) *v1alpha1.DHCPServer {
	s, _ := p.Children[component.DHCP].Server.(*v1alpha1.DHCPServer)
	return s
}

// notices is what the holder of a lease notices of another configuration: a holder is refused at its renewal only what nobody may have, and
// at its next boot what is reserved (docs/reference/dhcp-rules.md#wire-4 and dhcp-rules.md#wire-6).
func notices(from, to *pool.Config, l v1alpha1.DHCPLeaseSpec) string {
	ip, err := netip.ParseAddr(string(l.IP))
	if err != nil {
		return ""
	}
	holder := leasekube.ClientOf(l.MAC, l.ClientID)
	closed := to.Closed(ip, holder)
	reservation, reserved := to.ReservationAt(ip)
	mine, has := to.ReservationOf(holder)
	_, had := from.ReservationOf(holder)
	switch {
	case closed != "" && from.Closed(ip, holder) == "" && reserved:
		return fmt.Sprintf("it keeps the address until it boots again or its lease ends, and %s, for whom that is now reserved, waits for that", reservation.Client)
	case closed != "" && from.Closed(ip, holder) == "":
		return "it loses the address at its next renewal: " + closed
	case has && mine.IP != ip && !had:
		return fmt.Sprintf("it keeps the address until it boots again, and then gets %s, which is now reserved for it", mine.IP)
	case from.Covers(ip) && !to.Covers(ip) && (!has || mine.IP != ip):
		return "the pool no longer has the address: it keeps it as long as it renews, and nobody gets it afterwards"
	}
	return ""
}
