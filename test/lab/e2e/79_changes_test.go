//go:build e2e && changes

package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/cldmnky/oooi/test/lab/scene"
)

// edits are made one after the other: each begins where the one before ends. Those of TestWhatADiffForetellsIsWhatTheLabShows are others.
var edits = []struct {
	what, from, to string
	pods           int
}{
	{"image of dns", "dns: {}", "dns: {image: e2e.local/oooi:other}", 6},
	{"option", "leaseTime: 1h", "leaseTime: 1h, options: [{code: 66, value: tftp.example.com, type: String}]", 6},
	{"reservation", "leaseTime: 1h", `leaseTime: 1h, reservations: [{ip: 192.168.148.60, mac: 52-54-00-00-00-01, hostname: printer}]`, 6},
	{"host name of a reservation", "hostname: printer", "hostname: scanner", 6},
	{"reservation goes", ", reservations: [{ip: 192.168.148.60, mac: 52-54-00-00-00-01, hostname: scanner}]", "", 6},
	{"pool shrinks under leases", "rangeEnd: 192.168.148.200", "rangeEnd: 192.168.148.19", 6},
	{"address of dhcp", "dhcp: {", "dhcp: {serverIP: 192.168.148.211, ", 6},
	{"address of dns", "dns: {", "dns: {serverIP: 192.168.148.212, ", 6},
	{"address of the proxy", "proxy: {}", "proxy: {serverIP: 192.168.148.213}", 6},
	{"endpoint leads elsewhere", "service: ignition-server-proxy, namespace: clusters-c1, port: 443", "service: oauth-openshift, namespace: clusters-c1, port: 6443", 6},
	{"node selector of the proxy", "proxy: {", "proxy: {nodeSelector: {kubernetes.io/os: linux}, ", 6},
	{"one proxy", "proxy: {", "proxy: {replicas: 1, ", 5},
	{"two proxies", "proxy: {replicas: 1, ", "proxy: {", 6},
	{"one dhcp instance", "dhcp: {", "dhcp: {replicas: 1, ", 5},
	{"two dhcp instances", "dhcp: {replicas: 1, ", "dhcp: {", 6},
	{"resolvers", "networkConfig: {", "networkConfig: {dnsServers: [192.168.148.53], ", 6},
	{"time servers", "networkConfig: {", "networkConfig: {ntpServers: [192.168.148.123], ", 6},
	{"MTU", "networkConfig: {", "networkConfig: {mtu: 1400, ", 6},
	{"route", "networkConfig: {", "networkConfig: {routes: [{destination: 198.51.100.0/24, gateway: 192.168.148.99}], ", 6},
	{"pause", "namespace: clusters}", `namespace: clusters, annotations: {hostedcluster.densityops.com/paused: "true"}}`, 6},
	{"resources while paused", "dns: {", "dns: {resources: {requests: {memory: 40Mi}}, ", 6},
	{"pause ends", `, annotations: {hostedcluster.densityops.com/paused: "true"}`, "", 6},
	{"spelling of the network", `"cniVersion":"0.3.1","name":"vlan148"`, `"name":"vlan148","cniVersion":"0.3.1"`, 6},
	{"MTU of the network", `"type":"bridge"`, `"type":"bridge","mtu":1400`, 6},
	{"proxy off", "proxy: {", "proxy: {enabled: false, ", 4},
	{"proxy on", "proxy: {enabled: false, ", "proxy: {", 6},
}

// Pods and streams of 26 more changes are foretold and counted, as in the scenario that always runs.
func TestTwentySixChangesAreForetold(t *testing.T) {
	ctx := within(t, 2*time.Minute)
	_, err := lab.Lab(ctx, "exec", "ctr", "-n", "k8s.io", "images", "tag", "--force", "e2e.local/oooi:dev", "e2e.local/oooi:other")
	must(t, err)
	allowOtherImages(t, ctx)
	infra := infraOn("told", "192.168.148.0/24", "vlan148") +
		"  infraComponents:\n    dhcp: {rangeStart: 192.168.148.10, rangeEnd: 192.168.148.200, leaseTime: 1h}\n    dns: {}\n    proxy: {}\n" +
		"  extraEndpoints: [{name: again, hostnames: [again.example.com], port: 5001, protocol: TLS, target: {service: ignition-server-proxy, namespace: clusters-c1, port: 443}}]\n"
	manifests := scene.BridgeNAD("vlan148", "br148") + "---\n" + infra
	d := newForeteller(t, 20*time.Minute, manifests)
	for _, e := range edits {
		if !strings.Contains(manifests, e.from) {
			t.Fatalf("%s: there is no %q", e.what, e.from)
		}
		manifests = strings.Replace(manifests, e.from, e.to, 1)
		d.changes(e.what, manifests, e.pods)
	}
}
