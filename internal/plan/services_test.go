package plan

import (
	"net/netip"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/endpoint"
)

func TestWhatIsOffIsJudgedByWhatStandsInForIt(t *testing.T) {
	proxy := func(v *view) { v.Infra.Spec.InfraComponents.Proxy.Enabled = ptr.To(false) }
	dns := func(v *view) { v.Infra.Spec.InfraComponents.DNS.Enabled = ptr.To(false) }
	dhcp := func(v *view) { v.Infra.Spec.InfraComponents.DHCP.Enabled = ptr.To(false) }
	gateway := func(v *view) { v.gateway = netip.MustParseAddr("192.168.100.254") }
	routes := func(v *view) {
		v.Infra.Spec.NetworkConfig.Routes = []v1alpha1.Route{{Destination: "10.0.0.0/8", Gateway: "192.168.100.253"}}
	}
	resolvers := func(v *view) { v.Infra.Spec.NetworkConfig.DNSServers = []v1alpha1.IPAddress{"192.168.100.9"} }
	literal := func(v *view) {
		v.table.Endpoints = []endpoint.Endpoint{{Name: "api", Literals: []netip.Addr{netip.MustParseAddr("203.0.113.10")}}}
	}
	for name, c := range map[string]struct {
		of   []func(*view)
		says string // reason and outcome of the first; empty is nothing
	}{
		"the proxy":                                {[]func(*view){proxy}, "ProxyIsOff Broken"},
		"both, with a gateway and resolvers":       {[]func(*view){proxy, dns, gateway, resolvers}, "ProxyIsOff OK"},
		"both, with routes and resolvers":          {[]func(*view){proxy, dns, routes, resolvers}, "ProxyIsOff OK"},
		"both, with resolvers alone":               {[]func(*view){proxy, dns, resolvers}, "ProxyIsOff Broken"},
		"DNS":                                      {[]func(*view){dns}, "DNSIsOff Broken"},
		"DNS, with resolvers":                      {[]func(*view){dns, resolvers}, ""},
		"DNS and DHCP":                             {[]func(*view){dns, dhcp}, "DNSIsOff OK"},
		"DNS, where all is published by addresses": {[]func(*view){dns, literal}, ""},
		"all": {[]func(*view){dns, dhcp, proxy}, "ServicesAreOff Broken"},
	} {
		t.Run(name, func(t *testing.T) {
			g, v := NewWithT(t), &view{Input: Input{Infra: &v1alpha1.Infra{}}}
			v.table.Endpoints = []endpoint.Endpoint{{Name: "api", Hostnames: []string{"api.example.com"}}}
			for _, change := range c.of {
				change(v)
			}
			said := v.services()
			if c.says == "" {
				g.Expect(said).To(BeEmpty())
				return
			}
			g.Expect(said).NotTo(BeEmpty())
			g.Expect(said[0].Reason + " " + said[0].Outcome.String()).To(Equal(c.says))
		})
	}
}
