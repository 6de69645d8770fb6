package dhcp

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"time"

	"github.com/cldmnky/oooi/internal/dhcp/link"
)

// aheadWait covers the kernel's three questions, a second apart, and the answer to the last: a host that takes the address meanwhile is heard.
const aheadWait = 3*time.Second + link.Wait

// aheadEvery is how often to look for addresses to probe ahead: a fraction of what a probe takes.
const aheadEvery = 100 * time.Millisecond

// ProbeAhead keeps addresses probed for clients to come, until the context ends.
func (s *Server) ProbeAhead(ctx context.Context, port Port) {
	var probing sync.WaitGroup
	defer probing.Wait()
	tick := time.NewTicker(aheadEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if now, _ := s.Clock.Now(); s.synced.Load() { // what is leased is known
			for _, ip := range s.Table.Ahead(now) {
				probing.Go(func() { s.probeAhead(ctx, port, ip) })
			}
		}
	}
}

// probeAhead asks who answers at an address. Where nobody can be asked the client that comes for it is told so.
func (s *Server) probeAhead(ctx context.Context, port Port, ip netip.Addr) {
	ctx, cancel := context.WithTimeout(ctx, aheadWait+time.Second)
	defer cancel()
	answers, err := port.Answers(ctx, ip, "", aheadWait)
	now, _ := s.Clock.Now()
	switch undecided := errors.Is(err, link.ErrUndecided); {
	case answers:
		s.Happened(Event{Type: AddressInUse, IP: ip})
		s.Table.ProbedAhead(ip, true, now)
	case err == nil || undecided: // a host was heard at the address, which may have left
		s.Table.ProbedAhead(ip, undecided, now)
	default:
		s.Log.Debug("address not probed ahead", "ip", ip, "error", err)
	}
}
