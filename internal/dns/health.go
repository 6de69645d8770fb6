package dns

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/vlan"
)

const (
	// checkInterval and checkTimeout find within a second that an address accepts nothing: it fails failedChecks checks in a row.
	checkInterval = 250 * time.Millisecond
	checkTimeout  = 250 * time.Millisecond
	failedChecks  = 2
	// unusedPort is one on which a host that is there refuses connections.
	unusedPort = 1
)

// health checks addresses by connecting to them over the VLAN.
type health struct {
	start    func(func() error)        // runs a check beside the others
	answered func(map[netip.Addr]bool) // hears of each checked address whether it is down, in turn; it must not block
	judged   func()                    // is called, by one of several checks, when a state changes
	log      *slog.Logger

	mu      sync.Mutex
	checked map[netip.Addr]*sight
}

func newHealth(start func(func() error), answered func(map[netip.Addr]bool), judged func(), log *slog.Logger) *health {
	return &health{start: start, answered: answered, judged: judged, log: log, checked: map[netip.Addr]*sight{}}
}

// check checks these addresses from now on, each until ctx ends, and no others.
func (h *health) check(ctx context.Context, from vantage, all []netip.AddrPort) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for ip, s := range h.checked {
		if !slices.ContainsFunc(all, func(at netip.AddrPort) bool { return at.Addr() == ip }) {
			s.stop()
			delete(h.checked, ip)
			healthyAddresses.DeleteLabelValues(ip.String())
		}
	}
	for _, at := range all {
		s, known := h.checked[at.Addr()]
		if !known {
			s = &sight{stop: func() {}, heard: time.Now(), state: v1alpha1.HealthAnswers}
			h.checked[at.Addr()] = s
			tellHealth(at.Addr(), *s)
		}
		if s.at != at {
			s.stop()
			one, stop := context.WithCancel(ctx)
			s.at, s.stop = at, stop
			h.start(func() error { return h.follow(one, from, at) })
		}
	}
	h.answered(h.down()) // others may be checked now
}

// down has each checked address: true if it accepts no connection.
func (h *health) down() map[netip.Addr]bool {
	all := map[netip.Addr]bool{}
	for ip, s := range h.checked {
		all[ip] = s.down
	}
	return all
}

// states are those of all addresses, in their order.
func (h *health) states() (all []v1alpha1.Health) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for ip, s := range h.checked {
		all = append(all, v1alpha1.Health{IP: v1alpha1.IPAddress(ip.String()), State: s.state})
	}
	slices.SortFunc(all, func(a, b v1alpha1.Health) int {
		return netip.MustParseAddr(string(a.IP)).Compare(netip.MustParseAddr(string(b.IP)))
	})
	return all
}

// hear takes in what all instances say, as the API server has it; self is this one's address.
func (h *health) hear(instances []v1alpha1.Instance, self v1alpha1.IPAddress) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for ip, s := range h.checked {
		s.own, s.others = "", nil
		for _, i := range instances {
			state := i.HealthAt(v1alpha1.IPAddress(ip.String()))
			switch {
			case i.IP == self:
				s.own = state
			case state != "":
				s.others = append(s.others, state)
			}
		}
		s.state = s.next(time.Now())
	}
}

func (h *health) follow(ctx context.Context, from vantage, at netip.AddrPort) error {
	tick := time.NewTicker(checkInterval)
	defer tick.Stop()
	for failed := 0; ; {
		healthy, err := from.look(ctx, at)
		failed++
		switch {
		case healthy:
			failed = 0
			h.note(ctx, at, nil, func(s *sight) { s.down = false; s.hears() })
		case isOurs(err): // names stay as they are, but nothing has been heard
			failed = 0
			h.note(ctx, at, err, func(*sight) {})
		case failed >= failedChecks:
			h.note(ctx, at, err, func(s *sight) { s.down = true }) // names come first, and only then whether anybody is there
			if isThere(err) || isThere(from.connect(ctx, at.Addr(), unusedPort)) {
				h.note(ctx, at, err, (*sight).hears)
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// note notes what the last checks of an address found, unless it is no longer checked.
func (h *health) note(ctx context.Context, at netip.AddrPort, err error, found func(*sight)) {
	h.mu.Lock()
	s := h.checked[at.Addr()]
	if ctx.Err() != nil || s == nil {
		h.mu.Unlock()
		return
	}
	down, was := s.down, s.state
	found(s)
	s.state = s.next(time.Now())
	turned, judged := s.down != down, s.state
	tellHealth(at.Addr(), *s)
	if turned {
		h.answered(h.down())
	}
	h.mu.Unlock()
	if turned {
		h.tells(at, err)
	}
	if judged != was {
		h.log.Info("the health of an address changed", "address", at.Addr(), "state", judged)
		h.judged()
	}
}

func (h *health) tells(at netip.AddrPort, err error) {
	if err != nil {
		h.log.Warn("an address is not healthy: names that have another one leave it out", "address", at.Addr(), "port", at.Port(), "error", err)
		return
	}
	h.log.Info("an address is healthy: names have it again", "address", at.Addr(), "port", at.Port())
}

// vantage is where we look from: our address on the VLAN, and its device.
type vantage struct {
	from   netip.Addr
	device string
}

// look checks an address. Without a port, a host that is there is healthy.
func (v vantage) look(ctx context.Context, at netip.AddrPort) (healthy bool, err error) {
	if at.Port() == 0 {
		err = v.connect(ctx, at.Addr(), unusedPort)
		return isThere(err), err
	}
	err = v.connect(ctx, at.Addr(), at.Port())
	return err == nil, err
}

// connect opens a connection and closes it.
func (v vantage) connect(ctx context.Context, to netip.Addr, port uint16) error {
	dialer := net.Dialer{
		Timeout: checkTimeout, LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(v.from, 0)),
		Control: func(_, _ string, socket syscall.RawConn) error { return vlan.BindToDevice(socket, v.device) },
	}
	conn, err := dialer.DialContext(ctx, "tcp", netip.AddrPortFrom(to, port).String())
	if err == nil {
		err = conn.Close()
	}
	return err
}

// isOurs says of a connection's outcome whether something here kept us from trying, such as a lack of descriptors, of our address or of our
// device, which says nothing about the other side.
func isOurs(err error) bool {
	ours := []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.ENOBUFS, syscall.ENETUNREACH, syscall.ENETDOWN, syscall.ENODEV, syscall.EADDRNOTAVAIL}
	return slices.ContainsFunc(ours, func(one error) bool { return errors.Is(err, one) })
}

// isThere says of a connection's outcome whether it came from a host with that address.
func isThere(err error) bool {
	return err == nil || errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ECONNRESET)
}
