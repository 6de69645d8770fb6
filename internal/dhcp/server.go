// Package dhcp is the DHCP daemon: it receives, asks the pool what to do, makes promises durable, and answers.
package dhcp

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"github.com/cldmnky/oooi/internal/dhcp/clock"
	"github.com/cldmnky/oooi/internal/dhcp/lease"
	"github.com/cldmnky/oooi/internal/dhcp/link"
	"github.com/cldmnky/oooi/internal/dhcp/pool"
	"github.com/cldmnky/oooi/internal/dhcp/wire"
)

const (
	// tooOld is the age above which a message gets no reply; it is checked before the reply is sent (dhcp-rules.md#lease-10).
	tooOld = 2 * time.Second
	// tooLate is the age above which work on a message does not begin, and tooLateToOffer that of a DISCOVER, whose probe must end before
	// tooOld, too. Under overload every message waits as long as it may, and without these margins its work would be in vain.
	tooLate        = tooOld - link.Wait
	tooLateToOffer = tooLate - link.Wait
	// storeTime is what one message may spend on the store and on probes; less than tooOld.
	storeTime = 1600 * time.Millisecond
	// maxRounds bounds how often one message is decided anew.
	maxRounds = 8
)

// Port is a socket on the VLAN.
type Port interface {
	Receive() (link.Packet, error)
	Send([]byte, netip.AddrPort) error
	Answers(ctx context.Context, ip netip.Addr, client string, known bool, wait time.Duration) (bool, error)
	MTU() int
	Close() error
}

// Server answers one VLAN.
type Server struct {
	Table *pool.Table
	Store lease.Store
	Clock *clock.Clock
	Log   *slog.Logger
	// Heard counts messages by kind and outcome.
	Heard func(kind wire.Kind, outcome string)
	// Sent counts replies.
	Sent func(dhcpv4.MessageType)
	// Reclaimed counts leases whose time was over and whose address another client got.
	Reclaimed func()
	// Happened reports events to admins: a lease bound, declined, a duplicate.
	Happened func(Event)
	// Away says that the store accepts no new lease. None is offered then, for the client would wait for us, and not turn to another instance.
	Away func() bool
	// Cut says that the store answers no write at all: beside another instance, no holder that boots is acknowledged.
	Cut func() bool
	// SwitchedOn says when a virtual machine was, last; zero if that is not known.
	SwitchedOn func(lease.VM) time.Time
	// Booted counts a client that got its address, by the stage of a boot.
	Booted func(stage string, after time.Duration)
	// Stored is called with each record that the store has, after the reply to the client that caused it.
	Stored func(lease.Record)

	config atomic.Pointer[pool.Config]
	synced atomic.Bool
	lanes  map[pool.Rank]*lane

	discovers discovers
	offers    offers
}

// newServer returns a server without configuration or leases.
func newServer(table *pool.Table, store lease.Store, clock *clock.Clock, log *slog.Logger) *Server {
	return &Server{
		Table: table, Store: store, Clock: clock, Log: log,
		Heard: func(wire.Kind, string) {}, Sent: func(dhcpv4.MessageType) {}, Reclaimed: func() {}, Happened: func(Event) {}, Away: func() bool { return false }, Cut: func() bool { return false }, Stored: func(lease.Record) {},
		SwitchedOn: func(lease.VM) time.Time { return time.Time{} }, Booted: func(string, time.Duration) {},
		lanes: newLanes(), discovers: discovers{first: map[lease.Client]time.Time{}},
	}
}

// Configure changes what is served.
func (s *Server) Configure(c pool.Config) {
	s.Clock.Tolerate(c.Grace()/2, c.LeaseTime)
	s.Table.Configure(c)
	s.config.Store(&c)
	s.tellUnserved()
}

// Serve answers what a port receives until the port is closed.
func (s *Server) Serve(ctx context.Context, port Port) error {
	var answering sync.WaitGroup
	defer answering.Wait()
	for {
		packet, err := port.Receive()
		if err != nil {
			return err
		}
		m, err := wire.Parse(packet.Data)
		if err != nil {
			s.Heard("garbage", "dropped")
			s.Log.Debug("datagram dropped", "from", packet.From, "error", err)
			continue
		}
		rank := s.Table.Rank(m.Client)
		if c := s.config.Load(); c != nil && c.Probes(m) {
			m.Kind, rank = wire.Probe, pool.Known // a client of its own, which has two places at most
		}
		lane := s.lanes[rank]
		if !lane.Enter(m.Client) {
			s.Heard(m.Kind, "crowded-out")
			continue
		}
		received := packet.Received // without the datagram, which the next one overwrites
		answering.Go(func() {
			lane.take(m.Client, func() { s.answer(ctx, port, m, received) })
		})
	}
}

// Overhear listens on the clients' port for foreign DHCP servers.
func (s *Server) Overhear(port Port) error {
	for {
		packet, err := port.Receive()
		if err != nil {
			return err
		}
		if id, ok := wire.ServerOf(packet.Data); ok {
			s.meets(id)
		}
	}
}

func (s *Server) meets(id netip.Addr) {
	if c := s.config.Load(); c != nil && id.IsValid() && !slices.Contains(c.Instances, id) {
		s.Happened(Event{Type: ForeignServer, IP: id})
	}
}

// answer replies to a message. Events and copies come after the reply, so that the client does not wait for them.
func (s *Server) answer(ctx context.Context, port Port, m wire.Message, received time.Time) {
	if older(received, tooLate) || m.Kind == wire.Discover && older(received, tooLateToOffer) {
		s.Heard(m.Kind, "too-old")
		return
	}
	now, _ := s.Clock.Now()
	asked := s.discovers.hears(m, now)
	settled, all := s.settle(ctx, port, m)
	d := settled
	if d.Do != pool.Silence && !d.Final && older(received, tooOld) {
		d = pool.Decision{Do: pool.Silence, Why: "too-old"}
	}
	if d.Do == pool.Offer && !s.offers.another() {
		d = pool.Decision{Do: pool.Silence, Why: "ending"}
	}
	if reply, any := s.reply(d); any {
		if err := port.Send(m.Encode(reply, port.MTU()), m.Destination(reply.Type)); err != nil {
			s.Log.Warn("reply not sent", "client", m.Client, "error", err)
		} else if m.Kind != wire.Probe {
			s.Sent(reply.Type)
		}
	}
	s.Heard(m.Kind, string(d.Do)+"/"+d.Why)
	s.Log.Debug("message", "kind", m.Kind, "client", m.Client, "about", m.Wanted, "outcome", d.Do, "why", d.Why, "ip", d.IP)
	for _, w := range all {
		s.follow(w)
	}
	if m.Kind == wire.Selecting {
		s.meets(m.ServerID)
	}
	if settled.Do == pool.Ack {
		s.booted(m, asked, all)
	}
	s.tellRefused(m, settled)
	if d.Do == pool.Ack && d.Lease > 0 {
		now, steady := s.Clock.Now()
		s.free(ctx, s.Table.Surplus(pool.Ask{Message: m, Now: now, Steady: steady}, d.IP))
	}
}

type written struct {
	pool.Decision
	stored lease.Record
}

// follow passes a write on to Stored, and reports it. No client waits for that.
func (s *Server) follow(w written) {
	s.Stored(w.stored)
	s.record(w)
	if w.Reclaims {
		s.Reclaimed()
	}
	s.tell(w.Decision, w.stored)
}

func older(received time.Time, than time.Duration) bool {
	return time.Since(received.Round(0)).Abs() > than
}

// settle decides, does what the decision needs, and decides again, until the decision is final. It also returns what it wrote.
func (s *Server) settle(ctx context.Context, port Port, m wire.Message) (pool.Decision, []written) {
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	f := &finder{Server: s, port: port, ask: pool.Ask{
		Message: m, Away: !s.synced.Load() || m.Kind == wire.Discover && s.Away(), Cut: !s.synced.Load() || s.Cut(),
		Confirmed: map[netip.Addr]bool{}, Undecided: map[netip.Addr]bool{},
	}}
	f.ask.Now, f.ask.Steady = s.Clock.Now()
	for range maxRounds {
		d := s.Table.Decide(f.ask)
		switch d.Do {
		case pool.Read:
			f.read(ctx, d.IP)
		case pool.Probe:
			if !f.probe(ctx, d) {
				return pool.Decision{Do: pool.Silence, Why: "not-probed"}, f.written
			}
		case pool.Create, pool.Update:
			if wrote := f.write(ctx, d); d.Final {
				if !wrote { // the client may have asked again meanwhile, and another instance acknowledged it
					d = pool.Decision{Do: pool.Silence, Why: "not-written"}
				}
				return d, f.written
			}
		default:
			return d, f.written
		}
	}
	return pool.Decision{Do: pool.Silence, Why: "undecided"}, f.written
}

// finder gathers what the decision on one message needs.
type finder struct {
	*Server
	port      Port
	ask       pool.Ask
	conflicts int
	written   []written
}

// probe probes an address. False: no address can be probed now, and the client has to ask again.
func (f *finder) probe(ctx context.Context, d pool.Decision) bool {
	wait := link.Wait
	if d.Again {
		wait = link.WaitAgain
	}
	answers, err := f.port.Answers(ctx, d.IP, f.ask.Client.MAC, f.Table.Rank(f.ask.Client) == pool.Known, wait)
	switch changesHands := d.Record.IP == d.IP; {
	case errors.Is(err, link.ErrUndecided) && changesHands:
		f.ask.Undecided[d.IP] = true
	case errors.Is(err, link.ErrUndecided):
		f.Table.InUse(d.IP, f.ask.Now) // rather another address than one that may be taken
	case err != nil:
		f.Log.Warn("probe failed, and a client gets no address for now; \"no buffer space available\" says that this node's neighbour table is full: raise its sysctl net.ipv4.neigh.default.gc_thresh3", "error", err)
		return false
	case answers:
		f.Happened(Event{Type: AddressInUse, IP: d.IP, Client: f.ask.Client})
		f.Table.InUse(d.IP, f.ask.Now)
	default:
		f.Table.Vacant(d.IP)
	}
	return true
}

// read learns the store's record, uncached. A store that does not answer counts as away for the rest of this message.
func (f *finder) read(ctx context.Context, ip netip.Addr) {
	confirmed, err := f.confirm(ctx, ip)
	if err != nil {
		f.Log.Warn("lease not read", "ip", ip, "error", err)
		f.ask.Away = true
	}
	f.ask.Confirmed[ip] = f.ask.Confirmed[ip] || confirmed
}

// confirm reads an address's record, uncached. False: a newer one was learned meanwhile, or the read failed.
func (s *Server) confirm(ctx context.Context, ip netip.Addr) (bool, error) {
	since := s.Table.Version(ip)
	r, err := s.Store.Get(ctx, ip)
	switch {
	case err == nil:
		return s.Table.Confirm(r, since), nil
	case errors.Is(err, lease.ErrNotFound):
		s.Table.Lost(lease.Record{IP: ip, Version: since})
		return true, nil
	}
	return false, err
}

// write makes a record durable. If that fails, a read comes before any reply (dhcp-rules.md#lease-1 and dhcp-rules.md#lease-4): the store has
// another record, a conflict (tried once more), or an unknown outcome.
func (f *finder) write(ctx context.Context, d pool.Decision) bool {
	stored, err := f.put(ctx, d)
	if err == nil {
		f.Table.Learn(stored)
		f.ask.Confirmed[d.IP] = true
		f.written = append(f.written, written{d, stored})
		return true
	}
	f.read(ctx, d.IP) // before anything is said
	if errors.Is(err, lease.ErrExists) || errors.Is(err, lease.ErrConflict) {
		f.conflicts++
		f.ask.Away = f.ask.Away || f.conflicts > 1
		return false
	}
	f.Log.Warn("lease not written", "ip", d.IP, "error", err)
	f.ask.Away = true
	return false
}

func (s *Server) put(ctx context.Context, d pool.Decision) (lease.Record, error) {
	s.Table.Attempt(d.Record)
	if d.Do == pool.Create {
		return s.Store.Create(ctx, d.Record)
	}
	return s.Store.Update(ctx, d.Record)
}

// reply turns a decision into a DHCP reply; false if nothing is sent.
func (s *Server) reply(d pool.Decision) (wire.Reply, bool) {
	c := s.config.Load()
	r := wire.Reply{Server: c.Server, Yours: d.IP, Lease: d.Lease}
	switch {
	case d.Final:
		return r, false
	case d.Do == pool.Offer:
		r.Type = dhcpv4.MessageTypeOffer
	case d.Do == pool.Ack:
		r.Type = dhcpv4.MessageTypeAck
	case d.Do == pool.Nak:
		return wire.Reply{Type: dhcpv4.MessageTypeNak, Server: c.Server}, true
	default:
		return r, false
	}
	r.Options = c.Network.Options(d.Record.Hostname)
	return r, true
}
