package dhcp

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	. "github.com/onsi/gomega"

	"github.com/cldmnky/oooi/internal/dhcp/clock"
	"github.com/cldmnky/oooi/internal/dhcp/lease"
	"github.com/cldmnky/oooi/internal/dhcp/link"
	"github.com/cldmnky/oooi/internal/dhcp/pool"
	"github.com/cldmnky/oooi/internal/dhcp/wire"
)

// lab is one server with everything around it in memory.
type lab struct {
	t        *testing.T
	boot     time.Duration
	server   *Server
	store    *memoryStore
	machines *someMachines
	hosts    map[netip.Addr]string // who answers a probe, by address
	config   pool.Config
	sent     [][]byte
	probes   int
	waited   []time.Duration // by each probe
	known    []bool          // whether each probe was for a client that is known
	mute     error           // why nobody can be asked
	told     []Event
}

var (
	us      = netip.MustParseAddr("192.168.100.2")
	epoch   = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	errAway = errors.New("the store is away")
)

// undecided is a host of which the kernel cannot tell yet whether it is there.
const undecided = "undecided"

func at(last byte) netip.Addr { return netip.AddrFrom4([4]byte{192, 168, 100, last}) }

// newLab serves addresses .10 to .10+n-1, since long ago (a young server probes), for 24 hours.
func newLab(t *testing.T, addresses byte) *lab {
	l := &lab{
		t: t, boot: time.Hour, store: &memoryStore{records: map[netip.Addr]lease.Record{}}, hosts: map[netip.Addr]string{},
		machines: &someMachines{owners: map[string]pool.Owner{}, running: map[string]bool{}, gone: map[string]bool{}},
		config: pool.Config{
			Server: us, Instances: []netip.Addr{us}, First: at(10), Last: at(9 + addresses), LeaseTime: 24 * time.Hour,
			Network: wire.Network{Subnet: netip.MustParsePrefix("192.168.100.0/24"), Router: at(1)},
			Born:    epoch.Add(-1000 * time.Hour),
		},
	}
	l.boots(clock.From(func() time.Duration { return l.boot }, "boot-1"))
	l.server.Clock.Observe(epoch, l.boot, l.boot)
	l.syncs()
	return l
}

// said are the messages of the events that were reported.
func (l *lab) said() (all []string) {
	for _, h := range l.told {
		all = append(all, h.String())
	}
	return all
}

// boots starts a server that has read nothing yet.
func (l *lab) boots(c *clock.Clock) {
	l.server = newServer(pool.NewTable(l.machines), l.store, c, slog.New(slog.DiscardHandler))
	l.server.Happened = func(h Event) { l.told = append(l.told, h) }
	l.reconfigure(func(*pool.Config) {})
}

func (l *lab) syncs() { NewWithT(l.t).Expect(l.server.Sync(l.t.Context())).To(Succeed()) }

func (l *lab) reconfigure(change func(*pool.Config)) {
	change(&l.config)
	l.server.Configure(l.config)
}

func (l *lab) passes(d time.Duration) { l.boot += d }

func (l *lab) now() time.Time { now, _ := l.server.Clock.Now(); return now }

// lab implements Port for the server.
func (l *lab) Receive() (link.Packet, error)            { return link.Packet{}, errors.New("not used") }
func (l *lab) MTU() int                                 { return 1500 }
func (l *lab) Close() error                             { return nil }
func (l *lab) Send(data []byte, _ netip.AddrPort) error { l.sent = append(l.sent, data); return nil }

func (l *lab) Answers(_ context.Context, ip netip.Addr, client string, known bool, wait time.Duration) (bool, error) {
	l.probes++
	l.known = append(l.known, known)
	l.waited = append(l.waited, wait)
	if l.mute != nil {
		return false, l.mute
	}
	host, there := l.hosts[ip]
	if host == undecided {
		return false, link.ErrUndecided
	}
	return there && host != client, nil
}

// hears lets the server answer a message, and returns the reply; nil is silence.
func (l *lab) hears(mac string, kind dhcpv4.MessageType, with ...dhcpv4.Modifier) *dhcpv4.DHCPv4 {
	l.t.Helper()
	return l.hearsAt(time.Now(), mac, kind, with...)
}

func (l *lab) hearsAt(received time.Time, mac string, kind dhcpv4.MessageType, with ...dhcpv4.Modifier) *dhcpv4.DHCPv4 {
	l.t.Helper()
	hardware, err := net.ParseMAC("52:54:00:00:00:00"[:17-len(mac)] + mac)
	NewWithT(l.t).Expect(err).NotTo(HaveOccurred())
	sent, err := dhcpv4.New(append([]dhcpv4.Modifier{dhcpv4.WithHwAddr(hardware), dhcpv4.WithMessageType(kind)}, with...)...)
	NewWithT(l.t).Expect(err).NotTo(HaveOccurred())
	m, err := wire.Parse(sent.ToBytes())
	NewWithT(l.t).Expect(err).NotTo(HaveOccurred())
	l.sent = nil
	l.server.answer(l.t.Context(), l, m, received)
	if len(l.sent) == 0 {
		return nil
	}
	reply, err := dhcpv4.FromBytes(l.sent[0])
	NewWithT(l.t).Expect(err).NotTo(HaveOccurred())
	return reply
}

func (l *lab) discover(mac string, with ...dhcpv4.Modifier) *dhcpv4.DHCPv4 {
	l.t.Helper()
	return l.hears(mac, dhcpv4.MessageTypeDiscover, with...)
}

func (l *lab) selects(mac string, ip netip.Addr) *dhcpv4.DHCPv4 {
	l.t.Helper()
	return l.hears(mac, dhcpv4.MessageTypeRequest, wants(ip), chose(l.config.Server))
}

func (l *lab) reboots(mac string, ip netip.Addr) *dhcpv4.DHCPv4 {
	l.t.Helper()
	return l.hears(mac, dhcpv4.MessageTypeRequest, wants(ip))
}

func (l *lab) renews(mac string, ip netip.Addr) *dhcpv4.DHCPv4 {
	l.t.Helper()
	return l.hears(mac, dhcpv4.MessageTypeRequest, has(ip))
}

func (l *lab) releases(mac string, ip netip.Addr) {
	l.t.Helper()
	NewWithT(l.t).Expect(l.hears(mac, dhcpv4.MessageTypeRelease, has(ip), chose(l.config.Server))).To(BeNil(), "a RELEASE is not answered")
}

func (l *lab) declines(mac string, ip netip.Addr) {
	l.t.Helper()
	NewWithT(l.t).Expect(l.hears(mac, dhcpv4.MessageTypeDecline, wants(ip), chose(l.config.Server))).To(BeNil(), "a DECLINE is not answered")
}

// binds does the whole exchange.
func (l *lab) binds(mac string) netip.Addr {
	l.t.Helper()
	offer := l.discover(mac)
	NewWithT(l.t).Expect(offer).NotTo(BeNil(), "no OFFER")
	ip := yours(offer)
	NewWithT(l.t).Expect(yours(acked(l.t, l.selects(mac, ip)))).To(Equal(ip))
	return ip
}

func wants(ip netip.Addr) dhcpv4.Modifier {
	return dhcpv4.WithOption(dhcpv4.OptRequestedIPAddress(ip.AsSlice()))
}

func chose(ip netip.Addr) dhcpv4.Modifier {
	return dhcpv4.WithOption(dhcpv4.OptServerIdentifier(ip.AsSlice()))
}

func has(ip netip.Addr) dhcpv4.Modifier { return dhcpv4.WithClientIP(ip.AsSlice()) }

func through(ip netip.Addr) dhcpv4.Modifier { return dhcpv4.WithGatewayIP(ip.AsSlice()) }

func yours(reply *dhcpv4.DHCPv4) netip.Addr {
	ip, _ := netip.AddrFromSlice(reply.YourIPAddr.To4())
	return ip
}

func leaseOf(reply *dhcpv4.DHCPv4) time.Duration { return reply.IPAddressLeaseTime(-1) }

func acked(t *testing.T, reply *dhcpv4.DHCPv4) *dhcpv4.DHCPv4 {
	t.Helper()
	NewWithT(t).Expect(reply).NotTo(BeNil(), "silence in place of an ACK")
	NewWithT(t).Expect(reply.MessageType()).To(Equal(dhcpv4.MessageTypeAck))
	return reply
}

func refused(t *testing.T, reply *dhcpv4.DHCPv4) {
	t.Helper()
	NewWithT(t).Expect(reply).NotTo(BeNil(), "silence in place of a NAK")
	NewWithT(t).Expect(reply.MessageType()).To(Equal(dhcpv4.MessageTypeNak))
}

func ignored(t *testing.T, reply *dhcpv4.DHCPv4) {
	t.Helper()
	NewWithT(t).Expect(reply).To(BeNil(), "an answer in place of silence")
}

// memoryStore is a store that can fail as a real one does.
type memoryStore struct {
	mu      sync.Mutex
	records map[netip.Addr]lease.Record
	last    uint64
	writes  int
	// away: nothing is done. deaf: it is done, but the answer is lost. before runs once, ahead of the next write.
	away, deaf bool
	before     func()
}

func (m *memoryStore) write(r lease.Record, check func(lease.Record, bool) error) (lease.Record, error) {
	if before := m.before; before != nil {
		m.before = nil
		before()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.away {
		return lease.Record{}, errAway
	}
	was, exists := m.records[r.IP]
	if err := check(was, exists); err != nil {
		return lease.Record{}, err
	}
	m.last++
	m.writes++
	r.Version = m.last
	m.records[r.IP] = r
	if m.deaf {
		return lease.Record{}, errAway
	}
	return r, nil
}

// notes is what DNS and the proxy do: a write of the status, which raises a record's version and leaves it else as it was.
func (m *memoryStore) notes(ip netip.Addr) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, exists := m.records[ip]
	if exists {
		m.last++
		r.Version = m.last
		m.records[ip] = r
	}
	return exists
}

func (m *memoryStore) Create(_ context.Context, r lease.Record) (lease.Record, error) {
	return m.write(r, func(_ lease.Record, exists bool) error {
		if exists {
			return lease.ErrExists
		}
		return nil
	})
}

func (m *memoryStore) Update(_ context.Context, r lease.Record) (lease.Record, error) {
	return m.write(r, func(was lease.Record, exists bool) error {
		if !exists || was.Version != r.Version {
			return lease.ErrConflict
		}
		return nil
	})
}

func (m *memoryStore) Get(_ context.Context, ip netip.Addr) (lease.Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, exists := m.records[ip]
	switch {
	case m.away:
		return lease.Record{}, errAway
	case !exists:
		return lease.Record{}, lease.ErrNotFound
	}
	return r, nil
}

func (m *memoryStore) List(_ context.Context, take func(lease.Record)) (uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.away {
		return 0, errAway
	}
	for _, r := range slices.SortedFunc(maps.Values(m.records), func(a, b lease.Record) int { return cmp.Compare(a.Version, b.Version) }) {
		take(r)
	}
	return m.last, nil
}

// someMachines are the virtual machines of a test. Where a test says nothing, there are none.
type someMachines struct {
	owners  map[string]pool.Owner // by the last octet of the hardware address
	running map[string]bool
	gone    map[string]bool // UIDs
	named   map[string]lease.VM
	pending bool
}

func (s *someMachines) Owner(mac string) pool.Owner {
	o := s.owners[mac[max(0, len(mac)-2):]]
	o.Unresolved = !o.Known() && s.pending
	return o
}

func (s *someMachines) InUse(mac string) bool { return s.running[mac[len(mac)-2:]] }

func (s *someMachines) Exists(vm lease.VM) (bool, lease.VM) { return !s.gone[vm.UID], s.named[vm.Name] }

// has lets a machine run with a hardware address.
func (s *someMachines) has(name, mac string) lease.VM {
	vm := lease.VM{Namespace: "clusters-c1", Name: name, UID: name + "-uid"}
	s.owners[mac], s.running[mac] = pool.Owner{VM: vm}, true
	return vm
}
