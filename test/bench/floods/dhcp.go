package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/test/bench/internal/machines"
)

const (
	leaseWithin = 2 * time.Second
	reserved    = 512 // as many as a DHCPServer may have
	first, last = "198.18.16.0", "198.18.255.254"
)

var dhcp = service{
	name: names.DHCP,
	server: func() string {
		return `apiVersion: hostedcluster.densityops.com/v1alpha1
kind: DHCPServer
metadata: {generateName: flooded-, namespace: ` + namespace + `}
spec:
  networkConfig: {networkAttachmentDefinition: vlan, cidr: ` + vlan + `, serverIP: ` + vip + `, dnsServers: [` + vip + `]}
  leaseConfig: {rangeStart: ` + first + `, rangeEnd: ` + last + `, leaseTime: 24h}
  vmNamespace: ` + namespace + `
  reservations:
` + eachReserved("  - {ip: %s, mac: %q}\n")
	},
	attacks: []attack{
		{"starvation", starves}, {"DECLINE bombs", declines}, {"RELEASE and REQUEST in a loop", releases},
		{"spoofed server identifiers", spoofs}, {"a flood from one leased MAC", repeats},
	},
	begin: usesDHCP,
	peer: func() peer {
		return dnsmasq("port=0\ninterface=" + names.VLANInterface + "\ndhcp-range=" + first + "," + last + ",24h\nno-ping\ndhcp-authoritative\n" +
			"dhcp-lease-max=65000\ndhcp-leasefile=DIR/leases\n" + eachReserved("dhcp-host=%[2]s,%[1]s\n"))
	},
}

func eachReserved(format string) string {
	all := &strings.Builder{}
	for n := range reserved {
		fmt.Fprintf(all, format, fmt.Sprintf("198.18.%d.%d", 8+n/250, 1+n%250), machines.Hardware(uint32(n+1)))
	}
	return all.String()
}

// usesDHCP boots virtual machines that have reservations, each once.
func usesDHCP(ctx context.Context, p *pod) (usage, error) {
	socket, err := p.Packets(other, names.VLANInterface)
	if err != nil {
		return nil, err
	}
	c, left := machines.On(socket), reserved
	context.AfterFunc(ctx, c.Close)
	return func(ctx context.Context, length time.Duration) ([]*waits, error) {
		const each = 200 * time.Millisecond
		count := min(left, int(length/each))
		left -= count
		took, err := c.Boot(ctx, count, length)
		if ctx.Err() != nil {
			return nil, err
		}
		w := &waits{what: "a reserved machine's lease", within: leaseWithin}
		for _, one := range took {
			w.add(one, nil)
		}
		for range count - len(took) {
			w.add(time.Minute, err)
		}
		return []*waits{w}, nil
	}, nil
}
