package wire

import (
	"net"
	"net/netip"
	"testing"

	"github.com/insomniacslk/dhcp/dhcpv4"
	. "github.com/onsi/gomega"
)

func TestAProbeIsAnInform(t *testing.T) {
	g, from := NewWithT(t), netip.MustParseAddr("192.168.100.3")
	m, err := Parse(ProbeOf(from, dhcpv4.TransactionID{1}))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(m.Kind).To(Equal(Inform))
	g.Expect(m.Current).To(Equal(from))
	g.Expect(m.Client).To(Equal(Probing(from)))
	g.Expect(m.Client.MAC).To(BeEmpty(), "no machine has it")
	g.Expect(Probing(from)).NotTo(Equal(Probing(from.Next())))
	g.Expect(m.Destination(dhcpv4.MessageTypeAck)).To(Equal(netip.AddrPortFrom(from, ClientPort)))
}

func TestTheAnswerToAProbeIsJudged(t *testing.T) {
	server, xid := netip.MustParseAddr("192.168.100.2"), dhcpv4.TransactionID{1, 2}
	probe, err := Parse(ProbeOf(netip.MustParseAddr("192.168.100.3"), xid))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	for name, c := range map[string]struct {
		reply  Reply
		change func(*dhcpv4.DHCPv4)
		says   string
	}{
		"as it should be": {reply: Reply{Type: dhcpv4.MessageTypeAck}},
		"a NAK":           {reply: Reply{Type: dhcpv4.MessageTypeNak}, says: "it answers an INFORM with NAK"},
		"another server":  {reply: Reply{Type: dhcpv4.MessageTypeAck, Server: server.Next()}, says: "its server identifier is 192.168.100.3, not 192.168.100.2"},
		"no identifier": {reply: Reply{Type: dhcpv4.MessageTypeAck}, says: "its server identifier is", change: func(m *dhcpv4.DHCPv4) {
			m.Options.Del(dhcpv4.OptionServerIdentifier)
		}},
		"an address":       {reply: Reply{Type: dhcpv4.MessageTypeAck, Yours: server.Next()}, says: "it gives a lease"},
		"a lease time":     {reply: Reply{Type: dhcpv4.MessageTypeAck, Lease: 1e9}, says: "it gives a lease"},
		"another question": {reply: Reply{Type: dhcpv4.MessageTypeAck}, says: ErrOther.Error(), change: func(m *dhcpv4.DHCPv4) { m.TransactionID[3]++ }},
		"a question":       {reply: Reply{Type: dhcpv4.MessageTypeAck}, says: ErrOther.Error(), change: func(m *dhcpv4.DHCPv4) { m.OpCode = dhcpv4.OpcodeBootRequest }},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			if !c.reply.Server.IsValid() {
				c.reply.Server = server
			}
			m, err := dhcpv4.FromBytes(probe.Encode(c.reply, 1500))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(m.ClientHWAddr).To(Equal(net.HardwareAddr{}))
			if c.change != nil {
				c.change(m)
			}
			switch err := JudgeProbed(m.ToBytes(), xid, server); c.says {
			case "":
				g.Expect(err).NotTo(HaveOccurred())
			default:
				g.Expect(err).To(MatchError(ContainSubstring(c.says)))
			}
		})
	}
	NewWithT(t).Expect(JudgeProbed([]byte("noise"), xid, server)).To(MatchError(ErrOther))
}
