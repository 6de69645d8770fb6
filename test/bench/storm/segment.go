package main

import (
	"fmt"
	"net"
	"net/netip"
	"strings"

	"github.com/cldmnky/oooi/test/bench/internal/machines"
	"github.com/cldmnky/oooi/test/bench/internal/segment"
)

// The hosts: the server's, and one whose card speaks for all machines.
const serving, booting = "s", "m"

// The addresses are documented as free for benchmarks (RFC 2544).
const (
	device, subnet, serverIP = "net1", "198.18.0.0/16", "198.18.0.2"
	first, last              = "198.18.0.3", "198.18.255.254"
)

var serverHost = machines.Host{Card: net.HardwareAddr{2, 0x18, 0xff, 0xff, 0xff, 0xff}, IP: netip.MustParseAddr(serverIP)}

func newSegment() (*segment.Segment, error) {
	return segment.New("storm", []string{serving, booting},
		"-n s: link add "+device+" address "+serverHost.Card.String()+" type veth peer name "+device+" netns m:",
		"-n s: address add "+serverIP+"/16 dev "+device,
		"-n s: link set "+device+" up",
		"-n m: link set "+device+" up")
}

// clients are on the machines' card.
func clients(s *segment.Segment) (*machines.Clients, error) {
	socket, err := s.Packets(booting, device)
	c := machines.On(socket)
	c.Server = serverHost
	return c, err
}

// knows spares the server a question for a machine's card (ARP), which no kernel answers here.
func knows(s *segment.Segment, m *machines.Machine) error {
	line := fmt.Sprintf("ip neighbour add %s lladdr %s dev %s nud permanent", m.Address, m.Hardware, device)
	if out, err := s.On(serving, strings.Fields(line)...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", line, err, out)
	}
	return nil
}
