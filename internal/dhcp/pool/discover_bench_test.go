package pool

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/cldmnky/oooi/internal/dhcp/lease"
	"github.com/cldmnky/oooi/internal/dhcp/wire"
)

// fullPool is a /16 whose addresses are all leased.
func fullPool(machines Machines, now time.Time) *Table {
	t := NewTable(machines)
	server := netip.MustParseAddr("10.1.0.2")
	t.Configure(Config{
		Server: server, Instances: []netip.Addr{server}, First: netip.MustParseAddr("10.1.0.3"), Last: netip.MustParseAddr("10.1.255.254"),
		LeaseTime: time.Hour, Network: wire.Network{Subnet: netip.MustParsePrefix("10.1.0.0/16")},
	})
	for n := uint64(10<<24 | 1<<16 | 3); n < 10<<24|2<<16-1; n++ {
		t.Learn(lease.Record{
			IP: addrOf(n), Client: lease.Client{MAC: fmt.Sprintf("52:54:%08x", n)}, State: lease.Bound, Horizon: now.Add(time.Hour), Version: n,
		})
	}
	return t
}

func discovers(mac string, now time.Time) Ask {
	return Ask{Message: wire.Message{Kind: wire.Discover, Client: lease.Client{MAC: mac}}, Now: now, Steady: true}
}

// everybodysMachine is a machine for whoever asks.
type everybodysMachine struct{ noMachines }

func (everybodysMachine) Owner(mac string) Owner {
	return Owner{VM: lease.VM{Namespace: "c1", Name: mac, UID: mac}}
}

func BenchmarkADiscoverWhereNothingIsLeft(b *testing.B) {
	now := time.Unix(1_000_000, 0)
	for name, machines := range map[string]Machines{"of a stranger": noMachines{}, "of a machine": everybodysMachine{}} {
		b.Run(name, func(b *testing.B) {
			t := fullPool(machines, now)
			for b.Loop() {
				if d := t.Decide(discovers("52:54:00:00:00:01", now)); d.Why != "pool-exhausted" {
					b.Fatal(d)
				}
			}
		})
	}
}

func BenchmarkADiscoverThatGetsTheLastThatEnded(b *testing.B) {
	now := time.Unix(1_000_000, 0)
	t := fullPool(noMachines{}, now)
	ended := now.Add(2 * time.Hour)
	for b.Loop() {
		t.drop(lease.Client{MAC: "52:54:00:00:00:01"}) // or it would be offered the same again
		if d := t.Decide(discovers("52:54:00:00:00:01", ended)); d.Do != Probe {
			b.Fatal(d)
		}
	}
}

// What is done each second or so. Due and room walk through all records; clients are let in meanwhile.
func BenchmarkAFullPoolWithoutAMessage(b *testing.B) {
	now := time.Unix(1_000_000, 0)
	for name, does := range map[string]func(*Table){
		"its counts":  func(t *Table) { t.Counts(now) },
		"what is due": func(t *Table) { t.Expire(now) },
		"its room":    func(t *Table) { t.Room(now, true) },
	} {
		b.Run(name, func(b *testing.B) {
			t := fullPool(noMachines{}, now)
			for b.Loop() {
				does(t)
			}
		})
	}
}
