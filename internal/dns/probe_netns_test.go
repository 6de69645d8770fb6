//go:build netns

package dns

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cldmnky/oooi/internal/daemon"
	"github.com/cldmnky/oooi/internal/testkit/netns"
)

const (
	secondVIP     = "192.168.100.6"
	firstMetrics  = vip + ":9402"
	secondMetrics = secondVIP + ":9402"
)

// pair is two instances on one VLAN, each in a pod of its own.
type pair struct {
	*network
	processes map[string]*exec.Cmd
}

func newPair(t *testing.T) *pair {
	t.Helper()
	p := &pair{&network{netns.New(t, "vlan", "first", "second"), t}, map[string]*exec.Cmd{}}
	p.In("vlan", "ip", "link", "add", "br0", "type", "bridge", "forward_delay", "0")
	p.In("vlan", "ip", "link", "set", "br0", "up")
	for host, address := range map[string]string{"first": vip, "second": secondVIP} {
		p.Join(netns.End{Host: "vlan", Device: host}, netns.End{Host: host, Device: "net1", Address: address + "/24"})
		p.In("vlan", "ip", "link", "set", host, "master", "br0")
		p.In(host, "sysctl", "-qw", "net.ipv4.ip_unprivileged_port_start=0")
	}
	yaml := strings.Replace(example(t), "    serverIP: "+vip, "    additionalServerIPs: ["+secondVIP+"]\n    serverIP: "+vip, 1)
	NewWithT(t).Expect(daemon.WriteFile(p.config(), []byte(yaml))).To(Succeed())
	NewWithT(t).Expect(os.Chmod(p.config(), 0o644)).To(Succeed())
	self := p.Self()
	for host, metrics := range map[string]string{"first": firstMetrics, "second": secondMetrics} {
		p.processes[host] = p.Start(host, self, envConfig+"="+p.config(), envMetrics+"="+metrics)
	}
	return p
}

// finds is which protocols answer an instance where, of four.
func (p *pair) finds(host, metrics string) func() map[string]string {
	return func() map[string]string {
		out, _ := p.Command(host, "curl", "-fsS", "-m", "2", "http://"+metrics+"/metrics").Output()
		all := map[string]string{}
		for line := range strings.Lines(string(out)) {
			if said, is := strings.CutPrefix(strings.TrimSpace(line), `oooi_dns_probe_success{address="`); is {
				key, value, _ := strings.Cut(said, "} ")
				all[strings.NewReplacer(`",protocol="dns-`, " ", `"`, "").Replace(key)] = value
			}
		}
		return all
	}
}

// Each finds itself through its own address on the VLAN, and the other across it. What stands still, is gone or is cut off is told of by the
// other, and only of that address.
func TestInstancesProbeEachOtherAcrossTheVLAN(t *testing.T) {
	p := newPair(t)
	finds := func(first, second string) map[string]string {
		return map[string]string{vip + " udp": first, vip + " tcp": first, secondVIP + " udp": second, secondVIP + " tcp": second}
	}
	first, second := p.finds("first", firstMetrics), p.finds("second", secondMetrics)
	await := func(who func() map[string]string, what map[string]string, why string) {
		t.Helper()
		NewWithT(t).Eventually(who, 30*time.Second, quick).Should(Equal(what), why)
	}
	await(first, finds("1", "1"), "both serve")
	await(second, finds("1", "1"), "both serve")

	NewWithT(t).Expect(p.processes["second"].Process.Signal(syscall.SIGSTOP)).To(Succeed())
	await(first, finds("1", "0"), "the second stands still")
	NewWithT(t).Expect(p.processes["second"].Process.Signal(syscall.SIGCONT)).To(Succeed())
	await(first, finds("1", "1"), "it goes on")

	p.In("vlan", "ip", "link", "set", "second", "nomaster")
	await(first, finds("1", "0"), "the second is cut off from the VLAN")
	await(second, finds("0", "1"), "and hears itself only")
	p.In("vlan", "ip", "link", "set", "second", "master", "br0")
	await(second, finds("1", "1"), "it is back")

	NewWithT(t).Expect(p.processes["second"].Process.Kill()).To(Succeed())
	await(first, finds("1", "0"), "the second is gone")
}
