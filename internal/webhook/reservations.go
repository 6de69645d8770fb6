package webhook

import (
	"context"
	"fmt"
	"slices"

	"github.com/cldmnky/oooi/api/v1alpha1"
)

// reservations are warnings of those that this request writes and that take a client's address away from it: a kubelet keeps
// the address of its first day, so a worker that is moved falls out of its cluster.
func (r reviewer) reservations(ctx context.Context, before, after *v1alpha1.Infra) []string {
	written := after.Spec.InfraComponents.DHCP.Reservations
	if before != nil {
		was := before.Spec.InfraComponents.DHCP.Reservations
		written = slices.DeleteFunc(slices.Clone(written), func(one v1alpha1.Reservation) bool { return slices.Contains(was, one) })
	}
	if len(written) == 0 {
		return nil
	}
	leases, err := r.observer.Leases(ctx, after)
	if err != nil {
		r.log.Error(err, "reading the leases of an Infra whose reservations are to be written", "namespace", after.Namespace, "name", after.Name)
		return []string{notJudged}
	}
	all := moving(written, leases)
	if more := len(all) - mostMoved; more > 1 {
		all = append(all[:mostMoved], line(fmt.Sprintf("%d more reservations take a client's address away from it; compare: kubectl -n %s get dhcpleases", more, after.Namespace)))
	}
	return all
}

// moving are the clients that reservations move.
func moving(written []v1alpha1.Reservation, leases []v1alpha1.DHCPLease) (all []string) {
	for _, one := range written {
		for _, l := range leases {
			switch mine := one.MAC != "" && l.Spec.MAC == one.MAC || one.ClientID != "" && l.Spec.ClientID == one.ClientID; {
			case l.Spec.State != v1alpha1.LeaseBound:
			case l.Spec.IP == one.IP && !mine:
				all = append(all, line(fmt.Sprintf("ReservationTaken: %s is leased to %s, which loses it when it next renews; reserve another address, or shut that machine down first", one.IP, holder(l))))
			case l.Spec.IP != one.IP && mine:
				all = append(all, line(fmt.Sprintf("ReservationMoves: %s has %s and moves to %s when it next renews; a kubelet does not follow, so replace that worker", holder(l), l.Spec.IP, one.IP)))
			}
		}
	}
	return all
}

// holder of a lease, as people know it.
func holder(l v1alpha1.DHCPLease) string {
	key := string(l.Spec.MAC)
	if key == "" {
		key = l.Spec.ClientID
	}
	if l.Spec.Hostname == "" {
		return key
	}
	return l.Spec.Hostname + " (" + key + ")"
}
