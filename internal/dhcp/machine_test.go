package dhcp

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"pgregory.net/rapid"

	"github.com/cldmnky/oooi/internal/dhcp/lease"
	"github.com/cldmnky/oooi/internal/dhcp/pool"
)

// world is a few clients before one or two instances of a server, with everything that may go wrong between them. It records what each client
// was told; the invariants are about that alone.
type world struct {
	instances []*lab
	store     *memoryStore
	clients   []string
	told      map[string]promise
}

type promise struct {
	ip    netip.Addr
	until time.Time
}

func newWorld(t *testing.T, instances int) *world {
	w := &world{clients: []string{"a0", "a1", "a2", "a3"}, told: map[string]promise{}}
	servers := []netip.Addr{us, at(3)}[:instances]
	for _, server := range servers {
		l := newLab(t, 3)
		if w.store == nil {
			w.store = l.store
		}
		l.store, l.server.Store = w.store, w.store
		l.reconfigure(func(c *pool.Config) { c.Server, c.Instances, c.LeaseTime = server, servers, 10*time.Minute })
		w.instances = append(w.instances, l)
	}
	return w
}

func (w *world) now() time.Time { return w.instances[0].now() }

// hears lets one instance answer one client, and records what the client is told.
func (w *world) hears(r *rapid.T, l *lab, mac string, kind dhcpv4.MessageType, with ...dhcpv4.Modifier) *dhcpv4.DHCPv4 {
	reply := l.hears(mac, kind, with...)
	w.believes(mac, reply)
	if now, told := w.told[mac]; told && (!l.config.Network.Subnet.Contains(now.ip) || now.ip.Less(at(10)) || at(12).Less(now.ip)) {
		r.Fatalf("%s was given %s, which is not in the pool", mac, now.ip)
	}
	return reply
}

func (w *world) believes(mac string, reply *dhcpv4.DHCPv4) {
	switch {
	case reply == nil:
	case reply.MessageType() == dhcpv4.MessageTypeAck:
		w.told[mac] = promise{yours(reply), w.now().Add(leaseOf(reply))}
	case reply.MessageType() == dhcpv4.MessageTypeNak:
		delete(w.told, mac)
	}
}

// holds is what a client was promised, while the promise stands.
func (w *world) holds(mac string) (promise, bool) {
	p, told := w.told[mac]
	return p, told && !w.now().After(p.until)
}

// restarts an instance, which forgets all and reads the store if it reaches it.
func (w *world) restarts(l *lab) {
	l.boots(l.server.Clock)
	l.server.Store = w.store
	_ = l.server.Sync(l.t.Context())
}

// TestNoTwoClientsEverHoldOneAddress tests the invariant that all others serve.
func TestNoTwoClientsEverHoldOneAddress(t *testing.T) {
	for instances := 1; instances <= 2; instances++ {
		t.Run(fmt.Sprintf("%d instances", instances), func(t *testing.T) {
			rapid.Check(t, func(r *rapid.T) { runWorld(r, newWorld(t, instances)) })
		})
	}
}

func runWorld(r *rapid.T, w *world) {
	anyone := rapid.SampledFrom(w.clients)
	anywhere := rapid.Custom(func(r *rapid.T) netip.Addr { return at(byte(rapid.IntRange(9, 13).Draw(r, "address"))) })
	index := rapid.IntRange(0, len(w.instances)-1)
	instance := func(r *rapid.T) *lab { return w.instances[index.Draw(r, "instance")] }
	r.Repeat(map[string]func(*rapid.T){
		"exchange": func(r *rapid.T) {
			l, mac := instance(r), anyone.Draw(r, "client")
			if offer := w.hears(r, l, mac, dhcpv4.MessageTypeDiscover); offer != nil {
				w.hears(r, l, mac, dhcpv4.MessageTypeRequest, wants(yours(offer)), chose(l.config.Server))
			}
		},
		"select anything": func(r *rapid.T) {
			l := instance(r)
			w.hears(r, l, anyone.Draw(r, "client"), dhcpv4.MessageTypeRequest, wants(anywhere.Draw(r, "ip")), chose(l.config.Server))
		},
		"reboot": func(r *rapid.T) {
			w.hears(r, instance(r), anyone.Draw(r, "client"), dhcpv4.MessageTypeRequest, wants(anywhere.Draw(r, "ip")))
		},
		"renew": func(r *rapid.T) {
			mac := anyone.Draw(r, "client")
			if p, holds := w.holds(mac); holds {
				w.hears(r, instance(r), mac, dhcpv4.MessageTypeRequest, has(p.ip))
			}
		},
		"release": func(r *rapid.T) {
			mac := anyone.Draw(r, "client")
			if p, holds := w.told[mac]; holds {
				w.hears(r, instance(r), mac, dhcpv4.MessageTypeRelease, has(p.ip))
				delete(w.told, mac)
			}
		},
		"decline": func(r *rapid.T) {
			mac := anyone.Draw(r, "client")
			if p, holds := w.told[mac]; holds {
				w.hears(r, instance(r), mac, dhcpv4.MessageTypeDecline, wants(p.ip))
				delete(w.told, mac)
			}
		},
		"time passes": func(r *rapid.T) {
			d := time.Duration(rapid.IntRange(1, 2400).Draw(r, "seconds")) * time.Second
			for _, l := range w.instances {
				l.passes(d)
			}
		},
		"the store": func(r *rapid.T) {
			w.store.away, w.store.deaf = rapid.Bool().Draw(r, "away"), rapid.Bool().Draw(r, "loses answers")
		},
		"an instance restarts": func(r *rapid.T) { w.restarts(instance(r)) },
		"the watch tells":      func(r *rapid.T) { _ = instance(r).server.Sync(r.Context()) },
		"expiry":               func(r *rapid.T) { instance(r).server.Expire(r.Context()) },
		"": func(r *rapid.T) {
			owners := map[netip.Addr]string{}
			for mac := range w.told {
				p, holds := w.holds(mac)
				if !holds {
					continue
				}
				if other, taken := owners[p.ip]; taken {
					r.Fatalf("%s is promised to %s and %s at once", p.ip, mac, other)
				}
				owners[p.ip] = mac
				if stored := w.store.records[p.ip]; stored.State == lease.Bound && stored.Client.MAC == "52:54:00:00:00:"+mac && stored.Horizon.Before(p.until) {
					r.Fatalf("%s was told %s until %s, beyond the horizon %s", mac, p.ip, p.until, stored.Horizon)
				}
			}
		},
	})
}
