package translate

import (
	"net/netip"
	"testing"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"sigs.k8s.io/yaml"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/proxy/intent"
	"github.com/cldmnky/oooi/internal/unroutable"
)

var fuzzPlace = intent.Place{
	Pod:      netip.MustParseAddr("10.244.0.9"),
	Devices:  map[netip.Addr]string{netip.MustParseAddr("192.168.100.10"): "net1", netip.MustParseAddr("10.244.0.9"): "eth0"},
	Networks: map[netip.Addr]netip.Prefix{netip.MustParseAddr("192.168.100.10"): netip.MustParsePrefix("192.168.100.10/24")},
}

// A spec is refused, or its configuration is valid by the protos' own rules, has no two chains with the same match, and has only targets that
// the proxy may dial.
func FuzzSpec(f *testing.F) {
	f.Add([]byte(`{networkConfig: {serverIP: 192.168.100.10}, backends: [
		{name: api, protocol: TLS, port: 6443, hostname: api.c1.example.com, catchAll: true, views: VLANAndPods, targetService: kas, targetPort: 6443, targetNamespace: c1},
		{name: apps, protocol: TLS, port: 443, hostname: "*.apps.c1.example.com", alternateHostnames: [a.b], targetAddresses: ["10.0.0.1:443"]}]}`))
	f.Add([]byte(`{networkConfig: {serverIP: 192.168.100.10, capturedAddresses: [{ip: 192.168.100.10, ports: [80]}]}, backends: [
		{name: plain, port: 80, timeoutSeconds: -1, targetAddresses: ["[::ffff:169.254.169.254]:80", "192.168.100.50:80"]}]}`))
	f.Fuzz(func(t *testing.T, document []byte) {
		var spec v1alpha1.ProxyServerSpec
		if yaml.Unmarshal(document, &spec) != nil {
			return
		}
		in, findings := intent.Of(spec, fuzzPlace, func(intent.Service) []netip.AddrPort { return nil })
		if len(findings) > 0 {
			return
		}
		for _, b := range in.Backends {
			for _, target := range b.Targets {
				if unroutable.Is(target.Addr()) {
					t.Errorf("backend %s dials %s", b.Name, target)
				}
			}
		}
		checkConfig(t, Intent(in, connections))
	})
}

func checkConfig(t *testing.T, c Config) {
	t.Helper()
	names := map[string]bool{}
	for _, l := range c.Listeners {
		if err := l.ValidateAll(); err != nil {
			t.Error(err)
		}
		if names[l.Name] {
			t.Errorf("listener %s twice", l.Name)
		}
		names[l.Name] = true
		checkChains(t, l)
	}
	for _, cluster := range c.Clusters {
		if err := cluster.ValidateAll(); err != nil {
			t.Error(err)
		}
	}
	for _, e := range c.Endpoints {
		if err := e.ValidateAll(); err != nil {
			t.Error(err)
		}
	}
}

func checkChains(t *testing.T, l *listenerv3.Listener) {
	t.Helper()
	matched := map[string]bool{}
	if l.FilterChainMatcher != nil {
		return // a gate has one chain per block, whatever the spec says
	}
	for _, chain := range l.FilterChains {
		names := chain.GetFilterChainMatch().GetServerNames()
		if len(names) == 0 {
			names = []string{"(everything)"}
		}
		for _, name := range names {
			if matched[name] {
				t.Errorf("listener %s: two chains match %s", l.Name, name)
			}
			matched[name] = true
		}
	}
	if len(l.FilterChains) == 0 && l.DefaultFilterChain == nil {
		t.Errorf("listener %s leads nowhere", l.Name)
	}
}
