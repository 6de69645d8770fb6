//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/cldmnky/oooi/test/lab/scene"
)

// ovnVLAN is the localnet that OVN-Kubernetes makes of ClusterUserDefinedNetwork `vlan110` with ipam.mode Disabled in the namespace of c2's
// machines, without its owner and finalizer (ovn-kubernetes, clustermanager/userdefinednetwork/template/net-attach-def-template.go); every
// network gets the IDs (networkmanager/nad_controller.go).
const ovnVLAN = `apiVersion: k8s.cni.cncf.io/v1
kind: NetworkAttachmentDefinition
metadata:
  name: vlan110
  namespace: clusters-c2
  labels: {k8s.ovn.org/user-defined-network: ""}
  annotations: {k8s.ovn.org/network-id: "7", k8s.ovn.org/network-name: cluster_udn_vlan110}
spec: {config: '{"cniVersion":"1.1.0","mtu":1500,"name":"cluster_udn_vlan110","netAttachDefName":"clusters-c2/vlan110","physicalNetworkName":"physnet","role":"secondary","topology":"localnet","type":"ovn-k8s-cni-overlay","vlanID":110}'}
`

// ovnAPI is the address at which the API is published.
const ovnAPI = "203.0.113.20"

// On a localnet of OVN-Kubernetes, workers are on the source network and our pods on a copy of it: two OVN switches on one VLAN. The worker
// is a machine elsewhere on that VLAN. OVN is real; test/lab/ovnkube stands in for OVN-Kubernetes.
func TestWorkersJoinOnAnOVNLocalnet(t *testing.T) {
	ctx := within(t, 5*time.Minute)
	_, err := lab.Lab(ctx, "ovn", "110")
	must(t, err)
	_, err = lab.Standin(ctx, "apply", "--cluster", "c2", "--lb-address", ovnAPI, "--nad", "clusters-c2/vlan110")
	must(t, err)
	afterwards(t, func(ctx context.Context) error { _, err := lab.Standin(ctx, "delete", "--cluster", "c2"); return err })
	apply(t, ctx, ovnVLAN)
	apply(t, ctx, strings.NewReplacer("name: c1", "name: c2", "Namespace: default", "Namespace: clusters-c2").Replace(infraOn("ovn", "192.168.110.0/24", "vlan110")))
	awaitCondition(t, ctx, "clusters", "infra/ovn", "Ready", "True", "")

	t.Run("its pods have the ports that they ask for", func(t *testing.T) { ovnPortsAreAsAsked(t, ctx, "ovn") })
	t.Run("a worker beyond the switch joins through the captured address", func(t *testing.T) {
		ctx := within(t, 3*time.Minute)
		m := scene.Machine{Name: "worker-ovn", MAC: "52:54:00:00:01:6e", Cluster: "c2", Bridge: "br110", NAD: "clusters-c2/vlan110"}
		t.Logf("it was Ready %s after power-on", joins(t, ctx, m))
	})
	t.Run("a machine on the other switch of the VLAN reaches them", func(t *testing.T) { theOtherSwitchReaches(t, ctx) })
	t.Run("port security", func(t *testing.T) { portSecurity(t, ctx) })
	t.Run("a proxy that is made anew, on a new port", func(t *testing.T) {
		n := neighbour(t, ctx, "ovn-client", "br110", "192.168.110.250/24")
		answersSoonAfter(t, ctx, n, net.JoinHostPort(vip(t, ctx, "ovn"), "6443"), "app.kubernetes.io/instance=ovn-proxy")
		ovnPortsAreAsAsked(t, ctx, "ovn")
	})
}

// Multus allows all pods to use a localnet of namespace default, so our pods join it without a copy: one switch for machines and our pods.
func TestOurPodsJoinALocalnetThatIsAllowedToAll(t *testing.T) {
	ctx := within(t, 3*time.Minute)
	_, err := lab.Lab(ctx, "ovn", "110")
	must(t, err)
	apply(t, ctx, strings.NewReplacer("namespace: clusters-c2", "namespace: default", "clusters-c2/vlan110", "default/vlan110").Replace(ovnVLAN))
	apply(t, ctx, infraOn("lent", "192.168.110.0/24", "vlan110"))
	for _, serves := range []string{"DHCPReady", "DNSReady", "ProxyReady"} {
		awaitCondition(t, ctx, "clusters", "infra/lent", serves, "True", "")
	}
	ovnPortsAreAsAsked(t, ctx, "lent")
	if copies := kubectl(t, ctx, "-n", "clusters", "get", "net-attach-def", "-l", "hostedcluster.densityops.com/infra=lent", "-o", "name"); copies != "" {
		t.Errorf("its pods need no network of ours; there are %s", copies)
	}
	n := neighbour(t, ctx, "ovn-lent", "br110", "")
	must(t, scene.Until(ctx, "a client joins", func(ctx context.Context) error { return boots(ctx, n) }))
}

// ovnPortsAreAsAsked compares OVN's ports with the pods' annotations.
func ovnPortsAreAsAsked(t *testing.T, ctx context.Context, infra string) {
	t.Helper()
	out, err := lab.Lab(ctx, "exec", "ovn-nbctl", "--format=csv", "--data=bare", "--no-headings", "--columns=name,port_security", "list", "logical_switch_port")
	must(t, err)
	for _, component := range []string{"dhcp", "dns", "proxy"} {
		pod := strings.SplitN(kubectl(t, ctx, "-n", "clusters", "get", "pod", "-l", "app.kubernetes.io/instance="+infra+"-"+component, "--field-selector=status.phase=Running",
			"-o", `jsonpath={.items[-1].metadata.name} {.items[-1].metadata.annotations.k8s\.v1\.cni\.cncf\.io/networks}`), " ", 2)
		var asked []struct {
			Name, Namespace, MAC string
			IPs                  []string
		}
		must(t, json.Unmarshal([]byte(pod[1]), &asked))
		want := asked[0].MAC
		for _, ip := range asked[0].IPs {
			want += " " + ip[:strings.Index(ip, "/")]
		}
		name := strings.NewReplacer("-", ".", "/", ".").Replace(asked[0].Namespace+"/"+asked[0].Name) + "_clusters_" + pod[0]
		if line := name + "," + want; len(asked) != 1 || len(asked[0].IPs) == 0 || !strings.Contains("\n"+out, "\n"+line+"\n") {
			t.Errorf("OVN has no port %q; its ports are\n%s", line, out)
		}
	}
}

// theOtherSwitchReaches has a pod on the workers' own network get a lease and call the API, as a virtual machine there would.
func theOtherSwitchReaches(t *testing.T, ctx context.Context) {
	apply(t, ctx, `apiVersion: v1
kind: Pod
metadata:
  name: guest
  namespace: clusters-c2
  annotations: {k8s.v1.cni.cncf.io/networks: '[{"name":"vlan110","namespace":"clusters-c2","interface":"net1","mac":"02:00:00:00:01:10"}]'}
spec:
  terminationGracePeriodSeconds: 0
  securityContext: {runAsNonRoot: true, runAsUser: 65532, seccompProfile: {type: RuntimeDefault}}
  containers: [{name: guest, image: "e2e.local/testapp:1", imagePullPolicy: Never, securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}}]
`)
	kubectl(t, ctx, "-n", "clusters-c2", "wait", "--for=condition=Ready", "pod/guest", "--timeout=60s")
	guest := inNetnsOf(t, ctx, kubectl(t, ctx, "-n", "clusters-c2", "get", "pod", "guest", "-o", "jsonpath={.status.podIP}"))
	_, err := guest(ctx, "unshare", "--mount", "--uts", "sh", "-c", "mount -t tmpfs tmpfs /run && busybox udhcpc -f -n -q -i net1 -t 3 -T 1 -s "+
		scene.Root()+"/test/lab/vm/initrd/udhcpc.script -O search -O mtu -O staticroutes")
	must(t, err)
	if code, err := guest(ctx, "curl", "-sk", "--max-time", "3", "-o", "/dev/null", "-w", "%{http_code}", "https://"+ovnAPI+":6443/version"); err != nil || code != "200" {
		t.Errorf("the API answers it through the captured address with %q: %v", code, err)
	}
	switches, err := lab.Lab(ctx, "exec", "ovn-nbctl", "--bare", "--columns=name", "list", "logical_switch")
	must(t, err)
	if len(strings.Fields(switches)) != 2 {
		t.Errorf("it and our pods should be on two switches; there are %q", switches)
	}
}

// inNetnsOf runs the node's commands in a pod's network namespace.
func inNetnsOf(t *testing.T, ctx context.Context, podIP string) place {
	t.Helper()
	netns := podNamespace(t, ctx, podIP)
	return func(ctx context.Context, command ...string) (string, error) {
		return lab.Lab(ctx, append([]string{"exec", "nsenter", "--net=" + netns}, command...)...)
	}
}

// portSecurity shows what OVN drops, and what it passes, at the port of a pod with fixed addresses. The pod also adds a foreign address to
// its interface.
func portSecurity(t *testing.T, ctx context.Context) {
	const foreign, client = "192.168.110.77", "192.168.110.251"
	n := neighbour(t, ctx, "ovn-seen", "br110", client+"/24")
	pod := inNetnsOf(t, ctx, kubectl(t, ctx, "-n", "clusters", "get", "pod", "-l", "app.kubernetes.io/instance=ovn-dhcp", "-o", "jsonpath={.items[0].status.podIP}"))
	own := addressesOf(t, ctx, "ovn", "dhcp")[0]
	_, err := pod(ctx, "ip", "addr", "add", foreign+"/24", "dev", "net1")
	must(t, err)
	afterwards(t, func(ctx context.Context) error {
		_, err := pod(ctx, "ip", "addr", "del", foreign+"/24", "dev", "net1")
		return err
	})
	for address, answered := range map[string]bool{own: true, foreign: false} {
		if _, err := n.Run(ctx, "busybox", "arping", "-c", "2", "-w", "2", "-f", "-I", "eth0", address); (err == nil) != answered {
			t.Errorf("ARP for %s: %v; it should be answered: %v", address, err, answered)
		}
	}
	link, err := pod(ctx, "ip", "-o", "link", "show", "net1")
	must(t, err)
	_, mac, _ := strings.Cut(link, "link/ether ")
	_, err = n.Run(ctx, "ip", "neigh", "replace", foreign, "lladdr", strings.Fields(mac)[0], "dev", "eth0")
	must(t, err)
	for _, c := range []struct {
		what, source, to string
		from, at         place
		arrives          bool
	}{
		{"from the pod's address", own, client, pod, n.Run, true}, // by which the pod learns the client's MAC address
		{"from a foreign address of the pod", foreign, client, pod, n.Run, false},
		{"to the pod's address", client, own, n.Run, pod, true},
		{"to a foreign address of the pod", client, foreign, n.Run, pod, false},
		{"to the directed broadcast address", client, "192.168.110.255", n.Run, pod, true}, // broadcast and multicast frames pass, such as DISCOVER
	} {
		before := echoes(t, ctx, c.at)
		c.from(ctx, "busybox", "ping", "-c", "1", "-W", "1", "-I", c.source, c.to) // the arrival counts, not the answer
		if arrived := echoes(t, ctx, c.at) > before; arrived != c.arrives {
			t.Errorf("a packet %s: arrived is %v, want %v", c.what, arrived, c.arrives)
		}
	}
}

// echoes counts the echo requests that have arrived.
func echoes(t *testing.T, ctx context.Context, at place) int {
	t.Helper()
	out, err := at(ctx, "nstat", "-asz", "IcmpInEchos")
	must(t, err)
	var count int
	_, err = fmt.Sscanf(out[strings.Index(out, "IcmpInEchos"):], "IcmpInEchos %d", &count)
	must(t, err)
	return count
}
