package wire

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/iana"

	"github.com/cldmnky/oooi/internal/dhcp/lease"
)

// probeID begins the client-id of an instance that asks whether another answers; its address follows.
const probeID = "\x00oooi-probe "

// Probing is the client that an instance is to others when it probes them. It has no hardware address, as where the link has none to give (RFC
// 4390 §2.1), so that it can be no client's that gets a lease.
func Probing(instance netip.Addr) lease.Client {
	return lease.ClientOf(byte(iana.HWTypeEthernet), nil, probeClientID(instance))
}

func probeClientID(instance netip.Addr) []byte { return append([]byte(probeID), instance.AsSlice()...) }

// ProbeOf is an instance's INFORM (RFC 2131 §4.4.3): it asks for a subnet mask, and for nothing that a server keeps.
func ProbeOf(instance netip.Addr, xid dhcpv4.TransactionID) []byte {
	m := dhcpv4.DHCPv4{OpCode: dhcpv4.OpcodeBootRequest, HWType: iana.HWTypeEthernet, TransactionID: xid, ClientIPAddr: instance.AsSlice()}
	m.UpdateOption(dhcpv4.OptMessageType(dhcpv4.MessageTypeInform))
	m.UpdateOption(dhcpv4.OptGeneric(dhcpv4.OptionClientIdentifier, probeClientID(instance)))
	m.UpdateOption(dhcpv4.OptParameterRequestList(dhcpv4.OptionSubnetMask))
	return pad(m.ToBytes())
}

// ErrOther is of a datagram that answers something else.
var ErrOther = errors.New("it answers another message")

// JudgeProbed says what is wrong with a server's answer to a probe: it has to be an ACK of that server without an address and a lease time (RFC
// 2131 §4.3.5).
func JudgeProbed(datagram []byte, xid dhcpv4.TransactionID, server netip.Addr) error {
	reply, err := dhcpv4.FromBytes(datagram)
	if err != nil || reply.OpCode != dhcpv4.OpcodeBootReply || reply.TransactionID != xid {
		return ErrOther
	}
	says, err := addrOption(reply, dhcpv4.OptionServerIdentifier)
	switch {
	case reply.MessageType() != dhcpv4.MessageTypeAck:
		return fmt.Errorf("it answers an INFORM with %s", reply.MessageType())
	case err != nil || says != server:
		return fmt.Errorf("its server identifier is %v, not %s", reply.ServerIdentifier(), server)
	case addr(reply.YourIPAddr).IsValid() || reply.Options.Has(dhcpv4.OptionIPAddressLeaseTime):
		return errors.New("it gives a lease to who asks for none")
	}
	return nil
}
