package proxy

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"unicode/utf8"

	. "github.com/onsi/gomega"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/proxy/intent"
)

// If a message were longer than its bound, the API server would refuse the whole status.
func TestABackendsMessageFitsItsStatus(t *testing.T) {
	var many []netip.AddrPort
	for i := range 64 {
		many = append(many, netip.MustParseAddrPort(fmt.Sprintf("192.168.100.1%02d:30443", i)))
	}
	away, long := tally{total: 64}, strings.Repeat("ä", 253)
	for name, c := range map[string]struct {
		backend intent.Backend
		says    string
	}{
		"as many addresses as there may be": {intent.Backend{Targets: many}, "none of targetAddresses (192.168.100.100:30443, 192.168.100.101:30443, 192.168.100.102:30443, 61 more) takes a connection"},
		"three":                             {intent.Backend{Targets: many[:3]}, "none of targetAddresses (192.168.100.100:30443, 192.168.100.101:30443, 192.168.100.102:30443) takes a connection"},
		"one":                               {intent.Backend{Targets: many[:1]}, "none of targetAddresses (192.168.100.100:30443) takes a connection"},
		"long names":                        {intent.Backend{Service: &intent.Service{Namespace: long, Name: long, Port: 443}}, "no ready pod of service "},
	} {
		t.Run(name, func(t *testing.T) {
			c.backend.Name = "api"
			p := &Proxy{probes: newProbes(), said: newSaid(), seen: &v1alpha1.ProxyServer{}, told: intent.Intent{Backends: []intent.Backend{c.backend}}}
			all := p.backends(map[string]tally{"api": away})
			g := NewWithT(t)
			g.Expect(all).To(HaveLen(1))
			g.Expect(all[0].Message).To(HavePrefix(c.says))
			g.Expect(utf8.RuneCountInString(all[0].Message)).To(BeNumerically("<=", 1024))
		})
	}
}
