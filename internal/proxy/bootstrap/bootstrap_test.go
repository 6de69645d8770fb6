package bootstrap

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestTheCapStaysBelowWhatKillsEnvoy(t *testing.T) {
	for name, c := range map[string]struct {
		limits Limits
		want   int64
		refuse string
	}{
		"descriptors bound":            {Limits{Descriptors: 1024, MemoryBytes: 1 << 30}, 384, ""},
		"memory binds":                 {Limits{Descriptors: 1 << 20, MemoryBytes: 2 << 30}, 4883, ""},
		"no memory limit":              {Limits{Descriptors: 4096}, 1920, ""},
		"no descriptor limit":          {Limits{Descriptors: 1<<64 - 1}, 524160, ""},
		"too few descriptors":          {Limits{Descriptors: 256}, 0, "no room for one connection: 256 file descriptors"},
		"less memory than Envoy needs": {Limits{Descriptors: 1024, MemoryBytes: 32 << 20}, 0, "no room for one connection"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			n, err := c.limits.Connections()
			if c.refuse != "" {
				g.Expect(err).To(MatchError(ContainSubstring(c.refuse)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(n).To(Equal(c.want))
		})
	}
}

func TestACompleteBootstrapListensOnUnixSocketsOnly(t *testing.T) {
	g := NewWithT(t)
	template := Template("tenants", "c1-proxy")
	g.Expect(template).To(Equal(Template("tenants", "c1-proxy")), "a ConfigMap that changes by itself would roll the pod")
	out, err := Complete(template, Machine{XDSSocket: "/xds/xds.sock", Connections: 384, MemoryBytes: 512 << 20})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(out)).To(And(
		ContainSubstring("path: /xds/admin.sock"),
		ContainSubstring("path: /xds/xds.sock"),
		ContainSubstring("buffer_size_kb: 8"),
		ContainSubstring(`max_active_downstream_connections: "384"`),
		ContainSubstring(`max_heap_size_bytes: "536870912"`),
		Not(ContainSubstring("socket_address")),
	))
}

func TestADamagedTemplateIsRefused(t *testing.T) {
	_, err := Complete("node: {idd: x}", Machine{XDSSocket: "/xds/xds.sock", Connections: 1})
	NewWithT(t).Expect(err).To(MatchError(And(HavePrefix("reading the bootstrap template: "), ContainSubstring("idd"), ContainSubstring("give it as this release's operator wrote it"))))
}

func TestEnvoyEndsWhenAThreadOfItIsStuck(t *testing.T) {
	NewWithT(t).Expect(Template("tenants", "c1-proxy")).To(ContainSubstring(`watchdogs:
  main_thread_watchdog:
    kill_timeout: 60s
  worker_watchdog:
    kill_timeout: 60s
`))
}
