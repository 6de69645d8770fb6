package soak

import (
	"encoding/binary"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
)

var (
	one, two = net.HardwareAddr{2, 0, 0, 0, 0, 1}, net.HardwareAddr{2, 0, 0, 0, 0, 2}
	start    = time.Date(2026, 11, 25, 0, 0, 0, 0, time.UTC)
)

// Each story is told in packets; what must not happen in it is named, and nothing else is.
func TestAJournalNamesWhatMayNotHappen(t *testing.T) {
	const a, b = "192.0.2.10", "192.0.2.11"
	ack := func(mac net.HardwareAddr, ip string) []byte { return message(dhcpv4.MessageTypeAck, mac, ip) }
	for name, c := range map[string]struct {
		tells func(hears func(after time.Duration, mac net.HardwareAddr, frame []byte))
		want  string
	}{
		"a lease, renewed": {func(hears func(time.Duration, net.HardwareAddr, []byte)) {
			hears(0, one, ack(one, a))
			hears(time.Second, one, ack(one, a))
		}, ""},
		"an address twice": {func(hears func(time.Duration, net.HardwareAddr, []byte)) {
			hears(0, one, ack(one, a))
			hears(time.Second, two, ack(two, a))
		}, "02:00:00:00:00:01 holds it for 59s more"},
		"an address again, after its lease": {func(hears func(time.Duration, net.HardwareAddr, []byte)) {
			hears(0, one, ack(one, a))
			hears(2*time.Minute, two, ack(two, a))
		}, ""},
		"an address again, released, whose RELEASE is captured last": {func(hears func(time.Duration, net.HardwareAddr, []byte)) {
			hears(0, one, ack(one, a))
			hears(2*time.Second, two, ack(two, a))
			hears(time.Second, one, message(dhcpv4.MessageTypeRelease, one, a))
		}, ""},
		"who gave an address back speaks for it until it has another, as who had it before did": {func(hears func(time.Duration, net.HardwareAddr, []byte)) {
			for range 2 {
				for _, machine := range []net.HardwareAddr{one, two} {
					hears(0, machine, ack(machine, a))
					hears(0, machine, message(dhcpv4.MessageTypeRelease, machine, a))
					hears(0, machine, arp(machine, a))
				}
			}
		}, ""},
		"an address again, released": {func(hears func(time.Duration, net.HardwareAddr, []byte)) {
			hears(0, one, ack(one, a))
			hears(time.Second, one, message(dhcpv4.MessageTypeRelease, one, a))
			hears(2*time.Second, two, ack(two, a))
		}, ""},
		"a lease lost": {func(hears func(time.Duration, net.HardwareAddr, []byte)) {
			hears(0, one, ack(one, a))
			hears(time.Second, one, ack(one, b))
		}, "holds 192.0.2.10, and was acknowledged 192.0.2.11"},
		"a lease refused": {func(hears func(time.Duration, net.HardwareAddr, []byte)) {
			hears(0, one, ack(one, a))
			hears(time.Second, one, message(dhcpv4.MessageTypeNak, one, ""))
		}, "was refused"},
		"what another client is told": {func(hears func(time.Duration, net.HardwareAddr, []byte)) {
			hears(0, one, ack(one, a))
			hears(time.Second, one, ack(two, a))
		}, ""},
		"who holds no lease is refused": {func(hears func(time.Duration, net.HardwareAddr, []byte)) {
			hears(0, one, message(dhcpv4.MessageTypeNak, one, ""))
		}, ""},
		"a stranger speaks for a leased address": {func(hears func(time.Duration, net.HardwareAddr, []byte)) {
			hears(0, one, ack(one, a))
			hears(time.Second, one, arp(one, a))
			hears(time.Second, one, arp(two, a))
		}, "02:00:00:00:00:02 speaks for 192.0.2.10"},
		"a pod that moved": {func(hears func(time.Duration, net.HardwareAddr, []byte)) {
			hears(0, one, arp(one, a))
			hears(time.Second, one, arp(two, a))
			hears(time.Second, one, arp(two, a))
		}, ""},
		"two pods with one address": {func(hears func(time.Duration, net.HardwareAddr, []byte)) {
			hears(0, one, arp(one, a))
			hears(time.Second, one, arp(two, a))
			hears(time.Second, one, arp(one, a))
		}, "in turns"},
		"a probe": {func(hears func(time.Duration, net.HardwareAddr, []byte)) {
			hears(0, one, ack(one, a))
			hears(time.Second, one, arp(two, "0.0.0.0"))
		}, ""},
		"garbage": {func(hears func(time.Duration, net.HardwareAddr, []byte)) {
			for n := range 60 {
				hears(0, one, ack(one, a)[:n])
			}
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			j := new(Journal)
			c.tells(func(after time.Duration, mac net.HardwareAddr, frame []byte) { j.Frame(start.Add(after), mac, frame) })
			faults, _, _ := j.Faults()
			if got := strings.Join(faults, "\n"); (c.want == "") != (got == "") || !strings.Contains(got, c.want) || len(faults) > 1 {
				t.Errorf("faults are %q, want %q", got, c.want)
			}
		})
	}
}

func message(kind dhcpv4.MessageType, mac net.HardwareAddr, ip string) []byte {
	m, err := dhcpv4.New(dhcpv4.WithMessageType(kind), dhcpv4.WithHwAddr(mac), dhcpv4.WithLeaseTime(60))
	if err != nil {
		panic(err)
	}
	port := uint16(dhcpv4.ClientPort)
	if m.OpCode = dhcpv4.OpcodeBootReply; kind == dhcpv4.MessageTypeRelease {
		m.OpCode, m.ClientIPAddr, port = dhcpv4.OpcodeBootRequest, net.ParseIP(ip), dhcpv4.ServerPort
	} else if ip != "" {
		m.YourIPAddr = net.ParseIP(ip)
	}
	datagram := binary.BigEndian.AppendUint16([]byte{0, 0}, port)
	packet := append(make([]byte, 20), append(datagram, 0, 0, 0, 0)...)
	packet[0], packet[9] = 0x45, 17
	return ethernet(0x0800, append(packet, m.ToBytes()...))
}

func arp(mac net.HardwareAddr, ip string) []byte {
	packet := append([]byte{0, 1, 8, 0, 6, 4, 0, 1}, mac...)
	return ethernet(0x0806, append(append(packet, net.ParseIP(ip).To4()...), make([]byte, 10)...))
}

func ethernet(kind uint16, payload []byte) []byte {
	return append(binary.BigEndian.AppendUint16(make([]byte, 12), kind), payload...)
}
