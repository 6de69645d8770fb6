package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"golang.org/x/sys/unix"

	"github.com/cldmnky/oooi/test/bench/internal/machines"
	"github.com/cldmnky/oooi/test/bench/internal/process"
	"github.com/cldmnky/oooi/test/bench/internal/table"
)

// Each of the bound clients renews once in renewEvery. A renewal that has no ACK by then is lost.
const (
	bound       = 50
	renewEvery  = time.Second
	perSecond   = 5000
	renewedSoon = 50 * time.Millisecond
)

// full sends DISCOVERs of strangers to servers whose whole pool is leased, while some of those who have the leases renew.
func full(ctx context.Context, strangers int) error {
	t := table.New()
	var kea load
	for _, s := range []server{isKea{}, isOooi{}} {
		l, err := flood(ctx, s, strangers)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name(), err)
		}
		fmt.Fprintf(os.Stderr, "%s measured: of %d renewals %d lost\n", s.name(), len(l.renewals), l.lost)
		if _, is := s.(isKea); is {
			kea = l
		}
		l.tell(t, s, kea)
	}
	return t.End()
}

// load is what a flood did to a server. A renewal that is lost counts as long as one may take.
type load struct {
	renewals  []time.Duration
	lost      int
	rate      float64 // DISCOVERs that were sent in a second
	processor time.Duration
	memory    table.MiB
}

func flood(ctx context.Context, s server, strangers int) (l load, err error) {
	net, err := newSegment()
	if err != nil {
		return l, err
	}
	defer net.Remove()
	all := wholePool()
	if err := s.fill(net, all); err != nil {
		return l, err
	}
	server, err := s.start(ctx, net)
	if err != nil {
		return l, err
	}
	defer server.Stop()
	c, err := clients(net)
	if err != nil {
		return l, err
	}
	defer c.Close()
	f := &flooding{Clients: c, all: map[string]*machines.Machine{}}
	for i := range bound {
		m := &machines.Machine{Hardware: all[i].hardware, Address: all[i].ip}
		f.order, f.all[m.Hardware.String()] = append(f.order, m), m
		if err := knows(net, m); err != nil {
			return l, err
		}
	}
	return f.run(ctx, server.PID, strangers)
}

// flooding is machines that renew, and strangers.
type flooding struct {
	*machines.Clients
	all   map[string]*machines.Machine
	order []*machines.Machine
	load
}

func (f *flooding) run(ctx context.Context, server, strangers int) (load, error) {
	before, err := process.Processor(server)
	if err != nil {
		return f.load, err
	}
	discover, err := dhcpv4.NewDiscovery(net.HardwareAddr{2, 0x19, 0, 0, 0, 0})
	if err != nil {
		return f.load, err
	}
	octets, start, sent := machines.Frame(machines.Stranger(discover.ClientHWAddr), machines.Everyone, discover.ToBytes()), time.Now(), 0
	for i, m := range f.order {
		m.Starts = start.Add(renewEvery * time.Duration(i) / bound)
	}
	for sent < strangers {
		for due := min(strangers, int(time.Since(start).Seconds()*perSecond)); sent < due; sent++ {
			if err := f.discovers(octets, uint32(sent)); err != nil {
				return f.load, err
			}
		}
		if err := errors.Join(ctx.Err(), f.renew(), f.hears()); err != nil {
			return f.load, err
		}
	}
	f.rate = float64(sent) / time.Since(start).Seconds()
	for end := time.Now().Add(renewEvery); time.Now().Before(end); {
		if err := f.hears(); err != nil {
			return f.load, err
		}
	}
	for _, m := range f.order {
		f.note(m)
	}
	after, err := process.Processor(server)
	f.processor = after - before
	peak, peakErr := process.Peak(server)
	f.memory = peak
	return f.load, errors.Join(err, peakErr)
}

// discovers sends the DISCOVER of one more stranger: a frame that is made, with another card and transaction.
func (f *flooding) discovers(octets []byte, n uint32) error {
	for _, at := range []int{8, machines.Headers + 4, machines.Headers + 30} { // source, xid, chaddr
		binary.BigEndian.PutUint32(octets[at:], n)
	}
	_, err := unix.Write(f.Socket, octets)
	return err
}

// renew sends the renewals that are due (RFC 2131 section 4.3.2, RENEWING).
func (f *flooding) renew() (err error) {
	for _, m := range f.order {
		now := time.Now()
		if now.Before(m.Starts) {
			continue
		}
		f.note(m)
		m.Last, err = dhcpv4.New(dhcpv4.WithHwAddr(m.Hardware), dhcpv4.WithMessageType(dhcpv4.MessageTypeRequest), dhcpv4.WithClientIP(m.Address.AsSlice()))
		if err != nil {
			return err
		}
		m.Starts, m.Began, m.Ack = m.Starts.Add(renewEvery), now, time.Time{}
		if err := f.Send(m, now); err != nil {
			return err
		}
	}
	return nil
}

func (f *flooding) hears() error {
	_, err := f.Hear(f.all)
	return err
}

// note notes how long a machine's last renewal took.
func (f *flooding) note(m *machines.Machine) {
	switch {
	case m.Last == nil:
	case m.Ack.IsZero():
		f.lost++
		f.renewals = append(f.renewals, renewEvery)
	default:
		f.renewals = append(f.renewals, m.Ack.Sub(m.Began))
	}
}

func (l load) tell(t *table.Table, s server, kea load) {
	p99 := l.p99()
	late := fmt.Sprintf("%s: p99 of %d renewals", s.name(), len(l.renewals))
	lost := s.name() + ": of them without an ACK after " + renewEvery.String()
	if _, peer := s.(isKea); peer {
		t.Say(late, p99)
		t.Say(lost, l.lost)
	} else {
		table.Below(t, late, p99, renewedSoon)
		t.None(lost, l.lost)
	}
	t.Say(s.name()+": their median and slowest", fmt.Sprint(median(l.renewals), ", ", slices.Max(l.renewals)))
	t.Say(s.name()+": DISCOVERs sent in a second", int(l.rate))
	t.Say(s.name()+": processor time, most memory", fmt.Sprint(l.processor, ", ", l.memory))
	t.Say(s.name()+": p99, processor time and memory, Kea's being 1", fmt.Sprintf("%.3f, %.2f, %.1f",
		ratio(p99, kea.p99()), ratio(l.processor, kea.processor), l.memory/kea.memory))
}

func (l load) p99() time.Duration { return table.Percentile(l.renewals, 99) }
