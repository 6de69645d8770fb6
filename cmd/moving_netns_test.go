//go:build netns

package cmd

import (
	"bytes"
	stdcmp "cmp"
	"context"
	"fmt"
	"io"
	"log"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/cldmnky/oooi/internal/daemon"
	"github.com/cldmnky/oooi/internal/plan"
	"github.com/cldmnky/oooi/internal/plan/input"
	"github.com/cldmnky/oooi/internal/proxy/bootstrap"
	"github.com/cldmnky/oooi/internal/render"
	"github.com/cldmnky/oooi/internal/testkit/envtest"
	"github.com/cldmnky/oooi/internal/testkit/netns"
)

// The test binary is oooi, too: with arguments in the environment it runs them instead of testing.
const envArgs = "OOOI_TEST_ARGS"

func TestMain(m *testing.M) {
	args := os.Getenv(envArgs)
	if args == "" {
		os.Exit(m.Run())
	}
	root := Root()
	root.SetArgs(strings.Split(args, "\n"))
	if err := root.Execute(); err != nil {
		os.Stderr.WriteString(err.Error() + "\n")
		os.Exit(ExitCode(err))
	}
}

// peer is another's server on the VLAN, at an address of its own. FILES in its command is where the files of all sites are, TMP a directory for
// what it writes.
type peer struct {
	at      string
	command []string
}

// site is what serves a VLAN today, and what clients ask there.
type site struct {
	flags   []string // of oooi import
	missing []string // what has to be done first
	// differs has what clients are told in another way, and what import says of it.
	differs  map[string]string
	peers    []peer
	names    []string          // dig's arguments
	connects map[string]string // to the proxy: how an answer begins, by the URL that curl fetches there, or by the port
}

// clients are udhcpc's further arguments, by hardware address.
var clients = map[string][]string{
	"52:54:00:00:02:00": nil, "52:54:00:00:02:01": nil, "52:54:00:00:02:02": {"-x", "0x3d:01525400000202"}, "52:54:00:00:00:01": nil,
}

var (
	requested = []string{"-O", "staticroutes", "-O", "mtu", "-O", "ntpsrv", "-O", "search", "-O", "tftp", "-O", "wpad"}
	workers   = []string{"worker-200.c1.example.com", "-x 192.168.77.200", "worker-201.c1.example.com", "-x 192.168.77.201", "worker-202.c1.example.com"}
	zones     = []string{"--bind", "bind/named.conf"}
	named     = peer{"192.168.77.3/24", []string{"sh", "-c", "cd FILES/bind && exec named -g -c named.conf"}}
	ofZones   = []string{
		"api.c1.example.com", "api-int.c1.example.com", "console.apps.c1.example.com", "bastion.c1.example.com", "absent.c1.example.com", "absent.example.com", "far.example.com",
		"registry.example.com", "git.corp.example.com", "git.corp.example.com AAAA", "source.corp.example.com", "two.example.com", "any.wild.example.com",
		"ignition-server-clusters-c1.apps.mgmt.example.com", "oauth-clusters-c1.apps.mgmt.example.com", "far.example.net", "absent.example.net",
		"-x 192.168.77.4", "-x 192.168.77.80", "-x 192.168.77.88", "-x 192.168.77.93", "-x 192.168.77.95",
	}
)

// ofOneMachine is a machine that had DHCP, DNS and the proxy, whose files differ in what gives addresses.
func ofOneMachine(dhcp []string, server ...string) site {
	return site{
		flags:   slices.Concat(dhcp, zones, []string{"--haproxy", "haproxy/haproxy.cfg"}),
		missing: []string{"run the operator with --extra-endpoint-cidrs=192.168.77.99/32"},
		differs: map[string]string{
			"far.example.com":  "DNS asks its resolvers for the names of example.com that it does not know",
			"-x 192.168.77.93": "DNS answers 192.168.77.93 with this name (PTR), which nothing did",
		},
		peers: []peer{named, {"192.168.77.4/24", []string{"haproxy", "-db", "-f", "FILES/haproxy/haproxy.cfg"}}, {"192.168.77.2/24", server}},
		names: slices.Concat(ofZones, workers), connects: map[string]string{
			"https://registry.example.com": "the registry", "https://elsewhere.example.com": "true", "2222": "SSH-2.0-git",
			"https://api.c1.example.com:6443": "the API, as api.c1.example.com:6443, api.c1.example.com", "https://192.168.77.4:6443": "the API, as 192.168.77.4:6443, without",
			"https://ignition-server-clusters-c1.apps.mgmt.example.com": "the Ignition server", "https://console.apps.c1.example.com": "the router, as console",
			"https://a.b.apps.c1.example.com": "the router, as a.b", "http://console.apps.c1.example.com": "the router, as console.apps.c1.example.com, without",
		},
	}
}

var sites = map[string]site{
	"dnsmasq": {
		flags: []string{"--dnsmasq", "dnsmasq/dnsmasq.conf", "--hosts", "dnsmasq/hosts"},
		differs: map[string]string{
			"52:54:00:00:02:01 lease": "infinite: all leases last for dhcp.leaseTime",
			"-x 192.168.77.81":        "DNS answers 192.168.77.81 with this name (PTR), which nothing did",
			"-x fd00:77::82":          "DNS asks its resolvers for the name of fd00:77::82",
		},
		peers: []peer{{"192.168.77.3/24", []string{"sh", "-c", "cd FILES/dnsmasq && exec dnsmasq -k -C dnsmasq.conf --user=root --pid-file --dhcp-leasefile=TMP/leases --addn-hosts=FILES/dnsmasq/hosts"}}},
		names: append([]string{
			"git.corp.example.com", "git.corp.example.com AAAA", "source.corp.example.com", "mirror.example.com", "deep.below.mirror.example.com",
			"ntp.corp.example.com", "ntp.corp.example.com AAAA", "clock.corp.example.com", "far.example.net", "absent.example.net",
			"-x 192.168.77.80", "-x 192.168.77.81", "-x 192.168.77.82", "-x fd00:77::82", "-x 192.168.77.88",
		}, workers...),
	},
	"isc-dhcpd, bind and haproxy": ofOneMachine([]string{"--isc-dhcpd", "isc-dhcpd/dhcpd.conf"}, "sh", "-c", "cd FILES/isc-dhcpd && touch TMP/leases && exec dhcpd -f -d --no-pid -cf dhcpd.conf -lf TMP/leases net1"),
	"kea, bind and haproxy":       ofOneMachine([]string{"--kea", "kea/kea-dhcp4.conf"}, "sh", "-c", "cd FILES/kea && KEA_PIDFILE_DIR=TMP KEA_LOCKFILE_DIR=TMP exec kea-dhcp4 -c kea-dhcp4.conf"),
}

// What clients are told by the peers, they are told by the Infra that their files become: lease by lease, and name by name.
func TestAnInfraAnswersAsTheServersThatItWasImportedFrom(t *testing.T) {
	for name, s := range sites {
		t.Run(name, func(t *testing.T) {
			var before, after map[string]string
			t.Run("peers", func(t *testing.T) { before = s.asked(t, func(v *vlan) { v.peers(s.peers) }) })
			t.Run("oooi", func(t *testing.T) {
				after = s.asked(t, func(v *vlan) {
					infra, _ := s.imports(t)
					v.apiServer(envtest.For(t, true))
					v.daemons(v.children(infra))
				})
			})
			for to, answers := range s.connects {
				if got := before["connect "+to]; !strings.HasPrefix(got, answers) {
					t.Errorf("%s answers %q, not %q", to, got, answers)
				}
			}
			_, left := s.imports(t)
			for key, why := range s.differs {
				if before[key] == after[key] || !strings.Contains(left, why) {
					t.Errorf("%s is %s and was %s; import has to say %q of it, and says\n%s", key, after[key], before[key], why, left)
				}
				delete(before, key)
				delete(after, key)
			}
			if diff := cmp.Diff(before, after); diff != "" {
				t.Errorf("(-peers +oooi)\n%s", diff)
			}
		})
	}
}

// imports is what import prints, and says, of a site's files.
func (s site) imports(t *testing.T) (infra, left string) {
	t.Helper()
	args := []string{"-f", "testdata/moving/infra.yaml", "-f", cluster(t)}
	for i := 0; i < len(s.flags); i += 2 {
		args = append(args, s.flags[i], "testdata/moving/"+s.flags[i+1])
	}
	infra, left, err := imported("", args...)
	for _, missing := range s.missing {
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring(missing)))
	}
	if len(s.missing) == 0 {
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
	}
	return infra, left
}

// cluster is a file with the HostedCluster of the Infra, and all that belongs to it.
func cluster(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../internal/plan/testdata/everything-is-written/in.yaml")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	_, others, _ := strings.Cut(string(text), "\n---\n") // the first is an Infra
	file := filepath.Join(t.TempDir(), "cluster.yaml")
	NewWithT(t).Expect(os.WriteFile(file, []byte(others), 0o600)).To(Succeed())
	return file
}

// vlan is a switch with servers and clients around it.
type vlan struct {
	*netns.Hosts
	t   *testing.T
	api client.Client
}

// asked is all that clients are told on a VLAN, by what they asked.
func (s site) asked(t *testing.T, serve func(*vlan)) map[string]string {
	t.Helper()
	v := newVLAN(t)
	v.attach("upstream", "02:00:00:00:00:09", "192.168.77.9/24")
	v.begin("upstream", nil, "dnsmasq", "-k", "-C", "/dev/null", "--user=root", "--pid-file", "--no-resolv", "--no-hosts", "--address=/far.example.net/198.51.100.7", "--address=/far.example.com/198.51.100.8", "--local=/net/", "--local=/com/", "--local=/arpa/")
	v.behind() // first: Envoy dials no target whose last check failed
	serve(v)
	said := map[string]string{}
	for i, mac := range slices.Sorted(maps.Keys(clients)) {
		host := "c" + string(rune('1'+i))
		v.attach(host, mac, "")
		for key, value := range v.leases(host, clients[mac]) {
			said[mac+" "+key] = value
		}
	}
	v.attach("dig", "02:00:00:00:00:0d", "192.168.77.210/24")
	for _, name := range s.names {
		said[name] = v.digs(said["52:54:00:00:02:00 dns"], strings.Fields(name)...)
	}
	for to := range s.connects {
		said["connect "+to] = v.connects(to)
	}
	return said
}

func newVLAN(t *testing.T) *vlan {
	t.Helper()
	v := &vlan{Hosts: netns.New(t, "sw"), t: t}
	v.In("sw", "ip", "link", "add", "br0", "type", "bridge", "forward_delay", "0")
	v.In("sw", "ip", "link", "set", "br0", "up")
	return v
}

func (v *vlan) attach(host, mac, address string) {
	v.t.Helper()
	v.Add(host)
	v.Join(netns.End{Host: "sw", Device: host}, netns.End{Host: host, Device: "net1", MAC: mac, Address: address})
	v.In("sw", "ip", "link", "set", host, "master", "br0")
}

// begin starts a program on a host. What it said is shown if the test fails.
func (v *vlan) begin(host string, env []string, command ...string) {
	v.t.Helper()
	cmd, log := v.Command(host, command...), &bytes.Buffer{}
	cmd.Env, cmd.Stdout, cmd.Stderr = append(os.Environ(), env...), log, log
	NewWithT(v.t).Expect(cmd.Start()).To(Succeed())
	v.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		if v.t.Failed() {
			v.t.Logf("%s:\n%s", strings.Join(command, " "), log)
		}
	})
}

func (v *vlan) peers(all []peer) {
	NewWithT(v.t).Expect(os.CopyFS(v.Path("files"), os.DirFS("testdata/moving"))).To(Succeed()) // named writes beside them
	v.start(all)
}

func (v *vlan) start(all []peer) {
	v.t.Helper()
	for i, p := range all {
		host := "p" + string(rune('0'+i))
		v.attach(host, "02:00:00:00:00:0"+string(rune('1'+i)), p.at)
		words := slices.Clone(p.command)
		for w := range words {
			words[w] = strings.NewReplacer("FILES", v.Path("files"), "TMP", v.Path("")).Replace(words[w])
		}
		v.begin(host, nil, words...)
	}
}

// children are the objects that an Infra becomes, and itself.
func (v *vlan) children(infra string) map[string]string {
	v.t.Helper()
	g := NewWithT(v.t)
	g.Expect(os.WriteFile(v.Path("infra.yaml"), []byte(infra), 0o600)).To(Succeed())
	all := map[string]string{"Infra": infra}
	objects, _, err := render.Files(nil, []string{v.Path("infra.yaml"), cluster(v.t)})
	g.Expect(err).NotTo(HaveOccurred())
	in := objects.Inputs(input.Settings{ExtraEndpointCIDRs: []netip.Prefix{netip.MustParsePrefix("192.168.77.99/32"), netip.MustParsePrefix("192.0.2.1/32")}})[0]
	in.HostedCluster.Status.KubeConfig = &corev1.LocalObjectReference{Name: "c1-admin-kubeconfig"}
	in.Guest = &input.Guest{
		Routers: []input.GuestRouter{{Node: "behind", HostNetwork: true, HTTP: 9080, HTTPS: 9443, Ready: true}},
		Nodes:   []input.GuestNode{{Name: "behind", Addresses: []netip.Addr{netip.MustParseAddr("192.168.77.99")}, Ready: true}},
	}
	var rendered strings.Builder
	g.Expect(render.YAML(&rendered, plan.Infra(in).Objects)).To(Succeed())
	for document := range strings.SplitSeq(rendered.String(), "---\n") {
		var object struct{ Kind string }
		g.Expect(yaml.Unmarshal([]byte(document), &object)).To(Succeed())
		all[object.Kind] = document
	}
	return all
}

// runs is what a command of oooi prints.
func (v *vlan) runs(args ...string) string {
	v.t.Helper()
	var out, said bytes.Buffer
	root := Root()
	root.SetOut(&out)
	root.SetErr(&said)
	root.SetArgs(args)
	NewWithT(v.t).Expect(root.Execute()).To(Succeed(), said.String)
	return out.String()
}

// daemons serve the children of an API server, each on a host with the address that it says.
func (v *vlan) daemons(children map[string]string) {
	v.t.Helper()
	g := NewWithT(v.t)
	if children["ProxyServer"] != "" {
		v.controlPlane()
	}
	g.Expect(v.api.Create(v.t.Context(), v.object(children["Infra"]))).To(Succeed()) // its schema takes it
	for kind, command := range map[string]string{"DHCPServer": "dhcp", "DNSServer": "dns", "ProxyServer": "proxy"} {
		if children[kind] == "" {
			continue
		}
		child := v.object(children[kind])
		child.SetOwnerReferences(nil) // the operator is not there
		g.Expect(v.api.Create(v.t.Context(), child)).To(Succeed())
		at, _, _ := unstructured.NestedString(child.Object, "spec", "networkConfig", "serverIP")
		v.attach(command, "", at+"/24")
		args := []string{
			command, "--" + command + "-name", child.GetName(), "--namespace", child.GetNamespace(), "--api-socket", v.Path("api.sock"),
			"--state-dir", v.Path(command), "--pod-ip", "127.0.0.1", "--health-address", at + ":8081",
		}
		if command == "proxy" {
			args = append(args, "--xds-socket", v.Path("xds.sock"))
			v.envoy(children[kind])
		}
		v.begin(command, []string{envArgs + "=" + strings.Join(args, "\n")}, v.Self())
		g.Eventually(func() string {
			out, _ := v.Command(command, "busybox", "wget", "-qO-", "http://"+at+":8081/readyz").CombinedOutput()
			return string(out)
		}, 30*time.Second).Should(Equal("ok\n"), command)
	}
}

// object of YAML, as a client writes it.
func (v *vlan) object(text string) *unstructured.Unstructured {
	v.t.Helper()
	made := &unstructured.Unstructured{}
	NewWithT(v.t).Expect(yaml.Unmarshal([]byte(strings.TrimPrefix(text, "---\n")), &made.Object)).To(Succeed())
	return made
}

func (v *vlan) envoy(child string) {
	v.t.Helper()
	NewWithT(v.t).Expect(os.WriteFile(v.Path("proxy.yaml"), []byte(child), 0o600)).To(Succeed())
	made := v.runs("proxy", "bootstrap", "--config-file", v.Path("proxy.yaml"), "--xds-socket", v.Path("xds.sock"))
	NewWithT(v.t).Expect(os.WriteFile(v.Path("bootstrap.yaml"), []byte(made), 0o600)).To(Succeed())
	v.begin("proxy", nil, append([]string{envoyBinary(v.t)}, bootstrap.Arguments(v.Path("bootstrap.yaml"))...)...)
}

// apiServer opens the socket through which daemons in network namespaces reach a cluster.
func (v *vlan) apiServer(cluster *envtest.Cluster) {
	v.t.Helper()
	g := NewWithT(v.t)
	var err error
	v.api, err = client.New(cluster.Admin, client.Options{Scheme: daemon.Scheme()})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(client.IgnoreAlreadyExists(v.api.Create(v.t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "clusters"}}))).To(Succeed())
	proxy := &daemon.APIProxy{Socket: v.Path("api.sock"), Cluster: cluster.Admin, Log: slog.New(slog.NewTextHandler(v.t.Output(), nil))}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- proxy.Run(ctx) }()
	v.t.Cleanup(func() {
		stop()
		g.Expect(<-ended).To(Succeed())
	})
}

// leases is what udhcpc is told; of an address of the pool, that it is one.
func (v *vlan) leases(host string, args []string) map[string]string {
	v.t.Helper()
	script := v.Path("udhcpc.sh")
	NewWithT(v.t).Expect(os.WriteFile(script, []byte("#!/bin/sh\n[ \"$1\" != bound ] || env\n"), 0o755)).To(Succeed())
	command := slices.Concat([]string{"busybox", "udhcpc", "-q", "-n", "-t", "10", "-T", "1", "-i", "net1", "-s", script}, requested, args)
	var out string
	NewWithT(v.t).Eventually(func() bool {
		text, err := v.Command(host, command...).CombinedOutput()
		out = string(text)
		return err == nil
	}, 30*time.Second).Should(BeTrue())
	told := map[string]string{}
	for line := range strings.Lines(out) {
		key, value, is := strings.Cut(strings.TrimSpace(line), "=")
		if key == "staticroutes" { // in no order
			pairs := slices.Collect(slices.Chunk(strings.Fields(value), 2))
			slices.SortFunc(pairs, slices.Compare)
			value = strings.Join(slices.Concat(pairs...), " ")
		}
		if is && slices.Contains([]string{"ip", "mask", "router", "dns", "ntpsrv", "mtu", "domain", "search", "lease", "hostname", "staticroutes", "tftp", "wpad"}, key) {
			told[key] = value
		}
	}
	if ip := netip.MustParseAddr(told["ip"]); ip.Less(netip.MustParseAddr("192.168.77.200")) {
		told["ip"] = "of the pool"
		NewWithT(v.t).Expect(ip.As4()[3]).To(Or(And(BeNumerically(">=", 100), BeNumerically("<=", 120)), And(BeNumerically(">=", 130), BeNumerically("<=", 150))))
	}
	return told
}

// digs is the code of an answer, and its addresses or names, sorted. What leads to them, an alias, is no part of what is compared.
func (v *vlan) digs(server string, args ...string) string {
	v.t.Helper()
	var out []byte
	NewWithT(v.t).Eventually(func() string { // named listens before it has read its zones
		out, _ = v.Command("dig", append([]string{"dig", "+time=2", "+tries=2", "@" + server}, args...)...).Output()
		return string(out)
	}, 20*time.Second).Should(And(ContainSubstring("status: "), Not(ContainSubstring("status: SERVFAIL"))))
	code, data := "", []string(nil)
	for line := range strings.Lines(string(out)) {
		words := strings.Fields(line)
		switch {
		case strings.Contains(line, "->>HEADER<<-"):
			code = strings.TrimSuffix(words[5], ",")
		case len(words) == 5 && !strings.HasPrefix(line, ";") && slices.Contains([]string{"A", "AAAA", "PTR"}, words[3]):
			data = append(data, words[4])
		}
	}
	slices.Sort(data)
	return strings.Join(append([]string{code}, data...), " ")
}

// behind is the machine that the proxy passes connections on to: servers with TLS, one without, and one that speaks first. In the cluster it is
// the pods of the control plane, and a worker with a router.
func (v *vlan) behind() {
	v.attach("behind", "02:00:00:00:00:0e", "192.168.77.99/24")
	v.Enter("behind", func() {
		for port, called := range map[string]string{"5000": "registry", "6443": "API", "8443": "Ignition server", "9443": "router", "9080": "router"} {
			v.listen("192.168.77.99:"+port, func(l net.Listener) {
				server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					name := "without a server name"
					if r.TLS != nil && r.TLS.ServerName != "" {
						name = r.TLS.ServerName
					}
					_, _ = fmt.Fprintf(w, "the %s, as %s, %s", called, r.Host, name)
				}))
				server.Config.ErrorLog = log.New(io.Discard, "", 0) // checks end without a handshake
				if server.Listener = l; port == "9080" {
					server.Start()
				} else {
					server.StartTLS()
				}
				v.t.Cleanup(server.Close)
			})
		}
		v.listen("192.168.77.99:22", func(l net.Listener) {
			v.t.Cleanup(func() { _ = l.Close() })
			go func() {
				for conn, err := l.Accept(); err == nil; conn, err = l.Accept() {
					_, _ = conn.Write([]byte("SSH-2.0-git\r\n"))
					_ = conn.Close()
				}
			}()
		})
	})
}

func (v *vlan) listen(at string, serve func(net.Listener)) {
	l, err := net.Listen("tcp", at)
	if err != nil {
		v.t.Error(err)
		return
	}
	serve(l)
}

// controlPlane has the Services that the proxy follows, each with the machine behind as its pod.
func (v *vlan) controlPlane() {
	v.t.Helper()
	g, ctx := NewWithT(v.t), v.t.Context()
	namespace := "clusters-c1"
	g.Expect(v.api.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})).To(Succeed())
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "behind", Namespace: namespace}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
	g.Expect(v.api.Create(ctx, pod)).To(Succeed())
	pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIPs: []corev1.PodIP{{IP: "192.168.77.99"}}, PodIP: "192.168.77.99"}
	g.Expect(v.api.Status().Update(ctx, pod)).To(Succeed())
	for name, port := range map[string]int32{"kube-apiserver": 6443, "ignition-server-proxy": 8443} {
		number := map[int32]int32{6443: 6443, 8443: 443}[port]
		service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: number, TargetPort: intstr.FromInt32(port)}}}}
		g.Expect(v.api.Create(ctx, service)).To(Succeed())
		g.Expect(v.api.Create(ctx, &discoveryv1.EndpointSlice{
			ObjectMeta:  metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: map[string]string{discoveryv1.LabelServiceName: name}},
			AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Name: ptr.To(""), Port: &port}},
			Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"192.168.77.99"}, TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: namespace, Name: "behind"}}},
		})).To(Succeed())
	}
}

// connects is what a client of the proxy gets: by curl, or as it connects.
func (v *vlan) connects(to string) string {
	v.t.Helper()
	at, err := url.Parse(to)
	if err != nil || at.Host == "" {
		return v.reads("192.168.77.4:" + to)
	}
	port := stdcmp.Or(at.Port(), map[string]string{"https": "443", "http": "80"}[at.Scheme])
	out, err := v.Command("dig", "curl", "-sk", "--max-time", "5", "--resolve", at.Hostname()+":"+port+":192.168.77.4", to).Output()
	return fmt.Sprint(string(out), err != nil)
}

// reads is what a server says by itself, until it closes. The client closes nothing before: HAProxy gives up a connection to a server that is not there
// yet when its client, of whom there is nothing to send, has closed its side, as nc does at the end of its input.
func (v *vlan) reads(at string) (said string) {
	v.t.Helper()
	v.Enter("dig", func() {
		conn, err := net.DialTimeout("tcp", at, 5*time.Second)
		if err != nil {
			said = err.Error()
			return
		}
		defer conn.Close()
		if err = conn.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
			v.t.Error(err)
		}
		text, err := io.ReadAll(conn)
		said = fmt.Sprint(string(text), err)
	})
	return said
}
