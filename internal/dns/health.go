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
)

const (
	// checkInterval and checkTimeout find within a second that an address accepts nothing: it fails failedChecks checks in a row.
	checkInterval = 300 * time.Millisecond
	checkTimeout  = 300 * time.Millisecond
	failedChecks  = 2
	// unusedPort is one on which a host that is there refuses connections.
	unusedPort = 1
)

// health checks addresses by connecting to them over the VLAN.
type health struct {
	start    func(func() error) // runs a check beside the others
	answered func() error       // is called, by one of several checks, when an address begins or ceases to accept
	judged   func()             // likewise, when a state changes
	log      *slog.Logger

	mu      sync.Mutex
	checked map[netip.AddrPort]*sight
}

func newHealth(start func(func() error), answered func() error, judged func(), log *slog.Logger) *health {
	return &health{start: start, answered: answered, judged: judged, log: log, checked: map[netip.AddrPort]*sight{}}
}

// check checks these addresses from now on, each until ctx ends, and no others; from is the address to connect from.
func (h *health) check(ctx context.Context, from netip.Addr, all []netip.AddrPort) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for at, s := range h.checked {
		if !slices.Contains(all, at) {
			s.stop()
			delete(h.checked, at)
		}
	}
	for _, at := range all {
		if h.checked[at] == nil {
			one, stop := context.WithCancel(ctx)
			h.checked[at] = &sight{stop: stop, heard: time.Now(), state: v1alpha1.HealthAnswers}
			h.start(func() error { return h.follow(one, from, at) })
		}
	}
}

// down are those of some addresses that accept no connection.
func (h *health) down(of []netip.AddrPort) map[netip.Addr]bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := map[netip.Addr]bool{}
	for _, at := range of {
		all[at.Addr()] = h.checked[at] != nil && h.checked[at].down
	}
	return all
}

// states are those of all addresses, in their order.
func (h *health) states() (all []v1alpha1.Health) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for at, s := range h.checked {
		all = append(all, v1alpha1.Health{IP: v1alpha1.IPAddress(at.Addr().String()), State: s.state})
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
	for at, s := range h.checked {
		s.own, s.others = "", nil
		for _, i := range instances {
			for _, one := range i.Health {
				switch {
				case string(one.IP) != at.Addr().String():
				case i.IP == self:
					s.own = one.State
				default:
					s.others = append(s.others, one.State)
				}
			}
		}
	}
}

func (h *health) follow(ctx context.Context, from netip.Addr, at netip.AddrPort) error {
	tick := time.NewTicker(checkInterval)
	defer tick.Stop()
	for failed := 0; ; {
		err := connect(ctx, from, at)
		failed++
		if err == nil {
			failed = 0
		}
		if failed == 0 || failed >= failedChecks {
			h.note(ctx, at, err, isThere(err) || isThere(connect(ctx, from, netip.AddrPortFrom(at.Addr(), unusedPort))))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// note notes what the last checks of an address found, unless it is no longer checked.
func (h *health) note(ctx context.Context, at netip.AddrPort, err error, isThere bool) {
	h.mu.Lock()
	s := h.checked[at]
	if ctx.Err() != nil || s == nil {
		h.mu.Unlock()
		return
	}
	turned, was := s.down != (err != nil), s.state
	s.down = err != nil
	if isThere {
		s.heard = time.Now()
	}
	s.state = s.next(time.Now())
	judged := s.state
	h.mu.Unlock()
	if turned {
		h.log.Info("an address of names is checked", "address", at, "accepts", err == nil, "error", err)
		if err := h.answered(); err != nil {
			h.log.Error("answers are as before", "error", err)
		}
	}
	if judged != was {
		h.log.Info("an address of names is checked", "address", at, "state", judged)
		h.judged()
	}
}

// connect opens a connection and closes it. What keeps us from trying, as a lack of descriptors, says nothing about the other side.
func connect(ctx context.Context, from netip.Addr, at netip.AddrPort) error {
	dialer := net.Dialer{Timeout: checkTimeout, LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(from, 0))}
	conn, err := dialer.DialContext(ctx, "tcp", at.String())
	if err == nil {
		return conn.Close()
	}
	for _, ours := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.ENOBUFS, syscall.EADDRNOTAVAIL} {
		if errors.Is(err, ours) {
			return nil
		}
	}
	return err
}

// isThere says of a connection's outcome whether it came from a host with that address.
func isThere(err error) bool {
	return err == nil || errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ECONNRESET)
}
