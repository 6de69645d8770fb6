package dhcp

import (
	"maps"
	"sync"
	"time"

	"github.com/cldmnky/oooi/internal/boot"
	"github.com/cldmnky/oooi/internal/dhcp/lease"
	"github.com/cldmnky/oooi/internal/dhcp/wire"
)

// mostAsking clients are remembered before they have an address. Who floods us with more costs others the count of their boots, if these are no
// virtual machines.
const mostAsking = 1024

// discovers are when clients that have no address sent their first DISCOVER.
type discovers struct {
	mu    sync.Mutex
	first map[lease.Client]time.Time
	swept time.Time // when those were looked for that never got an address
}

// hears returns when a client began to ask; zero if that is not known.
func (d *discovers) hears(m wire.Message, now time.Time) time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	at, before := d.first[m.Client]
	if m.Kind != wire.Discover || before && now.Sub(at) <= boot.Longest {
		return at
	}
	if len(d.first) >= mostAsking && now.Sub(d.swept) > time.Minute { // not for each message of a flood
		d.swept = now
		maps.DeleteFunc(d.first, func(_ lease.Client, at time.Time) bool { return now.Sub(at) > boot.Longest })
	}
	if len(d.first) < mostAsking {
		d.first[m.Client] = now
	}
	return now
}

// forgets a client that has an address.
func (d *discovers) forgets(c lease.Client) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.first, c)
}

// booted counts the boot of a client that got an address. One that asks again for an address that it has is none, nor is one that another server
// had given it. A machine that was switched on long ago has booted before, and begins with its DISCOVER.
func (s *Server) booted(m wire.Message, asked time.Time, all []written) {
	s.discovers.forgets(m.Client)
	for _, w := range all {
		if m.Kind != wire.Selecting || w.Why != "bound" {
			continue
		}
		now, _ := s.Clock.Now()
		on := s.SwitchedOn(w.stored.VM)
		switch {
		case !on.IsZero() && now.Sub(on) <= boot.Longest:
			s.Booted(boot.PowerOnToLease, now.Sub(on))
		case !asked.IsZero():
			s.Booted(boot.DiscoverToLease, now.Sub(asked))
		}
	}
}
