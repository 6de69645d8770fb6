//go:build netns

package cmd

import (
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// named answers clients of the VLAN, in both halves of its network, from the view that import takes, or refuses them.
func TestNamedAnswersFromTheViewThatIsImported(t *testing.T) {
	v := newVLAN(t)
	v.attach("named", "02:00:00:00:00:01", "192.168.77.3/24")
	v.attach("low", "02:00:00:00:00:02", "192.168.77.10/24")
	v.attach("high", "02:00:00:00:00:03", "192.168.77.200/24")
	for _, c := range viewsCases {
		t.Run(c.acls+c.one, func(t *testing.T) {
			g := NewWithT(t)
			writeAll(t, c.files())
			server := v.Command("named", "named", "-g", "-c", "named.conf")
			server.Stderr = t.Output()
			g.Expect(server.Start()).To(Succeed())
			defer func() {
				g.Expect(server.Process.Signal(syscall.SIGTERM)).To(Succeed())
				g.Expect(server.Wait()).To(Succeed())
			}()
			views := map[string]bool{}
			for _, client := range []string{"low", "high"} {
				views[v.view(t, client)] = true
			}
			switch {
			case c.get == "some":
				g.Expect(views).To(HaveLen(2))
			case strings.HasPrefix(c.get, "depends"):
				g.Expect(views).To(HaveLen(1))
			default:
				g.Expect(views).To(Equal(map[string]bool{c.get: true}))
			}
		})
	}
}

// view is the one from which a client of named is answered.
func (v *vlan) view(t *testing.T, client string) string {
	t.Helper()
	var out []byte
	NewWithT(t).Eventually(func() string { // which listens before it has read its zones
		out, _ = v.Command(client, "dig", "+time=1", "+tries=1", "@192.168.77.3", "which.example.com").Output()
		return string(out)
	}, 20*time.Second).Should(And(ContainSubstring("status: "), Not(ContainSubstring("status: SERVFAIL"))))
	for says, view := range map[string]string{"\t192.168.77.101\n": "one", "\t192.168.77.102\n": "two", "status: REFUSED": "none"} {
		if strings.Contains(string(out), says) {
			return view
		}
	}
	t.Errorf("%s", out)
	return ""
}
