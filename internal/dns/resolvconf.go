package dns

import (
	"fmt"
	"net/netip"

	mdns "github.com/miekg/dns"
)

// nodeResolvers reads the nameservers of a resolv.conf: the node's own, since the pods have dnsPolicy Default.
func nodeResolvers(path string) ([]netip.AddrPort, error) {
	config, err := mdns.ClientConfigFromFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the node's resolvers (or set spec.upstreamDNS): %w", err)
	}
	var resolvers []netip.AddrPort
	for _, server := range config.Servers {
		addr, err := netip.ParseAddr(server)
		if err != nil {
			return nil, fmt.Errorf("reading the node's resolvers: %s: nameserver %q is not an IP address", path, server)
		}
		resolvers = append(resolvers, netip.AddrPortFrom(addr, dnsPort))
	}
	return resolvers, nil
}
