package dhcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cldmnky/oooi/api/v1alpha1"
	ac "github.com/cldmnky/oooi/api/v1alpha1/applyconfiguration/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/daemon"
	"github.com/cldmnky/oooi/internal/dhcp/pool"
)

// The counts of leases are read every looksEvery, and change in status every countsEvery at most; conditions change at once. An Infra's status,
// which changes at most once a second (internal/status), is then less than 2 s old.
const (
	looksEvery  = 200 * time.Millisecond
	countsEvery = 500 * time.Millisecond
)

// roomEvery is how often the pool is checked, which may take a walk over it. roomLasts is how long there must be room again before status says
// so, because a client may take and release the last address over and over.
const (
	roomEvery = 2 * time.Second
	roomLasts = 5 * time.Second
)

// watched is how full the pool was at the last look.
type watched struct {
	pool.Room
	at, full time.Time
}

func (w *watched) look(now time.Time, room func() pool.Room) {
	if now.Sub(w.at) < roomEvery {
		return
	}
	w.at = now
	if next := room(); next.None {
		w.Room, w.full = next, now
	} else if now.Sub(w.full) >= roomLasts {
		w.Room = next
	}
}

// keepStatus reports: conditions at once, counts when they may change.
func (i *instance) keepStatus(ctx context.Context) error {
	var said reported
	var last []byte
	ticker := time.NewTicker(looksEvery)
	defer ticker.Stop()
	for {
		if now := i.report(); now.server != nil {
			next := said.next(now)
			if text, err := json.Marshal(next); err == nil && !bytes.Equal(text, last) { // each Set causes a write
				last = text
				i.status.Set(next)
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-i.changed:
		case <-i.ready.Changed():
		case <-ticker.C:
		}
	}
}

func (i *instance) report() report {
	at := time.Now()
	now, steady := i.Clock.Now()
	i.room.look(at, func() pool.Room { return i.server.Table.Room(now, steady) }) // which may take long, and each write wants the lock
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.newest != nil && i.Number >= len(i.newest.Spec.NetworkConfig.ServerIPs()) {
		return report{} // of an instance that is to go, the manager takes back what it last said (status.Writer)
	}
	r := report{number: i.Number, seen: i.newest, written: i.status.Version(), at: at, steady: steady, server: i.object, serves: i.object != nil, refused: i.refused, ready: i.ready.Problem()}
	if i.object == nil && i.refused != nil {
		r.server = i.newest
	}
	r.room, r.synced = i.room.Room, i.server.synced.Load()
	r.counts = i.server.counts()
	return r
}

func (i *instance) wake() {
	select {
	case i.changed <- struct{}{}:
	default:
	}
}

// report is the state that status is made from.
type report struct {
	number  int                  // of this instance
	seen    *v1alpha1.DHCPServer // the newest object
	written string               // its version by our last write; empty before that
	at      time.Time
	server  *v1alpha1.DHCPServer // the object that is served, or else the one that was refused
	serves  bool
	refused error // why the newest object is not served
	ready   error
	synced  bool // the leases are read
	steady  bool
	room    pool.Room
	counts
}

type counts struct{ active, total, size int }

// reported is the last status: transition times and counts are carried over from it.
type reported struct {
	conditions []metav1.Condition
	counts
	counted time.Time
}

func (said *reported) next(r report) *ac.DHCPServerApplyConfiguration {
	if said.conditions == nil {
		said.conditions = slices.Clone(r.server.Status.Conditions)
	}
	if was := r.server.Status; !r.synced { // the other instance may know better
		said.counts = counts{int(was.ActiveLeases), int(was.TotalLeases), int(was.PoolSize)}
	} else if due := r.at.Sub(said.counted) >= countsEvery; due && r.counts != said.counts || r.size != said.size {
		said.counts, said.counted = r.counts, r.at
	}
	self := daemon.Instance(v1alpha1.IPAddress(r.server.Spec.NetworkConfig.ServerIPs()[r.number]), r.ready)
	next := ac.DHCPServer(r.server.Name, r.server.Namespace)
	r.tellWhomItKnows(self, next)
	status := ac.DHCPServerStatus().WithInstances(self).
		WithActiveLeases(int32(said.active)).WithTotalLeases(int32(said.total)).WithPoolSize(int32(said.size))
	for _, c := range []metav1.Condition{r.configAccepted(), r.addressesLeft(), r.clockSteady()} {
		meta.SetStatusCondition(&said.conditions, c)
		status.WithConditions(daemon.Condition(said.conditions, c))
	}
	return next.WithStatus(status)
}

// tellWhomItKnows names the instances that this one knows of. Unless it is known to have said the same last, that is written only where the
// DHCPServer is still as it was seen: else another instance might begin by a word that is out of date.
func (r report) tellWhomItKnows(self *ac.InstanceApplyConfiguration, next *ac.DHCPServerApplyConfiguration) {
	if r.seen == nil {
		return
	}
	says := named(r.seen)
	for _, at := range says {
		self.WithServesWith(v1alpha1.IPAddress(at.String()))
	}
	if !notOlder(r.seen, r.written) || !slices.Equal(saidBy(r.seen, *self.IP), says) {
		next.WithResourceVersion(r.seen.ResourceVersion)
	}
}

// own is a condition of this instance.
func (r report) own(kind string) string { return v1alpha1.InstanceCondition(kind, r.number) }

func (r report) configAccepted() metav1.Condition {
	if r.refused != nil {
		served := "nothing"
		if r.serves {
			served = "an older configuration"
		}
		return metav1.Condition{
			Type: r.own(v1alpha1.ConditionConfigAccepted), Status: metav1.ConditionFalse, Reason: "Refused",
			Message: fmt.Sprintf("%s is served: %v", served, r.refused), ObservedGeneration: r.seen.Generation,
		}
	}
	return metav1.Condition{
		Type: r.own(v1alpha1.ConditionConfigAccepted), Status: metav1.ConditionTrue, Reason: "Serving",
		Message: "the newest configuration is served", ObservedGeneration: r.server.Generation,
	}
}

func (r report) addressesLeft() metav1.Condition {
	c := metav1.Condition{
		Type: r.own(v1alpha1.ConditionAddressesLeft), Status: metav1.ConditionTrue, Reason: "AddressesLeft",
		Message: "a new machine on the VLAN gets an address", ObservedGeneration: r.server.Generation,
	}
	if r.room.Reserved {
		c.Message = "all addresses of the pool are reserved: a machine without a reservation gets none"
	}
	if r.room.None {
		c.Status, c.Reason = metav1.ConditionFalse, string(PoolExhausted)
		c.Message = fmt.Sprintf("no address is left for a new machine: %d are leased, %d are set aside because another host answers there, %d are reserved or excluded; %s", r.room.Leased, r.room.Resting, r.room.Closed, wider)
	}
	return c
}

func (r report) clockSteady() metav1.Condition {
	if !r.steady {
		return metav1.Condition{
			Type: r.own(v1alpha1.ConditionClockSteady), Status: metav1.ConditionFalse, Reason: "ClockUnsteady",
			Message:            "the API server's time jumped against this node's clock, or is not known yet: no expired address is given to another client",
			ObservedGeneration: r.server.Generation,
		}
	}
	return metav1.Condition{
		Type: r.own(v1alpha1.ConditionClockSteady), Status: metav1.ConditionTrue, Reason: "ClockSteady",
		Message: "the API server's time moves with this node's", ObservedGeneration: r.server.Generation,
	}
}
