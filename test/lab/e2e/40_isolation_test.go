//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cldmnky/oooi/test/lab/scene"
)

// podOf is the pod of a component of Infra c1: its name, and its addresses on the pod network and on the VLAN.
func podOf(t *testing.T, ctx context.Context, component string) (name, podIP, vlanIP string) {
	t.Helper()
	out := strings.Fields(kubectl(t, ctx, "-n", "clusters", "get", "pod", "-l", "app="+component+",app.kubernetes.io/instance=c1-"+component+",!hostedcluster.densityops.com/ordinal",
		"-o", "jsonpath={.items[0].metadata.name} {.items[0].status.podIP}"))
	return out[0], out[1], addressesOf(t, ctx, "c1", component)[0]
}

// addressesOf a component's instances on an Infra's VLAN.
func addressesOf(t *testing.T, ctx context.Context, infra, component string) []string {
	t.Helper()
	return strings.Fields(field(t, ctx, "infra/"+infra, fmt.Sprintf(`.status.addresses[?(@.component==%q)].ip`, component)))
}

// listedPorts are the TCP ports on which each component serves the VLAN.
func listedPorts(t *testing.T, ctx context.Context) map[string][]int {
	t.Helper()
	var proxy []int
	for _, port := range strings.Fields(kubectl(t, ctx, "-n", "clusters", "get", "infra", "c1", "-o", "jsonpath={.status.endpoints[*].port}")) {
		n, err := strconv.Atoi(port)
		must(t, err)
		proxy = append(proxy, n)
	}
	slices.Sort(proxy)
	return map[string][]int{"dhcp": nil, "dns": {53}, "proxy": slices.Compact(proxy)}
}

// On the VLAN, the listed ports of our addresses answer, and no others.
func TestOnlyListedPortsAnswerOnTheVLAN(t *testing.T) {
	ctx := within(t, 5*time.Minute)
	ready(t, ctx)
	n := neighbour(t, ctx, "scanner", "br100", "192.168.100.251/24")
	_, err := n.Run(ctx, "ip", "route", "add", "203.0.113.10/32", "via", vip(t, ctx, "c1"))
	must(t, err)
	for component, listed := range listedPorts(t, ctx) {
		_, _, address := podOf(t, ctx, component)
		if open := openPorts(t, n, address); !slices.Equal(open, listed) {
			t.Errorf("%s answers on %s ports %v, want %v", component, address, open, listed)
		}
	}
	if open := openPorts(t, n, "203.0.113.10"); !slices.Equal(open, []int{6443}) {
		t.Errorf("the captured address answers on ports %v; only the API's 6443 is published there", open)
	}
	for _, host := range endpointHosts(t, ctx, "c1") {
		if got := resolved(t, ctx, n, "c1", host); !areProxies(t, ctx, got, "c1") {
			t.Errorf("over UDP %s is %q, want the proxies' addresses", host, got)
		}
	}
}

// The same holds for a worker. Its lease, over UDP port 67, is the first thing that joins waits for.
func TestAWorkerFindsTheListedPortsAndNoOther(t *testing.T) {
	ctx := within(t, 5*time.Minute)
	ready(t, ctx)
	m := worker(8)
	joins(t, ctx, m)
	const tried = "$(seq 1 200) 443 2379 6443 8080 8081 9402 9901 10250 18000"
	for component, listed := range listedPorts(t, ctx) {
		_, _, address := podOf(t, ctx, component)
		out, err := lab.On(ctx, m, "for p in "+tried+"; do nc -w10 "+address+" $p -e true 2>/dev/null && echo $p; done; true")
		must(t, err)
		if open := strings.Join(strings.Fields(out), " "); open != strings.Trim(fmt.Sprint(listed), "[]") {
			t.Errorf("a worker finds ports %q of %s open on %s, want %v", open, component, address, listed)
		}
	}
}

func openPorts(t *testing.T, n *scene.Neighbour, address string) []int {
	t.Helper()
	open, err := n.OpenPorts(address, 300*time.Millisecond)
	must(t, err)
	slices.Sort(open)
	return open
}

// Linux answers for any of its addresses on any interface, so each of our sockets is bound to its device.
func TestThePodsOwnAddressIsNotReachedThroughTheVIP(t *testing.T) {
	ctx := within(t, 2*time.Minute)
	ready(t, ctx)
	n := neighbour(t, ctx, "weakhost", "br100", "192.168.100.252/24")
	for component, ports := range map[string][]int{"dhcp": {8081, 9402}, "dns": {53, 8081, 9402}, "proxy": {6443, 443, 8081, 9402}} {
		_, podIP, vlanIP := podOf(t, ctx, component)
		_, err := n.Run(ctx, "ip", "route", "replace", podIP+"/32", "via", vlanIP)
		must(t, err)
		for _, port := range ports {
			address := net.JoinHostPort(podIP, fmt.Sprint(port))
			if conn, err := n.Dial(address, 500*time.Millisecond); err == nil {
				conn.Close()
				t.Errorf("%s: the pod's own %s answers a client of the VLAN", component, address)
			}
		}
	}
}

// Pods inherit forwarding from the node's initial network namespace; tuning in the derived NAD disables it in ours.
func TestOurPodsNeverRoute(t *testing.T) {
	ctx := within(t, 5*time.Minute)
	ready(t, ctx)
	if host, err := lab.Lab(ctx, "exec", "cat", "/proc/sys/net/ipv4/ip_forward"); err != nil || strings.TrimSpace(host) != "1" {
		t.Fatalf("the node's init namespace must forward for this to mean anything: %q %v", host, err)
	}
	n := neighbour(t, ctx, "router", "br100", "192.168.100.253/24")
	for _, component := range []string{"dhcp", "dns", "proxy"} {
		t.Run(component, func(t *testing.T) { neverRoutes(t, ctx, n, component) })
	}
}

func neverRoutes(t *testing.T, ctx context.Context, n *scene.Neighbour, component string) {
	pod, podIP, vlanIP := podOf(t, ctx, component)
	for _, network := range []string{"10.96.0.0/16", "10.244.0.0/24"} {
		_, err := n.Run(ctx, "ip", "route", "replace", network, "via", vlanIP)
		must(t, err)
	}
	netns := podNamespace(t, ctx, podIP)
	before := forwarded(t, ctx, netns)
	for _, target := range []string{"10.96.0.1:443", "10.96.0.10:53", podIP + ":8081"} {
		if conn, err := n.Dial(target, 500*time.Millisecond); err == nil {
			conn.Close()
			t.Errorf("a client of the VLAN reached %s through our pod", target)
		}
	}
	if after := forwarded(t, ctx, netns); after != before {
		t.Errorf("the pod forwarded %d packets although tuning is in place", after-before)
	}

	setForwarding := func(ctx context.Context, value string) error {
		_, err := lab.Lab(ctx, "exec", "nsenter", "--net="+netns, "sh", "-c", "echo "+value+" > /proc/sys/net/ipv4/conf/net1/forwarding")
		return err
	}
	must(t, setForwarding(ctx, "1"))
	afterwards(t, func(ctx context.Context) error { return setForwarding(ctx, "0") })
	n.Dial("10.96.0.1:443", 500*time.Millisecond)
	if after := forwarded(t, ctx, netns); after == before {
		t.Error("with forwarding on by hand no packet passed: this test cannot tell")
	}
	kubectl(t, ctx, "-n", "clusters", "wait", "--for=condition=Ready=false", "pod/"+pod, "--timeout=30s")
	must(t, setForwarding(ctx, "0"))
	kubectl(t, ctx, "-n", "clusters", "wait", "--for=condition=Ready", "pod/"+pod, "--timeout=30s")
}

// On the pod network, a compromised daemon reaches the API and its own backends, and nothing else.
func TestADaemonReachesNothingElse(t *testing.T) {
	ctx := within(t, 3*time.Minute)
	ready(t, ctx)
	node := kubectl(t, ctx, "get", "nodes", "-o", `jsonpath={.items[0].status.addresses[?(@.type=="InternalIP")].address}`)
	dns := podAddress(t, ctx, "kube-system", "k8s-app=kube-dns")
	backend := kubectl(t, ctx, "-n", "clusters-c1", "get", "endpointslices", "-l", "kubernetes.io/service-name=ignition-server-proxy",
		"-o", "jsonpath={.items[0].endpoints[0].addresses[0]}:{.items[0].ports[0].port}")
	all := map[string]string{
		"the API's Service": "10.96.0.1:443", "the API server": node + ":6443", "the kubelet": node + ":10250",
		"a backend": backend, "another pod": dns + ":8181", "a resolver": dns + ":53",
	}
	reached := map[string][]string{
		"dhcp":  {"the API server", "the API's Service"},
		"dns":   {"a resolver", "the API server", "the API's Service"},
		"proxy": {"a backend", "the API server", "the API's Service"},
	}
	netns := map[string]string{"a pod without a policy": podNamespace(t, ctx, podAddress(t, ctx, "clusters-c1", "app=kube-apiserver"))}
	reached["a pod without a policy"] = slices.Sorted(maps.Keys(all)) // so it is policies that keep the others from it
	for _, component := range []string{"dhcp", "dns", "proxy"} {
		_, podIP, _ := podOf(t, ctx, component)
		netns[component] = podNamespace(t, ctx, podIP)
	}
	for from, want := range reached {
		var got []string
		for _, to := range slices.Sorted(maps.Keys(all)) {
			if dials(ctx, netns[from], all[to]) {
				got = append(got, to)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s reaches %q, want %q (%v)", from, got, want, all)
		}
	}
}

// dials says whether a TCP connection can be opened from a network namespace.
func dials(ctx context.Context, netns, address string) bool {
	host, port, _ := net.SplitHostPort(address)
	_, err := lab.Lab(ctx, "exec", "nsenter", "--net="+netns, "timeout", "1", "bash", "-c", "</dev/tcp/"+host+"/"+port)
	return err == nil
}

func podAddress(t *testing.T, ctx context.Context, namespace, selector string) string {
	t.Helper()
	return kubectl(t, ctx, "-n", namespace, "get", "pod", "-l", selector, "-o", "jsonpath={.items[0].status.podIP}")
}

// No container that parses packets of guests has a pod's API token.
func TestNoTokenIsWhereGuestsAreHeard(t *testing.T) {
	ctx := within(t, 2*time.Minute)
	ready(t, ctx)
	for app, guardian := range map[string]string{"dhcp": "api-proxy", "dns": "api-proxy", "proxy": "proxy"} {
		pod, _, _ := podOf(t, ctx, app)
		seen := 0
		for container, mounts := range mountsOf(t, ctx, pod) {
			if has := strings.Contains(mounts, "secrets/kubernetes.io"); has != (container == guardian) {
				t.Errorf("container %s of %s has a token: %v:\n%s", container, pod, has, mounts)
			}
			seen++
		}
		if seen != 2 {
			t.Errorf("%s has %d containers, want 2", pod, seen)
		}
	}
}

// mountsOf are the mounts of a pod's containers, as the kernel lists them.
func mountsOf(t *testing.T, ctx context.Context, pod string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for line := range strings.Lines(kubectl(t, ctx, "-n", "clusters", "get", "pod", pod, "-o", `jsonpath={range .status.containerStatuses[*]}{.name} {.containerID}{"\n"}{end}`)) {
		container, id, _ := strings.Cut(strings.TrimSpace(line), " containerd://")
		mounts, err := lab.Lab(ctx, "exec", "sh", "-c", `cat /proc/$(ctr -n k8s.io tasks ls | awk -v id=`+id+` '$1 == id {print $2}')/mountinfo`)
		must(t, err)
		if !strings.Contains(mounts, " / / ") {
			t.Fatalf("these are not the mounts of %s:\n%s", container, mounts)
		}
		all[container] = mounts
	}
	return all
}

// podNamespace finds the network namespace that has a pod's address.
func podNamespace(t *testing.T, ctx context.Context, podIP string) string {
	t.Helper()
	out, err := lab.Lab(ctx, "exec", "sh", "-c", `for n in /run/netns/*; do nsenter --net=$n ip -o -4 addr | grep -q " `+podIP+`/" && echo $n; done`)
	if out = strings.TrimSpace(out); out == "" {
		t.Fatalf("no network namespace holds %s: %v", podIP, err)
	}
	return out
}

// forwarded counts the packets that a namespace has forwarded (ForwDatagrams of RFC 4293).
func forwarded(t *testing.T, ctx context.Context, netns string) int {
	t.Helper()
	out, err := lab.Lab(ctx, "exec", "nsenter", "--net="+netns, "cat", "/proc/net/snmp")
	must(t, err)
	var count int
	for line := range strings.Lines(out) {
		if f := strings.Fields(line); len(f) > 6 && f[0] == "Ip:" && f[1] != "Forwarding" {
			_, err := fmt.Sscan(f[6], &count)
			must(t, err)
		}
	}
	return count
}
