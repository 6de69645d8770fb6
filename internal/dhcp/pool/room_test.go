package pool

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cldmnky/oooi/internal/dhcp/lease"
	"github.com/cldmnky/oooi/internal/dhcp/wire"
)

type noMachines struct{}

func (noMachines) Owner(string) Owner               { return Owner{} }
func (noMachines) InUse(string) bool                { return false }
func (noMachines) Exists(lease.VM) (bool, lease.VM) { return true, lease.VM{} }

func TestRoomIsWhatANewMachineWouldGet(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	at := func(host int) netip.Addr { return netip.MustParseAddr(fmt.Sprintf("192.168.100.%d", host)) }
	bound := func(host int, until time.Duration) lease.Record {
		return lease.Record{IP: at(host), Client: lease.Client{MAC: fmt.Sprintf("52:54:00:00:00:%02x", host)}, State: lease.Bound, Horizon: now.Add(until), Version: 1}
	}
	changed := func(r lease.Record, s lease.State) lease.Record {
		r.State = s
		return r
	}
	released := changed(bound(12, time.Hour), lease.Released)
	released.Dropped = []netip.Addr{at(2)}
	full := []lease.Record{bound(10, time.Hour), bound(11, time.Hour), bound(12, time.Hour)}
	for name, c := range map[string]struct {
		records  []lease.Record
		inUse    int
		reserved []int
		unsteady bool
		want     Room
	}{
		"one is left":                         {full[:2], 0, nil, false, Room{Closed: 1}},
		"all are leased":                      {full, 0, nil, false, Room{None: true, Leased: 3, Closed: 1}},
		"the last has another host":           {full[:2], 12, nil, false, Room{None: true, Leased: 2, Resting: 1, Closed: 1}},
		"the last was declined":               {append(full[:2:2], changed(full[2], lease.Declined)), 0, nil, false, Room{None: true, Leased: 2, Resting: 1, Closed: 1}},
		"one was released":                    {append(full[:2:2], released), 0, nil, false, Room{Closed: 1}},
		"one is over":                         {append(full[:2:2], bound(12, -time.Hour)), 0, nil, false, Room{Closed: 1}},
		"one is over, and the clock unsteady": {append(full[:2:2], bound(12, -time.Hour)), 0, nil, true, Room{None: true, Leased: 3, Closed: 1}},
		"the last is reserved":                {full[:2], 0, []int{12}, false, Room{None: true, Leased: 2, Closed: 2}},
		"all are reserved":                    {nil, 0, []int{10, 11, 12}, false, Room{Reserved: true, Closed: 4}},
		"one of another range is leased":      {append(full[:2:2], bound(50, time.Hour)), 0, nil, false, Room{Leased: 2, Closed: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			table, config := NewTable(noMachines{}), Config{
				Server: at(2), Instances: []netip.Addr{at(2)}, First: at(10), Last: at(13), Never: []Range{{at(13), at(13)}}, LeaseTime: time.Hour,
				Network: wire.Network{Subnet: netip.MustParsePrefix("192.168.100.0/24")},
			}
			for _, host := range c.reserved {
				config.Reservations = append(config.Reservations, Reservation{IP: at(host), Client: lease.Client{MAC: fmt.Sprint(host)}})
			}
			table.Configure(config)
			for _, r := range c.records {
				table.Learn(r)
			}
			if c.inUse != 0 {
				table.InUse(at(c.inUse), now)
			}
			NewWithT(t).Expect(table.Room(now, !c.unsteady)).To(Equal(c.want))
		})
	}
	NewWithT(t).Expect(NewTable(noMachines{}).Room(now, true)).To(Equal(Room{}), "nothing is served yet")
}

// latecomer is a client that comes while the table is being walked.
type latecomer struct {
	noMachines
	looked   int
	comes    func()
	answered chan struct{}
}

// Exists is called for each record, with the table locked.
func (l *latecomer) Exists(lease.VM) (bool, lease.VM) {
	switch l.looked++; {
	case l.looked == 1:
		l.comes()
	case l.looked%walkAtOnce == 0:
		select {
		case <-l.answered:
		case <-time.After(100 * time.Millisecond): // it waits for the lock by now, or will
		}
	}
	return true, lease.VM{}
}

// Each second all records are looked at, and each other second those of a full pool once more: with 65,536 of them, clients waited 25 and 29 ms.
func TestNobodyWaitsUntilAllRecordsHaveBeenLookedAt(t *testing.T) {
	now, records := time.Unix(1_000_000, 0), 20*walkAtOnce
	l := &latecomer{answered: make(chan struct{})}
	table := NewTable(l)
	for n := range records {
		table.Learn(lease.Record{
			IP: addrOf(10<<24 | uint64(n)), Client: lease.Client{MAC: fmt.Sprintf("52:54:%08x", n)}, State: lease.Bound, Horizon: now.Add(time.Hour), Version: 1,
			VM: lease.VM{Namespace: "c1", Name: fmt.Sprint(n), UID: fmt.Sprint(n)},
		})
	}
	var after int
	l.comes = func() {
		go func() {
			defer close(l.answered)
			table.mu.Lock() // as every client's message does
			defer table.mu.Unlock()
			after = l.looked
		}()
	}
	table.Expire(now)
	<-l.answered
	NewWithT(t).Expect(l.looked).To(Equal(records))
	NewWithT(t).Expect(after).To(BeNumerically("<", records))
}
