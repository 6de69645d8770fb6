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

// Whatever a file says, it is read to its end, and an Infra is made.
func FuzzFilesOfServers(f *testing.F) {
	files, err := filepath.Glob("testdata/*/*/*")
	NewWithT(f).Expect(err).NotTo(HaveOccurred())
	for _, file := range files {
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
