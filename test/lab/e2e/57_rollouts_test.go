//go:build e2e && outages

package e2e

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cldmnky/oooi/test/lab/scene"
)

// Each service and the manager are replaced, and routes change, while clients look names up ten thousand times and lease a thousand: none
// fails, a new connection by name waits a second at most, and no stream is cut but those through a proxy that is replaced.
func TestRolloutsAreNotNoticed(t *testing.T) {
	const lookups, machines = 10_000, 1000
	o := outage(t, 20*time.Minute, mostOutages)
	more := o.many(o.ctx)
	for n := 0; ; n++ {
		var streams []func() error
		for _, proxy := range o.proxies {
			streams = append(streams, keepsAsking(o.ctx, dial(more.client, net.JoinHostPort(proxy, "6443"))))
		}
		for _, f := range o.rollouts(n) {
			if f.cuts {
				for _, goesOn := range streams {
					must(t, goesOn())
				}
				streams = nil
			}
			o.rolls(f)
		}
		asked, leased := more.counts()
		if t.Logf("%d lookups, %d machines", asked, leased); asked >= lookups && leased >= machines {
			break
		}
	}
	more.stop()
	for _, a := range more.askers {
		if m := a.begins(); m.failed > 0 {
			t.Errorf("%s: %s", a.wants, m)
		}
	}
}

// rolls does it, and judges what clients by name, of DNS and of DHCP met. While DNS is replaced, a client waits for its first name server as
// long as it pleases.
func (o *outages) rolls(f fault) {
	o.Helper()
	began, ofDNS := time.Now(), f.name == "dns is replaced"
	for wants, m := range o.during(f.does) {
		o.Logf("%s (%.1f s): %-50s %s", f.name, time.Since(began).Seconds(), wants, m)
		if (wants == names || wants == leases) && m.failed > 0 || wants == handshakes && m.gap > time.Second && !ofDNS {
			o.Errorf("%s: %s: %s", f.name, wants, m)
		}
	}
}

// rollouts are one round of them; those that cut streams come last.
func (o *outages) rollouts(round int) []fault {
	patched := func(spec string) {
		kubectl(o.T, o.ctx, "-n", "clusters", "patch", "infra", "outage", "--type=merge", "-p", spec)
	}
	replaced := func(component string) func() {
		return func() {
			before := o.uids(component)
			patched(fmt.Sprintf(`{"spec":{"infraComponents":{%q:{"resources":{"requests":{"memory":"%dMi"}}}}}}`, component, 40+round))
			must(o.T, scene.Until(o.ctx, component+" is replaced", func(context.Context) error {
				if slices.ContainsFunc(o.uids(component), func(uid string) bool { return slices.Contains(before, uid) }) {
					return errors.New("a pod of before is there")
				}
				return nil
			}))
			o.serves()
		}
	}
	const again = `{"name": "again", "hostnames": ["again.example.com"], "port": 5001, "protocol": "TLS", "target": {"service": "ignition-server-proxy", "namespace": "clusters-c1", "port": 443}}`
	return []fault{
		{"dns is replaced", false, replaced("dns")},
		{"dhcp is replaced", false, replaced("dhcp")},
		{"another route, and its end", false, func() {
			for _, all := range []string{namedAPI + "," + again, namedAPI} {
				patched(`{"spec":{"extraEndpoints":[` + all + `]}}`)
				o.serves()
			}
		}},
		{"the manager is replaced", false, func() {
			kubectl(o.T, o.ctx, "-n", "oooi-system", "rollout", "restart", "deployment/oooi-controller-manager")
			kubectl(o.T, o.ctx, "-n", "oooi-system", "rollout", "status", "deployment/oooi-controller-manager", "--timeout=120s")
		}},
		{"the proxies are replaced", true, replaced("proxy")},
	}
}

// uids of a component's pods.
func (o *outages) uids(component string) []string {
	o.Helper()
	return strings.Fields(kubectl(o.T, o.ctx, "-n", "clusters", "get", "pods", "-l", "app.kubernetes.io/instance=outage-"+component, "-o", "jsonpath={.items[*].metadata.uid}"))
}
