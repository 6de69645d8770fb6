//go:build netns

package cmd

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/moving/draft"
	"github.com/cldmnky/oooi/internal/testkit/envtest"
)

// example is a VLAN that peers serve by the files that their Debian packages install. These are used word for word, except for what is listed.
type example struct {
	files  []exampleFile
	flags  []string          // of oooi import
	given  map[string]string // what the Infra that they are merged into says instead
	kinds  []string          // the daemons that have something to serve
	peers  []peer
	router string // the address of another machine
	// pool is where the addresses are of clients that have none of their own.
	first, last string
	clients     map[string]exampleClient
	// differs has what clients are told in another way, by client and option or by option alone, and what import says of it.
	differs map[string]string
}

// exampleFile is a copy of an installed file, at the same place below another root.
type exampleFile struct {
	from, to string
	all      *regexp.Regexp // the lines that are comments, and statements without their first letter: all are used
	text     string         // of a file that no package installs
}

// exampleClient is what a client of DHCP is.
type exampleClient struct{ mac string }

var anyClient = exampleClient{mac: "52:54:00:00:03:01"}

// iscExample has the whole example of ISC dhcpd, of whose networks that counts which the server has an address in. Its names are in the machine's
// hosts file.
func iscExample(e example) example {
	e.files = []exampleFile{
		{from: "/usr/share/doc/isc-dhcp-server/examples/dhcpd.conf.example", to: "etc/dhcp/dhcpd.conf", all: regexp.MustCompile(`(?m)^#(\S.*[;{}]|  .*|})$`)},
		{to: "etc/hosts", text: strings.Join([]string{
			"198.51.100.1 ns1.example.org", "198.51.100.2 ns2.example.org", "10.5.5.2 ns1.internal.example.org", "10.5.5.29 fantasia.example.com", "10.254.239.1 rtr-239-0-1.example.org",
			"10.254.239.2 rtr-239-0-2.example.org", "10.254.239.33 rtr-239-32-1.example.org", "10.17.224.1 rtr-224.example.org", "10.0.29.1 rtr-29.example.org", "",
		}, "\n")},
	}
	e.flags, e.kinds = []string{"--isc-dhcpd", "etc/dhcp/dhcpd.conf", "--hosts", "etc/hosts"}, []string{"DHCPServer"}
	e.peers[0].command = []string{"sh", "-c", "mount --bind FILES/etc/hosts /etc/hosts && touch TMP/leases && exec dhcpd -f -d --no-pid -cf FILES/etc/dhcp/dhcpd.conf -lf TMP/leases net1"}
	return e
}

// vlanOf is the Infra's network, where no file says it.
func vlanOf(cidr string) map[string]string {
	return map[string]string{"{networkAttachmentDefinition: vlan100}": "{networkAttachmentDefinition: vlan100, " + cidr + "}"}
}

var examples = map[string]example{
	"isc-dhcpd": iscExample(example{
		peers: []peer{{at: "10.254.239.5/27"}}, router: "10.254.239.1/27", first: "10.254.239.10", last: "10.254.239.20",
		clients: map[string]exampleClient{"any": anyClient, "passacaglia": {mac: "00:00:c0:5d:bd:95"}},
		differs: map[string]string{
			"dns":                   "clients ask the Infra's DNS, which asks 198.51.100.1",
			"domain":                "clients get the domain of the hosted cluster",
			"search":                "example.org is a search domain",
			"router":                "clients get the first alone, not 10.254.239.2",
			"passacaglia boot_file": `filename "vmunix.passacaglia";: it is for some clients only`,
			"passacaglia sname":     `server-name "toccata.example.com";: it is for some clients only`,
		},
	}),
	"isc-dhcpd, the internal subnet": iscExample(example{
		given: vlanOf("cidr: 10.5.5.0/27"), peers: []peer{{at: "10.5.5.5/27"}}, router: "10.5.5.1/27", first: "10.5.5.26", last: "10.5.5.30",
		clients: map[string]exampleClient{"any": anyClient, "fantasia": {mac: "08:00:07:26:c0:a5"}},
		differs: map[string]string{
			"dns":    "clients ask the Infra's DNS, which asks 10.5.5.2",
			"domain": "clients get the domain of the hosted cluster",
			"search": "internal.example.org is a search domain",
		},
	}),
}

// What clients are told by a peer that its package's example configures, they are told by the Infra that the example becomes.
func TestAnInfraAnswersAsTheExampleThatItWasImportedFrom(t *testing.T) {
	starts := make(chan error, 1)
	var cluster *envtest.Cluster
	go func() {
		var err error
		cluster, err = envtest.Start(true)
		starts <- err
	}()
	before := map[string]map[string]string{}
	all := slices.Sorted(maps.Keys(examples))
	for _, name := range all { // while the API server starts
		t.Run(name+", peers", func(t *testing.T) {
			before[name] = examples[name].asked(t, func(v *vlan) { v.start(examples[name].peers) })
		})
	}
	NewWithT(t).Expect(<-starts).To(Succeed())
	t.Cleanup(func() { NewWithT(t).Expect(cluster.Stop()).To(Succeed()) })
	for _, name := range all {
		t.Run(name, func(t *testing.T) {
			e := examples[name]
			var left string
			after := e.asked(t, func(v *vlan) {
				infra, said := e.imports(v)
				left = strings.ReplaceAll(said, v.Path("files"), "")
				v.apiServer(cluster)
				t.Cleanup(v.forget)
				children := v.children(infra)
				maps.DeleteFunc(children, func(kind, _ string) bool { return kind != "Infra" && !slices.Contains(e.kinds, kind) })
				v.daemons(children)
			})
			e.compares(t, before[name], after, left)
		})
	}
}

func (e example) compares(t *testing.T, before, after map[string]string, left string) {
	t.Helper()
	used := map[string]bool{}
	for key := range maps.Keys(maps.Collect(both(before, after))) {
		why, of := e.differs[key], key
		if why == "" {
			_, of, _ = strings.Cut(key, " ")
			why = e.differs[of]
		}
		if why == "" || before[key] == after[key] {
			continue
		}
		used[of] = true
		if !strings.Contains(left, why) {
			t.Errorf("%s is %q and was %q; import has to say %q of it", key, after[key], before[key], why)
		}
		delete(before, key)
		delete(after, key)
	}
	for key := range e.differs {
		if !used[key] {
			t.Errorf("%s is the same: take it out of what differs", key)
		}
	}
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("(-peers +oooi)\n%s\n%s", diff, left)
	}
}

func both(a, b map[string]string) func(yield func(string, string) bool) {
	return func(yield func(string, string) bool) {
		for _, m := range []map[string]string{a, b} {
			for key, value := range m {
				if !yield(key, value) {
					return
				}
			}
		}
	}
}

// write copies the files to where both the peer and import read them.
func (e example) write(v *vlan) {
	v.t.Helper()
	g := NewWithT(v.t)
	for _, f := range e.files {
		text := f.text
		if f.from != "" {
			text = installed(v.t, f.from)
		}
		if f.all != nil {
			text = f.all.ReplaceAllString(text, "$1")
		}
		at := v.Path(filepath.Join("files", f.to))
		g.Expect(os.MkdirAll(filepath.Dir(at), 0o755)).To(Succeed())
		g.Expect(os.WriteFile(at, []byte(text), 0o644)).To(Succeed())
	}
}

// installed is a file of a package.
func installed(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatalf("%v: install the package (make test does)", err)
	}
	return string(text)
}

func (e example) imports(v *vlan) (infra, left string) {
	v.t.Helper()
	g := NewWithT(v.t)
	base, err := os.ReadFile("testdata/moving/infra.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	given := string(base)
	for old, instead := range e.given {
		g.Expect(given).To(ContainSubstring(old))
		given = strings.ReplaceAll(given, old, instead)
	}
	g.Expect(os.WriteFile(v.Path("given.yaml"), []byte(given), 0o600)).To(Succeed())
	args := []string{"-f", v.Path("given.yaml"), "-f", cluster(v.t)}
	for i := 0; i < len(e.flags); i += 2 {
		args = append(args, e.flags[i], v.Path("files/"+e.flags[i+1]))
	}
	infra, left, _ = imported("", args...)
	return infra, left
}

// forget removes what the next example begins without.
func (v *vlan) forget() {
	for _, kind := range []client.Object{&v1alpha1.Infra{}, &v1alpha1.DHCPServer{}, &v1alpha1.DNSServer{}, &v1alpha1.ProxyServer{}, &v1alpha1.DHCPLease{}} {
		NewWithT(v.t).Expect(v.api.DeleteAllOf(context.Background(), kind, client.InNamespace("clusters"))).To(Succeed())
	}
}

// asked is all that clients are told on the VLAN of an example.
func (e example) asked(t *testing.T, serve func(*vlan)) map[string]string {
	t.Helper()
	v := newVLAN(t)
	e.write(v)
	v.attach("router", "02:00:00:00:00:0a", e.router)
	serve(v)
	said := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(e.clients)) {
		v.attach(name, e.clients[name].mac, "")
		for option, value := range e.told(v, name) {
			said[name+" "+option] = value
		}
	}
	return said
}

// told is what a client of DHCP is told that asks for every option, without what follows from the rest by itself, and the server's own address.
func (e example) told(v *vlan, host string) map[string]string {
	v.t.Helper()
	script := v.Path("udhcpc.sh")
	NewWithT(v.t).Expect(os.WriteFile(script, []byte("#!/bin/sh\n[ \"$1\" != bound ] || env\n"), 0o755)).To(Succeed())
	command := slices.Concat([]string{"timeout", "20", "env", "-i", "busybox", "udhcpc", "-q", "-n", "-t", "3", "-T", "1", "-i", "net1", "-s", script}, everyOption())
	var out string
	lease := func() bool {
		text, err := v.Command(host, command...).Output()
		out = string(text)
		return err == nil
	}
	NewWithT(v.t).Eventually(lease, 30*time.Second).Should(BeTrue(), host)
	told := map[string]string{}
	for line := range strings.Lines(out) {
		if key, value, is := strings.Cut(strings.TrimSpace(line), "="); is {
			told[key] = value
		}
	}
	return e.plain(told)
}

// everyOption are the arguments by which udhcpc asks for all that a client may ask for.
func everyOption() (args []string) {
	for code := 1; code < 255; code++ {
		if !slices.Contains([]int{50, 53, 55, 61}, code) {
			args = append(args, "-O", strconv.Itoa(code))
		}
	}
	return args
}

func (e example) plain(told map[string]string) map[string]string {
	seconds, _ := strconv.Atoi(told["lease"])
	ip, mask := netip.MustParseAddr(told["ip"]), netip.MustParsePrefix(told["ip"]+"/"+told["mask"])
	implied := map[string]string{
		"opt58": fmt.Sprintf("%08x", seconds/2), "opt59": fmt.Sprintf("%08x", seconds*7/8), // RFC 2131, 4.4.5
		"broadcast": draft.LastOf(mask).String(), "siaddr": told["serverid"],
	}
	for key, value := range implied {
		if told[key] == value {
			delete(told, key)
		}
	}
	for _, key := range []string{"_", "PATH", "PWD", "OLDPWD", "SHLVL", "interface", "serverid", "opt53", "opt61", "mtu"} { // mtu: of the NetworkAttachmentDefinition
		delete(told, key)
	}
	if e.first != "" && !ip.Less(netip.MustParseAddr(e.first)) && !netip.MustParseAddr(e.last).Less(ip) {
		told["ip"] = "of the pool"
	}
	return told
}
