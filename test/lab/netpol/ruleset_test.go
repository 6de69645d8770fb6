package netpol

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"
)

// The cluster of every case: a control plane, the proxy that needs access, and a stranger.
var (
	namespaces = []*corev1.Namespace{namespace("clusters-c1", "hcp"), namespace("infra", "oooi"), namespace("elsewhere", "none")}
	pods       = []*corev1.Pod{
		pod("clusters-c1", "ignition", "10.244.0.5", container("https", 8443)),
		pod("clusters-c1", "etcd", "10.244.0.6", container("client", 2379)),
		pod("infra", "proxy", "10.244.0.7"),
		pod("infra", "dns", "10.244.0.8"),
		pod("elsewhere", "proxy", "10.244.0.9"),
	}
)

func TestRuleset(t *testing.T) {
	for _, c := range []struct {
		name     string
		policies string // specs of NetworkPolicies in clusters-c1
		pods     []*corev1.Pod
		want     map[string][]string // pod → its chain; a pod that is not listed has none
	}{
		{name: "no policy isolates nobody"},
		{
			name:     "a policy of egress alone does not limit ingress",
			policies: `{podSelector: {matchLabels: {app: etcd}}, policyTypes: [Egress]}`,
			want:     map[string][]string{"clusters-c1/etcd/out": {"drop"}},
		},
		{
			name:     "no policyTypes and a rule for egress means both",
			policies: `{podSelector: {matchLabels: {app: etcd}}, egress: [{ports: [{port: 6443}]}]}`,
			want:     map[string][]string{"clusters-c1/etcd": {"drop"}, "clusters-c1/etcd/out": {"tcp dport 6443 return", "drop"}},
		},
		{
			name: "what is let out may still not be let in",
			policies: `{podSelector: {matchLabels: {app: etcd}}, policyTypes: [Egress], egress: [
				{to: [{namespaceSelector: {matchLabels: {kind: oooi}}, podSelector: {}}]}, {to: [{ipBlock: {cidr: 192.0.2.1/32}}], ports: [{port: 443}]}]}`,
			want: map[string][]string{"clusters-c1/etcd/out": {"ip daddr { 10.244.0.7, 10.244.0.8 } return", "ip daddr 192.0.2.1/32 tcp dport 443 return", "drop"}},
		},
		{
			name:     "a named port of whom a pod calls is not looked up",
			policies: `{podSelector: {matchLabels: {app: ignition}}, policyTypes: [Egress], egress: [{ports: [{port: https}]}]}`,
			want:     map[string][]string{"clusters-c1/ignition/out": {"drop"}},
		},
		{
			name:     "an empty policy isolates every pod of its namespace and no other",
			policies: `{podSelector: {}, policyTypes: [Ingress]}`,
			want:     map[string][]string{"clusters-c1/ignition": {"drop"}, "clusters-c1/etcd": {"drop"}},
		},
		{
			name:     "no policyTypes means ingress",
			policies: `{podSelector: {matchLabels: {app: etcd}}}`,
			want:     map[string][]string{"clusters-c1/etcd": {"drop"}},
		},
		{
			name:     "a rule without peers and ports lets everyone in",
			policies: `{podSelector: {matchLabels: {app: etcd}}, ingress: [{}]}`,
			want:     map[string][]string{"clusters-c1/etcd": {"accept", "drop"}},
		},
		{
			name:     "anyone to one port",
			policies: `{podSelector: {matchLabels: {app: ignition}}, ingress: [{ports: [{port: 6443}]}]}`,
			want:     map[string][]string{"clusters-c1/ignition": {"tcp dport 6443 accept", "drop"}},
		},
		{
			name:     "pods of the policy's own namespace by podSelector",
			policies: `{podSelector: {matchLabels: {app: etcd}}, ingress: [{from: [{podSelector: {}}]}]}`,
			want:     map[string][]string{"clusters-c1/etcd": {"ip saddr { 10.244.0.5, 10.244.0.6 } accept", "drop"}},
		},
		{
			name:     "every pod of the selected namespaces",
			policies: `{podSelector: {matchLabels: {app: etcd}}, ingress: [{from: [{namespaceSelector: {matchLabels: {kind: oooi}}}]}]}`,
			want:     map[string][]string{"clusters-c1/etcd": {"ip saddr { 10.244.0.7, 10.244.0.8 } accept", "drop"}},
		},
		{
			name: "both selectors in one peer must fit",
			policies: `{podSelector: {matchLabels: {app: ignition}}, ingress: [{ports: [{port: 8443}], from: [
				{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: infra}}, podSelector: {matchLabels: {app: proxy}}}]}]}`,
			want: map[string][]string{"clusters-c1/ignition": {"ip saddr { 10.244.0.7 } tcp dport 8443 accept", "drop"}},
		},
		{
			name: "either of two peers may fit",
			policies: `{podSelector: {matchLabels: {app: ignition}}, ingress: [{from: [
				{namespaceSelector: {matchLabels: {kind: oooi}}}, {podSelector: {matchLabels: {app: etcd}}}]}]}`,
			want: map[string][]string{"clusters-c1/ignition": {"ip saddr { 10.244.0.6, 10.244.0.7, 10.244.0.8 } accept", "drop"}},
		},
		{
			name:     "peers that nobody fits let no one in",
			policies: `{podSelector: {matchLabels: {app: etcd}}, ingress: [{from: [{namespaceSelector: {matchLabels: {kind: nobody}}}]}]}`,
			want:     map[string][]string{"clusters-c1/etcd": {"drop"}},
		},
		{
			name:     "an address block with a hole",
			policies: `{podSelector: {matchLabels: {app: etcd}}, ingress: [{from: [{ipBlock: {cidr: 192.0.2.0/24, except: [192.0.2.8/29, 192.0.2.64/26]}}]}]}`,
			want:     map[string][]string{"clusters-c1/etcd": {"ip saddr 192.0.2.0/24 ip saddr != { 192.0.2.8/29, 192.0.2.64/26 } accept", "drop"}},
		},
		{
			name:     "an IPv6 address block",
			policies: `{podSelector: {matchLabels: {app: etcd}}, ingress: [{from: [{ipBlock: {cidr: "2001:db8::/64"}}]}]}`,
			want:     map[string][]string{"clusters-c1/etcd": {"ip6 saddr 2001:db8::/64 accept", "drop"}},
		},
		{
			name:     "a named port is the port of the pod that has it",
			policies: `{podSelector: {}, ingress: [{ports: [{port: https}]}]}`,
			want:     map[string][]string{"clusters-c1/ignition": {"tcp dport 8443 accept", "drop"}, "clusters-c1/etcd": {"drop"}},
		},
		{
			name:     "a named port of another protocol is another port",
			policies: `{podSelector: {matchLabels: {app: ignition}}, ingress: [{ports: [{port: https, protocol: UDP}]}]}`,
			want:     map[string][]string{"clusters-c1/ignition": {"drop"}},
		},
		{
			name:     "a range of ports, and all ports of a protocol",
			policies: `{podSelector: {matchLabels: {app: etcd}}, ingress: [{ports: [{port: 30000, endPort: 32767}, {protocol: UDP}]}]}`,
			want:     map[string][]string{"clusters-c1/etcd": {"tcp dport 30000-32767 accept", "meta l4proto udp accept", "drop"}},
		},
		{
			name: "policies add up",
			policies: `{podSelector: {}, ingress: [{from: [{podSelector: {matchLabels: {app: etcd}}}]}]}
---
{podSelector: {matchLabels: {app: ignition}}, ingress: [{ports: [{port: 8443}]}]}`,
			want: map[string][]string{
				"clusters-c1/ignition": {"ip saddr { 10.244.0.6 } accept", "tcp dport 8443 accept", "drop"},
				"clusters-c1/etcd":     {"ip saddr { 10.244.0.6 } accept", "drop"},
			},
		},
		{
			name:     "pods on the host's network and pods that have ended are neither isolated nor let in",
			policies: `{podSelector: {}, ingress: [{from: [{podSelector: {}}]}]}`,
			pods: []*corev1.Pod{
				pod("clusters-c1", "node-agent", "172.31.254.2", func(p *corev1.Pod) { p.Spec.HostNetwork = true }),
				pod("clusters-c1", "job", "10.244.0.20", func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }),
				pod("clusters-c1", "starting", ""),
				pod("clusters-c1", "etcd", "10.244.0.6"),
			},
			want: map[string][]string{"clusters-c1/etcd": {"ip saddr { 10.244.0.6 } accept", "drop"}},
		},
		{
			name:     "both addresses of a dual-stack pod",
			policies: `{podSelector: {}, ingress: [{from: [{podSelector: {}}]}]}`,
			pods: []*corev1.Pod{pod("clusters-c1", "etcd", "10.244.0.6", func(p *corev1.Pod) {
				p.Status.PodIPs = append(p.Status.PodIPs, corev1.PodIP{IP: "fd00::6"})
			})},
			want: map[string][]string{"clusters-c1/etcd": {"ip saddr { 10.244.0.6 } accept", "ip6 saddr { fd00::6 } accept", "drop"}},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			cluster := Cluster{Policies: policies(t, c.policies), Pods: c.pods, Namespaces: namespaces}
			if cluster.Pods == nil {
				cluster.Pods = pods
			}
			rules, err := Ruleset(cluster)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, chains(rules)); diff != "" {
				t.Errorf("chains (-want +got):\n%s\n%s", diff, rules)
			}
			acceptedByNft(t, rules)
		})
	}
}

func TestRulesetSendsEachAddressOfAnIsolatedPodToItsChain(t *testing.T) {
	rules, err := Ruleset(Cluster{Policies: policies(t, `{podSelector: {matchLabels: {app: etcd}}}`), Pods: pods, Namespaces: namespaces})
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(rules, "daddr"); got != 1 || !strings.Contains(rules, "ip daddr 10.244.0.6 jump pod/uid-clusters-c1-etcd\n") {
		t.Errorf("want one jump, for 10.244.0.6:\n%s", rules)
	}
	if established := strings.Index(rules, "established,related accept"); established < 0 || established > strings.Index(rules, "daddr") {
		t.Errorf("answers must pass before anything is dropped:\n%s", rules)
	}
}

// A packet is judged by its sender's policies wherever it goes, including to the node, and then by its receiver's.
func TestRulesetJudgesTheSenderFirst(t *testing.T) {
	rules, err := Ruleset(Cluster{Policies: policies(t, `{podSelector: {matchLabels: {app: etcd}}, policyTypes: [Ingress, Egress]}`), Pods: pods, Namespaces: namespaces})
	if err != nil {
		t.Fatal(err)
	}
	sender, receiver := strings.Index(rules, "jump out"), strings.Index(rules, "ip daddr 10.244.0.6 jump pod/uid-clusters-c1-etcd\n")
	if sender < 0 || receiver < sender || strings.Count(rules, "jump out") != 2 || !strings.Contains(rules, "ip saddr 10.244.0.6 jump pod/uid-clusters-c1-etcd/out\n") {
		t.Errorf("want the sender's chain before the receiver's, on the forward and the input hook:\n%s", rules)
	}
}

func TestRulesetNamesThePolicyThatCannotBeRead(t *testing.T) {
	_, err := Ruleset(Cluster{Policies: policies(t, `{podSelector: {matchExpressions: [{key: app, operator: Near}]}}`), Pods: pods})
	if err == nil || !strings.Contains(err.Error(), "NetworkPolicy clusters-c1/policy-0: podSelector") {
		t.Errorf("got %v", err)
	}
}

// acceptedByNft loads the rules in a temporary network namespace.
func acceptedByNft(t *testing.T, rules string) {
	t.Helper()
	cmd := exec.Command("unshare", "--map-root-user", "--net", "nft", "-f", "-")
	cmd.Stdin = strings.NewReader(rules)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("nft refuses the rules: %v\n%s\n%s", err, out, rules)
	}
}

// chains reads back each pod's chain, by the pod's name in its comment.
func chains(rules string) map[string][]string {
	var out map[string][]string
	name := ""
	for _, line := range strings.Split(rules, "\n") {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "chain pod/"):
			_, name, _ = strings.Cut(line, "# ")
			if out == nil {
				out = map[string][]string{}
			}
		case line == "}":
			name = ""
		case name != "":
			out[name] = append(out[name], line)
		}
	}
	return out
}

func policies(t *testing.T, specs string) []*networkingv1.NetworkPolicy {
	t.Helper()
	var out []*networkingv1.NetworkPolicy
	for i, spec := range strings.Split(specs, "\n---\n") {
		if spec == "" {
			continue
		}
		policy := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-c1", Name: "policy-" + string(rune('0'+i))}}
		if err := yaml.UnmarshalStrict([]byte(strings.ReplaceAll(spec, "\t", "")), &policy.Spec); err != nil {
			t.Fatal(err)
		}
		out = append(out, policy)
	}
	return out
}

func namespace(name, kind string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"kubernetes.io/metadata.name": name, "kind": kind}}}
}

func pod(namespace, name, ip string, with ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, UID: types.UID("uid-" + namespace + "-" + name), Labels: map[string]string{"app": name},
	}}
	if ip != "" {
		p.Status.PodIPs = []corev1.PodIP{{IP: ip}}
	}
	for _, f := range with {
		f(p)
	}
	return p
}

func container(portName string, port int32) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Ports: []corev1.ContainerPort{{Name: portName, ContainerPort: port}}})
	}
}
