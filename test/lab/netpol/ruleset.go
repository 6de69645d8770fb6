// Package netpol enforces NetworkPolicies on the lab's node with nftables.
//
// Pods are routed (CNI plugin ptp): packets between them pass the forward hook, and packets to the node the input hook, those to a Service
// already with the address of its pod or node. What the node itself sends, above all probes, passes neither hook and is always allowed.
package netpol

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Cluster is what the rules are made from.
type Cluster struct {
	Policies   []*networkingv1.NetworkPolicy
	Pods       []*corev1.Pod
	Namespaces []*corev1.Namespace
}

// way is one of a policy's two directions.
type way struct {
	kind      networkingv1.PolicyType
	pod, peer string // which address of a packet is the isolated pod's, and which the peer's
	suffix    string // of the pod's chain
	passes    string // the verdict for what a policy allows
}

var (
	ingress = way{kind: networkingv1.PolicyTypeIngress, pod: "daddr", peer: "saddr", passes: "accept"}
	egress  = way{kind: networkingv1.PolicyTypeEgress, pod: "saddr", peer: "daddr", suffix: "/out", passes: "return"} // the ingress rules come next
)

// rule is a policy's rule, of either direction.
type rule struct {
	peers []networkingv1.NetworkPolicyPeer
	ports []networkingv1.NetworkPolicyPort
}

// Ruleset is the input of `nft -f` that replaces the table inet netpol in one transaction.
// The same objects in any order give the same text.
func Ruleset(c Cluster) (string, error) {
	c = c.sorted()
	var chains strings.Builder
	in, err := c.side(ingress, &chains)
	if err != nil {
		return "", err
	}
	out, err := c.side(egress, &chains)
	if err != nil {
		return "", err
	}
	const base = "\tchain %s {\n\t\ttype filter hook %s priority filter; policy accept;\n\t\tct state established,related accept\n\t\tjump out\n"
	return "table inet netpol\ndelete table inet netpol\ntable inet netpol {\n" +
		fmt.Sprintf(base, "forward", "forward") + in + "\t}\n" +
		fmt.Sprintf(base, "input", "input") + "\t}\n" +
		"\tchain out {\n" + out + "\t}\n" + chains.String() + "}\n", nil
}

// side writes a chain for each pod that is isolated in one direction, and returns the jumps to them.
func (c Cluster) side(w way, chains *strings.Builder) (string, error) {
	var jumps strings.Builder
	for _, pod := range c.Pods {
		policies, err := c.isolating(w, pod)
		if err != nil {
			return "", err
		}
		if len(policies) == 0 {
			continue
		}
		matches, err := c.matches(w, pod, policies)
		if err != nil {
			return "", err
		}
		w.writeChain(chains, pod, matches)
		for _, addr := range addresses(pod) {
			fmt.Fprintf(&jumps, "\t\t%s %s %s jump pod/%s%s\n", family(addr), w.pod, addr, pod.UID, w.suffix)
		}
	}
	return jumps.String(), nil
}

func (w way) writeChain(to *strings.Builder, pod *corev1.Pod, matches []string) {
	fmt.Fprintf(to, "\tchain pod/%s%s { # %s/%s%s\n", pod.UID, w.suffix, pod.Namespace, pod.Name, w.suffix)
	for _, match := range matches {
		fmt.Fprintf(to, "\t\t%s%s\n", match, w.passes)
	}
	to.WriteString("\t\tdrop\n\t}\n")
}

func (c Cluster) sorted() Cluster {
	return Cluster{
		Policies: slices.SortedFunc(slices.Values(c.Policies), func(a, b *networkingv1.NetworkPolicy) int {
			return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
		}),
		Pods: slices.SortedFunc(slices.Values(c.Pods), func(a, b *corev1.Pod) int {
			return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
		}),
		Namespaces: c.Namespaces,
	}
}

// isolating lists the policies that select the pod in one direction.
func (c Cluster) isolating(w way, pod *corev1.Pod) ([]*networkingv1.NetworkPolicy, error) {
	if len(addresses(pod)) == 0 {
		return nil, nil
	}
	var out []*networkingv1.NetworkPolicy
	for _, policy := range c.Policies {
		if policy.Namespace != pod.Namespace || !w.limits(policy) {
			continue
		}
		selected, err := selects(&policy.Spec.PodSelector, pod.Labels)
		if err != nil {
			return nil, fmt.Errorf("NetworkPolicy %s/%s: podSelector: %w", policy.Namespace, policy.Name, err)
		}
		if selected {
			out = append(out, policy)
		}
	}
	return out, nil
}

// limits: a policy without policyTypes limits ingress, and also egress if it has egress rules (networking.k8s.io/v1, NetworkPolicySpec).
func (w way) limits(policy *networkingv1.NetworkPolicy) bool {
	types := policy.Spec.PolicyTypes
	if len(types) == 0 {
		return w.kind == networkingv1.PolicyTypeIngress || len(policy.Spec.Egress) > 0
	}
	return slices.Contains(types, w.kind)
}

func (w way) rules(policy *networkingv1.NetworkPolicy) (all []rule) {
	if w.kind == networkingv1.PolicyTypeEgress {
		for _, r := range policy.Spec.Egress {
			all = append(all, rule{r.To, r.Ports})
		}
		return all
	}
	for _, r := range policy.Spec.Ingress {
		all = append(all, rule{r.From, r.Ports})
	}
	return all
}

// matches lists the nftables matches of everything that the policies allow. A named port is looked up in the isolated pod only; in an
// egress rule, where it would be the peer's, it matches nothing.
func (c Cluster) matches(w way, pod *corev1.Pod, policies []*networkingv1.NetworkPolicy) ([]string, error) {
	if w.kind == networkingv1.PolicyTypeEgress {
		pod = &corev1.Pod{}
	}
	var out []string
	for _, policy := range policies {
		for _, r := range w.rules(policy) {
			peers, err := c.peerMatches(w, policy.Namespace, r.peers)
			if err != nil {
				return nil, fmt.Errorf("NetworkPolicy %s/%s: %w", policy.Namespace, policy.Name, err)
			}
			for _, peer := range peers {
				for _, port := range portMatches(pod, r.ports) {
					out = append(out, peer+port)
				}
			}
		}
	}
	return out, nil
}

// peerMatches: no peers at all means everyone; peers that match nobody mean no one.
func (c Cluster) peerMatches(w way, namespace string, peers []networkingv1.NetworkPolicyPeer) ([]string, error) {
	if len(peers) == 0 {
		return []string{""}, nil
	}
	var out []string
	var pods []netip.Addr
	for _, peer := range peers {
		if peer.IPBlock != nil {
			out = append(out, w.blockMatch(peer.IPBlock))
			continue
		}
		found, err := c.peerAddresses(namespace, peer)
		if err != nil {
			return nil, err
		}
		pods = append(pods, found...)
	}
	return append(out, w.addressMatches(pods)...), nil
}

func (w way) blockMatch(block *networkingv1.IPBlock) string {
	proto := "ip"
	if strings.Contains(block.CIDR, ":") {
		proto = "ip6"
	}
	match := fmt.Sprintf("%s %s %s ", proto, w.peer, block.CIDR)
	if len(block.Except) > 0 {
		match += fmt.Sprintf("%s %s != { %s } ", proto, w.peer, strings.Join(block.Except, ", "))
	}
	return match
}

func (c Cluster) peerAddresses(namespace string, peer networkingv1.NetworkPolicyPeer) ([]netip.Addr, error) {
	var out []netip.Addr
	for _, pod := range c.Pods {
		inNamespace, err := c.namespaceFits(namespace, peer.NamespaceSelector, pod.Namespace)
		if err != nil {
			return nil, err
		}
		selected, err := selects(peer.PodSelector, pod.Labels)
		if err != nil {
			return nil, err
		}
		if inNamespace && selected {
			out = append(out, addresses(pod)...)
		}
	}
	return out, nil
}

// namespaceFits: without a namespaceSelector only the policy's own namespace matches.
func (c Cluster) namespaceFits(own string, selector *metav1.LabelSelector, name string) (bool, error) {
	if selector == nil {
		return name == own, nil
	}
	i := slices.IndexFunc(c.Namespaces, func(ns *corev1.Namespace) bool { return ns.Name == name })
	if i < 0 {
		return false, nil
	}
	return selects(selector, c.Namespaces[i].Labels)
}

func (w way) addressMatches(addrs []netip.Addr) []string {
	slices.SortFunc(addrs, netip.Addr.Compare)
	addrs = slices.Compact(addrs)
	byFamily := map[string][]string{}
	for _, addr := range addrs {
		byFamily[family(addr)] = append(byFamily[family(addr)], addr.String())
	}
	var out []string
	for _, proto := range []string{"ip", "ip6"} {
		if len(byFamily[proto]) > 0 {
			out = append(out, fmt.Sprintf("%s %s { %s } ", proto, w.peer, strings.Join(byFamily[proto], ", ")))
		}
	}
	return out
}

// portMatches: no ports at all means every port; a name that the pod does not have matches none.
func portMatches(pod *corev1.Pod, ports []networkingv1.NetworkPolicyPort) []string {
	if len(ports) == 0 {
		return []string{""}
	}
	var out []string
	for _, port := range ports {
		protocol := corev1.ProtocolTCP
		if port.Protocol != nil {
			protocol = *port.Protocol
		}
		if number := portNumber(pod, protocol, port); number != "" {
			out = append(out, fmt.Sprintf("%s %s ", strings.ToLower(string(protocol)), number))
		} else if port.Port == nil {
			out = append(out, fmt.Sprintf("meta l4proto %s ", strings.ToLower(string(protocol))))
		}
	}
	return out
}

func portNumber(pod *corev1.Pod, protocol corev1.Protocol, port networkingv1.NetworkPolicyPort) string {
	switch {
	case port.Port == nil:
		return ""
	case port.EndPort != nil:
		return fmt.Sprintf("dport %d-%d", port.Port.IntVal, *port.EndPort)
	case port.Port.StrVal == "":
		return fmt.Sprintf("dport %d", port.Port.IntVal)
	}
	for _, container := range allContainers(pod) {
		for _, named := range container.Ports {
			if named.Name == port.Port.StrVal && cmp.Or(named.Protocol, corev1.ProtocolTCP) == protocol {
				return fmt.Sprintf("dport %d", named.ContainerPort)
			}
		}
	}
	return ""
}

// allContainers: a sidecar is an init container that keeps running.
func allContainers(pod *corev1.Pod) []corev1.Container {
	return slices.Concat(pod.Spec.Containers, pod.Spec.InitContainers)
}

// addresses of a pod on the pod network: none if it uses the host's network, whose traffic is the node's, or if it has ended.
func addresses(pod *corev1.Pod) []netip.Addr {
	if pod.Spec.HostNetwork || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return nil
	}
	var out []netip.Addr
	for _, ip := range pod.Status.PodIPs {
		if addr, err := netip.ParseAddr(ip.IP); err == nil {
			out = append(out, addr)
		}
	}
	return out
}

func family(addr netip.Addr) string {
	if addr.Is4() {
		return "ip"
	}
	return "ip6"
}

// selects: a peer without a selector for pods means all of them.
func selects(selector *metav1.LabelSelector, set map[string]string) (bool, error) {
	if selector == nil {
		return true, nil
	}
	s, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return false, err
	}
	return s.Matches(labels.Set(set)), nil
}
