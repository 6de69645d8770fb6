package cmd

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/moving/draft"
	"github.com/cldmnky/oooi/internal/testkit/golden"
)

// A case's args are those of oooi import; files in them are beside it.
func TestFilesOfServersBecomeAnInfra(t *testing.T) {
	inputs := []string{"args", "dhcpd.conf", "dnsmasq.conf", "example.zone", "haproxy.cfg", "kea.conf", "ocp4.zone"}
	golden.Cases(t, "testdata/import", inputs, func(t *testing.T, dir string) map[string]string {
		text, err := os.ReadFile(filepath.Join(dir, "args"))
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		args := strings.Fields(string(text))
		for i, arg := range args {
			if !strings.HasPrefix(arg, "-") {
				args[i] = filepath.Join(dir, arg)
			}
		}
		infra, left, err := imported("", args...)
		if err != nil {
			NewWithT(t).Expect(ExitCode(err)).To(Equal(1))
			left += fmt.Sprintln("must be changed first:", err)
		}
		return map[string]string{"infra.yaml": infra, "left.txt": strings.ReplaceAll(left, dir+"/", "")}
	})
}

// What the given Infra says stays; what the files say in another way is told.
func TestAnInfraIsMergedInto(t *testing.T) {
	g := NewWithT(t)
	base := "apiVersion: hostedcluster.densityops.com/v1alpha1\nkind: Infra\nmetadata: {name: c1, namespace: clusters}\nspec:\n  hostedClusterRef: {name: c1}\n" +
		"  networkConfig: {cidr: 192.168.77.0/24, gateway: 192.168.77.254, networkAttachmentDefinition: vlan100}\n"
	infra, left, err := imported(base, "-f", "-", "--kea", "testdata/moving/kea/kea-dhcp4.conf")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(infra).To(And(ContainSubstring("gateway: 192.168.77.254\n"), ContainSubstring("rangeStart: 192.168.77.100\n")))
	g.Expect(decoded(strings.TrimPrefix(infra, "---\n"))).To(Succeed())
	g.Expect(left).To(ContainSubstring(`kea-dhcp4.conf:23: "option-data": routers 192.168.77.1: networkConfig.gateway is 192.168.77.254 already (the given Infra)`))

	_, _, err = imported(base+"---\n"+strings.Replace(base, "name: c1,", "name: c2,", 1), "-f", "-", "--kea", "testdata/moving/kea/kea-dhcp4.conf")
	g.Expect(err).To(MatchError("the manifests contain 2 Infras: give the one that the files are merged into"))
	g.Expect(ExitCode(err)).To(Equal(unusable))
	_, _, err = imported("", "--kea", "testdata/absent")
	g.Expect(ExitCode(err)).To(Equal(unusable))
}

// What no Infra does, and what is for some clients, is told; a range for some is opened for nobody, and a record has no other owner's name.
func TestWhatServersDoForSomeIsTold(t *testing.T) {
	g, dir := NewWithT(t), t.TempDir()
	for name, text := range map[string]string{
		"haproxy.cfg": "frontend f\n  bind :443\n  tcp-request content accept if { req_ssl_hello_type 1 }\n  tcp-request content reject if !{ src 192.168.77.0/24 }\n  default_backend b\n" +
			"backend b\n  server a 192.168.77.50:443 weight 0\n  server b 192.168.77.51:443 maxconn 10\n",
		"kea.json": `{"Dhcp4": {"shared-networks": [{"name": "n", "client-class": "a", "subnet4": [{"subnet": "192.168.77.0/24", "pools": [{"pool": "192.168.77.100-192.168.77.120"}]}]}],
			"subnet4": [{"subnet": "192.168.78.0/24", "pools": [{"pool": "192.168.78.100-192.168.78.120", "client-classes": ["b"]}]}]}}`,
		"c1.zone": "$ORIGIN c1.example.com.\ngood A 192.168.77.60\nbad A 192.168.77.x\n  A 192.168.77.61\n",
	} {
		g.Expect(os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600)).To(Succeed())
	}
	infra, left, _ := imported("", "--haproxy", filepath.Join(dir, "haproxy.cfg"), "--kea", filepath.Join(dir, "kea.json"), "--bind", filepath.Join(dir, "c1.zone"))
	for _, line := range []string{"haproxy.cfg:4: tcp-request content reject", "haproxy.cfg:7: server a", "haproxy.cfg:8: server b 192.168.77.51:443 maxconn 10: maxconn 10:", "c1.zone:3: "} {
		g.Expect(left).To(ContainSubstring(line))
	}
	g.Expect(left).NotTo(ContainSubstring("haproxy.cfg:3:"))
	g.Expect(infra).NotTo(Or(ContainSubstring("192.168.77.50"), ContainSubstring("192.168.77.100"), ContainSubstring("192.168.78.100")))
	g.Expect(infra).To(ContainSubstring("hostname: bad.c1.example.com\n"))
}

// Whatever a file says, it is read to its end, and an Infra is made.
func FuzzFilesOfServers(f *testing.F) {
	files, err := filepath.Glob("testdata/*/*/*")
	NewWithT(f).Expect(err).NotTo(HaveOccurred())
	for _, file := range files {
		if about, err := os.Stat(file); err == nil && about.IsDir() {
			continue
		}
		text, err := os.ReadFile(file)
		NewWithT(f).Expect(err).NotTo(HaveOccurred())
		f.Add(string(text))
	}
	f.Fuzz(func(_ *testing.T, text string) {
		for _, s := range servers {
			var site draft.Site
			s.read(&site, []draft.File{{Name: "file", Text: text}})
			site.Infra(&v1alpha1.Infra{}, draft.Cluster{}).Applied()
		}
	})
}

// What is served by the Infra in its own way, and not as the files say, is told; so the peers' examples have shown.
func TestWhatAnInfraAnswersOtherwiseIsTold(t *testing.T) {
	g, dir := NewWithT(t), t.TempDir()
	for name, text := range map[string]string{
		"infra.yaml": "apiVersion: hostedcluster.densityops.com/v1alpha1\nkind: Infra\nmetadata: {name: c1, namespace: clusters}\nspec:\n  appsIngress: {enabled: true, mode: HostNetwork}\n" +
			"  infraComponents: {dns: {clusterName: c1, baseDomain: example.com}}\n  networkConfig: {cidr: 192.168.77.0/24, networkAttachmentDefinition: vlan100}\n",
		"named.conf":  "options { forwarders { 192.168.78.1; }; };\nzone \"localhost\" { type master; file \"db.local\"; };\n",
		"haproxy.cfg": "listen web\n  mode tcp\n  bind :443\n  server a 192.168.77.50:443\n",
		"kea.json": `{"Dhcp4": {"option-data": [{"name": "domain-name-servers", "data": "192.168.78.1"}],
			"subnet4": [{"subnet": "192.168.77.0/24", "reservations": [{"hw-address": "52:54:00:00:00:01", "ip-address": "192.168.77.60", "hostname": "one"}]}]}}`,
	} {
		g.Expect(os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600)).To(Succeed())
	}
	_, left, _ := imported("", "-f", filepath.Join(dir, "infra.yaml"), "--bind", filepath.Join(dir, "named.conf"), "--haproxy", filepath.Join(dir, "haproxy.cfg"), "--kea", filepath.Join(dir, "kea.json"))
	for _, line := range []string{
		`named.conf:2: zone "localhost" { … }: DNS asks its resolvers for these names`, "haproxy.cfg:1: listen web: appsIngress has port 443",
		"domain-name-servers 192.168.78.1: clients ask the Infra's DNS, which asks 192.168.78.1", "DNS answers 192.168.77.60 with one.c1.example.com",
	} {
		g.Expect(left).To(ContainSubstring(line))
	}
}
