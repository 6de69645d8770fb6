package translate

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"sigs.k8s.io/yaml"

	"github.com/cldmnky/oooi/internal/proxy/bootstrap"
	"github.com/cldmnky/oooi/internal/proxy/intent"
	"github.com/cldmnky/oooi/internal/testkit/golden"
)

// connections of the Envoy in a default Infra.
const connections = 7168

// Each testdata/<case>/in.yaml is an intent, and out.yaml Envoy's configuration for it.
func TestGoldens(t *testing.T) {
	golden.Cases(t, "testdata", []string{"in.yaml"}, func(t *testing.T, dir string) map[string]string {
		return map[string]string{"out.yaml": inYAML(t, oneBlock(t, Intent(readIntent(t, dir), connections)))}
	})
}

// oneBlock leaves only the first of a gate's blocks: all are alike except for their names.
func oneBlock(t *testing.T, c Config) Config {
	t.Helper()
	for _, l := range c.Listeners {
		list := l.GetFilterChainMatcher().GetMatcherList()
		if list == nil {
			continue
		}
		NewWithT(t).Expect(list.Matchers).To(HaveLen(blocks))
		NewWithT(t).Expect(l.FilterChains).To(HaveLen(blocks))
		first := proto.CloneOf(l.FilterChains[0])
		for n, c := range l.FilterChains {
			first.Name = fmt.Sprintf("block-%d", n)
			NewWithT(t).Expect(proto.Equal(first, c)).To(BeTrue())
		}
		l.FilterChains, list.Matchers = l.FilterChains[:1], list.Matchers[blocks-1:]
	}
	return c
}

func TestEnvoyAcceptsTheGoldens(t *testing.T) {
	envoy := os.Getenv("OOOI_ENVOY")
	if envoy == "" {
		t.Fatal("OOOI_ENVOY is not set: run `make test`, or set it to the path of an Envoy 1.40 binary")
	}
	dirs, err := filepath.Glob("testdata/*")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(dirs).NotTo(BeEmpty())
	for _, dir := range dirs {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "bootstrap.yaml")
			NewWithT(t).Expect(os.WriteFile(file, static(t, Intent(readIntent(t, dir), connections)), 0o600)).To(Succeed())
			out, err := exec.Command(envoy, "--mode", "validate", "-c", file).CombinedOutput()
			NewWithT(t).Expect(err).NotTo(HaveOccurred(), "%s", out)
		})
	}
}

// static is a bootstrap that contains the configuration.
func static(t *testing.T, c Config) []byte {
	t.Helper()
	g := NewWithT(t)
	content, err := bootstrap.Complete(bootstrap.Template("ns", "name"), bootstrap.Machine{XDSSocket: "/tmp/xds.sock", Connections: 1})
	g.Expect(err).NotTo(HaveOccurred())
	asJSON, err := yaml.YAMLToJSON(content)
	g.Expect(err).NotTo(HaveOccurred())
	b := &bootstrapv3.Bootstrap{}
	g.Expect(protojson.Unmarshal(asJSON, b)).To(Succeed())
	b.Admin = nil
	b.StaticResources.Listeners = c.Listeners
	b.StaticResources.Clusters = append(b.StaticResources.Clusters, c.Clusters...)
	asJSON, err = protojson.Marshal(b)
	g.Expect(err).NotTo(HaveOccurred())
	return asJSON
}

func readIntent(t *testing.T, dir string) (in intent.Intent) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(dir, "in.yaml"))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(yaml.UnmarshalStrict(content, &in)).To(Succeed())
	return in
}

func inYAML(t *testing.T, c Config) string {
	t.Helper()
	out, err := yaml.Marshal(map[string]any{"listeners": plain(t, c.Listeners), "clusters": plain(t, c.Clusters), "endpoints": plain(t, c.Endpoints)})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return string(out)
}

// plain turns protos into values that YAML can print, without protojson's random spacing.
func plain[T proto.Message](t *testing.T, messages []T) []any {
	t.Helper()
	all := []any{}
	for _, m := range messages {
		asJSON, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(m)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		var v any
		NewWithT(t).Expect(json.Unmarshal(asJSON, &v)).To(Succeed())
		all = append(all, v)
	}
	return all
}

// Envoy changes filter chains in place, and drains the port for any other difference.
func TestRoutesChangeFilterChainsOnly(t *testing.T) {
	at := netip.MustParseAddrPort("192.168.100.10:443")
	base := intent.Listener{At: at, Device: "net1", Protocol: intent.TLS, Routes: []intent.Route{{Backend: "a", ServerNames: []string{"a.example.com"}}}}
	for name, change := range map[string]func(*intent.Listener){
		"a route more": func(l *intent.Listener) {
			l.Routes = append(l.Routes, intent.Route{Backend: "b", ServerNames: []string{"b"}})
		},
		"no route":       func(l *intent.Listener) { l.Routes = nil },
		"a catch-all":    func(l *intent.Listener) { l.CatchAll = "a" },
		"a name changes": func(l *intent.Listener) { l.Routes = []intent.Route{{Backend: "a", ServerNames: []string{"c"}}} },
	} {
		t.Run(name, func(t *testing.T) {
			changed := base
			change(&changed)
			was, is := listeners(base, connections), listeners(changed, connections)
			NewWithT(t).Expect(was).To(HaveLen(2))
			NewWithT(t).Expect(proto.Equal(was[0], is[0])).To(BeFalse(), "the case changes nothing")
			for _, l := range []*listenerv3.Listener{was[0], is[0]} {
				l.FilterChains, l.DefaultFilterChain = nil, nil
			}
			for n := range was {
				if diff := cmp.Diff(was[n], is[n], protocmp.Transform()); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

func TestTargetsChangeEndpointsOnly(t *testing.T) {
	g := NewWithT(t)
	b := intent.Backend{Name: "a", Targets: []netip.AddrPort{netip.MustParseAddrPort("10.0.0.1:443")}}
	was := cluster(b)
	b.Targets = append(b.Targets, netip.MustParseAddrPort("10.0.0.2:443"))
	g.Expect(proto.Equal(was, cluster(b))).To(BeTrue())
}

func TestEverySocketIsBoundToItsDevice(t *testing.T) {
	want := append(bounded(), &corev3.SocketOption{Description: "SO_BINDTODEVICE", Level: 1, Name: 25, Value: &corev3.SocketOption_BufValue{BufValue: []byte("net1")}})
	for _, onPods := range []bool{false, true} {
		for _, l := range listeners(intent.Listener{At: netip.MustParseAddrPort("192.168.100.10:443"), Device: "net1", Protocol: intent.TCP, CatchAll: "a", OnPods: onPods}, connections) {
			if l.GetInternalListener() != nil {
				continue
			}
			if diff := cmp.Diff(want, l.SocketOptions, protocmp.Transform()); diff != "" {
				t.Error(diff)
			}
		}
	}
}
