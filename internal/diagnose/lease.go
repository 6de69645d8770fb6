package diagnose

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/step"
)

// leaseTakes is how long a machine may take from its start to its first DISCOVER: firmware, kernel and initramfs of RHCOS need half of it.
const leaseTakes = 60 * time.Second

func machine(w worker, f Facts) step.Step {
	m := w.machine
	switch {
	case m == nil && f.Machines.Unread != "":
		return unread("virtual machines in "+f.controlPlane(), f.Machines.Unread)
	case m == nil:
		return skip("%s is no virtual machine of KubeVirt in %s", w.name, f.controlPlane())
	case m.Changes:
		return waits("the virtual machine is being started, stopped or deleted: %s", m.Status)
	case !m.Runs:
		return fail(notRunning, fmt.Sprintf("kubectl -n %s describe vm %s; then start it", f.controlPlane(), m.Name), "the virtual machine does not run: %s", m.Status)
	}
	return ok("the virtual machine runs since %s (%s), of NodePool %s", m.Started.UTC().Format(time.RFC3339), w.runs(f), m.Pool)
}

func card(w worker, f Facts) step.Step {
	m := w.machine
	if m == nil {
		return skip("its network card is not known here")
	}
	var elsewhere []string
	for _, c := range m.Cards {
		if c.Network == "" {
			return fail(podNetwork, "set spec.platform.kubevirt.attachDefaultNetwork: false in NodePool "+m.Pool, "a card of it is on the pod network: it gets its address and its default route there")
		}
		if !f.onVLAN(c.Network) {
			elsewhere = append(elsewhere, c.Network)
		} else if other := f.sharing(m, c.MAC); other != "" {
			return fail(duplicateMAC, fmt.Sprintf("kubectl -n %s edit vm %s: remove macAddress, and start it again", f.controlPlane(), m.Name), "virtual machine %s has its hardware address %s too", other, c.MAC)
		}
	}
	if len(elsewhere) == len(m.Cards) && f.Networks.Unread != "" {
		return unread("whether "+strings.Join(elsewhere, ", ")+" is the VLAN of "+f.network()+": NetworkAttachmentDefinitions", f.Networks.Unread)
	}
	if len(elsewhere) == len(m.Cards) && neverServed(f) != nil {
		return skip("the Infra is refused, so %s may not be the VLAN that is meant", f.network())
	}
	if len(elsewhere) == len(m.Cards) {
		return fail(otherNetwork, fmt.Sprintf("name %s in spec.platform.kubevirt.additionalNetworks of NodePool %s, or have the Infra serve that network", f.network(), m.Pool),
			"no card of it is on %s, the Infra's VLAN: it has %s", f.network(), strings.Join(elsewhere, ", "))
	}
	return ok("its card %s is on %s", m.Cards[0].MAC, f.network())
}

// network is the Infra's, as namespace/name.
func (f Facts) network() string { return networkOf(f.Infra) }

func networkOf(infra *v1alpha1.Infra) string {
	n := infra.Spec.NetworkConfig
	return cmp.Or(string(n.NetworkAttachmentNamespace), infra.Namespace) + "/" + string(n.NetworkAttachmentDefinition)
}

// onVLAN says whether a network is the Infra's, or on the same layer 2 as far as can be read.
func (f Facts) onVLAN(network string) bool { return f.sameVLAN(network, f.network()) }

func (f Facts) sameVLAN(a, b string) bool {
	layer2 := map[string]string{}
	for i := range f.Networks.Is {
		n := &f.Networks.Is[i]
		layer2[n.Namespace+"/"+n.Name] = n.Layer2()
	}
	return a == b || layer2[a] != "" && layer2[a] == layer2[b]
}

// ofAnother says whether a machine is a worker of another Infra of the same HostedCluster: no card of it is on this one's VLAN, and one is on that
// one's.
func (f Facts) ofAnother(m *Machine) bool {
	on := func(infra *v1alpha1.Infra) bool {
		return slices.ContainsFunc(m.Cards, func(c Card) bool { return c.Network != "" && f.sameVLAN(c.Network, networkOf(infra)) })
	}
	return !on(f.Infra) && slices.ContainsFunc(f.Others, func(other v1alpha1.Infra) bool {
		return other.Name != f.Infra.Name && clusterOf(&other) == f.cluster() && on(&other)
	})
}

// sharing is another running machine with this hardware address.
func (f Facts) sharing(m *Machine, mac string) string {
	for i := range f.Machines.Is {
		if other := &f.Machines.Is[i]; other.Name != m.Name && other.Runs && other.has(mac) {
			return other.Name
		}
	}
	return ""
}

func leased(w worker, f Facts) step.Step {
	switch l, start := w.lease, w.started(); {
	case f.Leases.Unread != "":
		return unread("leases", f.Leases.Unread)
	case f.DHCP.Unread == "" && f.DHCP.Is == nil:
		return skip("DHCP is disabled")
	case l == nil || l.Spec.State == v1alpha1.LeaseReleased || l.Spec.State == v1alpha1.LeaseBound && l.Spec.DurableUntilTime.Time.Before(start):
		return f.unleased(w) // the lease is of an earlier start, or of a machine that was called so before
	case l.Spec.State == v1alpha1.LeaseDeclined:
		return fail(addressInUse, "find that host, or exclude the address (dhcp.excludeRanges)", "it was given %s, found another host there, and declined it", l.Spec.IP)
	case !bound(l, f.Now):
		return fail(leaseEnded, "look at the machine's console: it has not renewed, so it is off the VLAN or its network is not up", "its lease of %s was promised until %s",
			l.Spec.IP, l.Spec.DurableUntilTime.UTC().Format(time.RFC3339))
	default:
		return ok("it has %s, first leased %s, until %s", l.Spec.IP, w.after(l.CreationTimestamp.Time), LeaseEnd(l.Spec, f.Now).Format(time.RFC3339))
	}
}

// LeaseEnd is when a lease ends, as far as its client was told. Once that has passed it is the last moment until which the client may have renewed:
// renewals below that write nothing (dhcp-rules.md#lease-3).
func LeaseEnd(l v1alpha1.DHCPLeaseSpec, now time.Time) time.Time {
	if told, err := time.Parse(time.RFC3339, l.ExpirationTime); err == nil && now.Before(told) {
		return told.UTC()
	}
	return l.DurableUntilTime.UTC()
}

// bound says whether a lease protects its holder.
func bound(l *v1alpha1.DHCPLease, now time.Time) bool {
	return l.Spec.State == v1alpha1.LeaseBound && now.Before(l.Spec.DurableUntilTime.Time)
}

// unleased finds out why a machine has no lease.
func (f Facts) unleased(w worker) step.Step {
	if f.DHCP.Unread != "" {
		return skip("it has no lease; why is not known without the DHCPServer")
	}
	if c := exhausted(f.DHCP.Is); c != nil {
		return fail(noAddress, "do what that says", "it has no lease, and %s", c.Message)
	}
	if f.allReserved(w) {
		return fail(noAddress, "reserve one for it (dhcp.reservations), or widen the pool", "it has no lease: all %d addresses of the pool are reserved for others", f.DHCP.Is.Status.PoolSize)
	}
	for _, e := range f.Warnings.Is {
		if at := lastSeen(e.LastTimestamp, e.EventTime); e.Reason == "ForeignServer" && at.After(w.started()) {
			return fail(foreignServer, "switch that server off, then restart the machine", "it has no lease of ours, and %s", e.Message)
		}
	}
	if w.runs(f) < leaseTakes {
		return waits("it started %s ago and has no lease yet", w.runs(f))
	}
	if f.Warnings.Unread != "" {
		return unread("it has no lease, and whether another DHCP server answers it: events", f.Warnings.Unread)
	}
	return fail(noDiscover, fmt.Sprintf("see on its console whether it boots (virtctl -n %s console %s); then whether the node's bridge of %s carries the VLAN to the nodes of %s",
		f.controlPlane(), w.name, f.network(), serving(f.DHCP.Is.Status.Instances)), "it started %s ago and has no lease: its DISCOVER has not reached DHCP, or it sends none", w.runs(f))
}

// exhausted is the condition of an instance that has no address left, unless that is of a former configuration.
func exhausted(d *v1alpha1.DHCPServer) *metav1.Condition {
	if d == nil {
		return nil
	}
	current := slices.DeleteFunc(slices.Clone(d.Status.Conditions), func(c metav1.Condition) bool { return c.ObservedGeneration != d.Generation })
	return notSo(d.Status.Instances, current, v1alpha1.ConditionAddressesLeft)
}

// notSo is the first of the instances' conditions of a kind that is False.
func notSo(instances []v1alpha1.Instance, conditions []metav1.Condition, kind string) *metav1.Condition {
	for i := range instances {
		if c := meta.FindStatusCondition(conditions, v1alpha1.InstanceCondition(kind, i)); c != nil && c.Status == metav1.ConditionFalse {
			return c
		}
	}
	return nil
}

// allReserved says whether a pool has only reservations, and none for the machine. Such a pool never counts as exhausted.
func (f Facts) allReserved(w worker) bool {
	if f.DHCP.Is == nil || w.machine == nil {
		return false
	}
	all := f.DHCP.Is.Spec.Reservations
	return len(all) > 0 && int(f.DHCP.Is.Status.PoolSize) <= len(all) && !slices.ContainsFunc(all, func(r v1alpha1.Reservation) bool { return w.machine.has(string(r.MAC.Address())) })
}

// lastSeen is when an event was seen last: in a series, or as the only one.
func lastSeen(last metav1.Time, at metav1.MicroTime) time.Time {
	return slices.MaxFunc([]time.Time{last.Time, at.Time}, time.Time.Compare)
}

// hostname compares what DHCP sent with the machine's name: by that HyperShift's machine approver knows the kubelet.
func hostname(w worker, f Facts) step.Step {
	switch {
	case w.machine == nil || w.lease == nil || f.Leases.Unread != "":
		return skip("its host name is not known here")
	case w.lease.Spec.Hostname == "":
		return fail(wrongHostname, "restart it: DHCP names a machine that it knows when it asks", "DHCP has given it no host name, so its kubelet does not ask as %s", w.name)
	case w.lease.Spec.Hostname != w.name:
		return fail(wrongHostname, "remove the host name from its reservation (dhcp.reservations), then restart it", "DHCP has named it %s, and its machine is %s: nobody approves its certificate", w.lease.Spec.Hostname, w.name)
	}
	return ok("DHCP has named it %s, as its machine", w.name)
}
