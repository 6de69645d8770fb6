package check

import (
	"net/netip"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/endpoint"
	"github.com/cldmnky/oooi/internal/plan/apps"
)

func TestWhatIsOffIsJudgedByWhatStandsInForIt(t *testing.T) {
	proxy := func(v *apps.Published) { v.Infra.Spec.InfraComponents.Proxy.Enabled = ptr.To(false) }
	dns := func(v *apps.Published) { v.Infra.Spec.InfraComponents.DNS.Enabled = ptr.To(false) }
	dhcp := func(v *apps.Published) { v.Infra.Spec.InfraComponents.DHCP.Enabled = ptr.To(false) }
	gateway := func(v *apps.Published) { v.Gateway = netip.MustParseAddr("192.168.100.254") }
	routes := func(v *apps.Published) {
		v.Infra.Spec.NetworkConfig.Routes = []v1alpha1.Route{{Destination: "10.0.0.0/8", Gateway: "192.168.100.253"}}
	}
	resolvers := func(v *apps.Published) { v.Infra.Spec.NetworkConfig.DNSServers = []v1alpha1.IPAddress{"192.168.100.9"} }
	published := func(v *apps.Published) {
		v.Table.Endpoints = []endpoint.Endpoint{{Name: "api", PublishedIPs: []netip.Addr{netip.MustParseAddr("203.0.113.10")}}}
	}
	for name, c := range map[string]struct {
		of   []func(*apps.Published)
		says string // reason and severity of the first finding; empty: none
	}{
		"the proxy":                                {[]func(*apps.Published){proxy}, "ProxyDisabled failing"},
		"both, with a gateway and resolvers":       {[]func(*apps.Published){proxy, dns, gateway, resolvers}, "ProxyDisabled warning"},
		"both, with routes and resolvers":          {[]func(*apps.Published){proxy, dns, routes, resolvers}, "ProxyDisabled warning"},
		"both, with resolvers alone":               {[]func(*apps.Published){proxy, dns, resolvers}, "ProxyDisabled failing"},
		"DNS":                                      {[]func(*apps.Published){dns}, "DNSDisabled failing"},
		"DNS, with resolvers":                      {[]func(*apps.Published){dns, resolvers}, ""},
		"DNS and DHCP":                             {[]func(*apps.Published){dns, dhcp}, "DNSDisabled warning"},
		"DNS, where all is published by addresses": {[]func(*apps.Published){dns, published}, ""},
		"all": {[]func(*apps.Published){dns, dhcp, proxy}, "ComponentsDisabled failing"},
	} {
		t.Run(name, func(t *testing.T) {
			g, v := NewWithT(t), &apps.Published{}
			v.Infra = &v1alpha1.Infra{}
			v.Table.Endpoints = []endpoint.Endpoint{{Name: "api", Hostnames: []string{"api.example.com"}}}
			for _, change := range c.of {
				change(v)
			}
			said := services(*v)
			if c.says == "" {
				g.Expect(said).To(BeEmpty())
				return
			}
			g.Expect(said).NotTo(BeEmpty())
			g.Expect(said[0].Reason + " " + said[0].Severity.String()).To(Equal(c.says))
		})
	}
}
