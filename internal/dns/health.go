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
)

const (
	// checkInterval and checkTimeout find an address that is lost within a second: it fails failedChecks checks in a row.
	checkInterval = 300 * time.Millisecond
	checkTimeout  = 300 * time.Millisecond
	failedChecks  = 2
)

// health checks addresses by connecting to them over the VLAN.
type health struct {
	start   func(func() error) // runs a check beside the others
	changed func() error       // is called, by one of several checks, when down changed
	log     *slog.Logger

	mu    sync.Mutex
	stops map[netip.AddrPort]context.CancelFunc
	lost  map[netip.AddrPort]bool
}

func newHealth(start func(func() error), changed func() error, log *slog.Logger) *health {
	return &health{start: start, changed: changed, log: log, stops: map[netip.AddrPort]context.CancelFunc{}, lost: map[netip.AddrPort]bool{}}
}

// check checks these addresses from now on, each until ctx ends, and no others; from is the address to connect from.
func (h *health) check(ctx context.Context, from netip.Addr, all []netip.AddrPort) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for at, stop := range h.stops {
		if !slices.Contains(all, at) {
			stop()
			delete(h.stops, at)
			delete(h.lost, at)
		}
	}
	for _, at := range all {
		if h.stops[at] == nil {
			one, stop := context.WithCancel(ctx)
			h.stops[at] = stop
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
		all[at.Addr()] = h.lost[at]
	}
	return all
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
			h.note(ctx, at, err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// note notes what the last checks of an address found, unless it is no longer checked.
func (h *health) note(ctx context.Context, at netip.AddrPort, err error) {
	h.mu.Lock()
	was, is := h.lost[at], err != nil
	if ctx.Err() != nil || was == is {
		h.mu.Unlock()
		return
	}
	if is {
		h.lost[at] = true
	} else {
		delete(h.lost, at)
	}
	h.mu.Unlock()
	h.log.Info("an address of names is checked", "address", at, "accepts", !is, "error", err)
	if err := h.changed(); err != nil {
		h.log.Error("answers are as before", "error", err)
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
