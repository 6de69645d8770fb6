// Package netpol enforces the ingress side of NetworkPolicies on the lab's node with nftables.
//
// Pods are routed (CNI plugin ptp), so every packet between them passes the forward hook, those to a Service with the pod's
// address already in place. What the node itself sends, probes above all, does not, and always passes.
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

// Ruleset is the input of `nft -f` that replaces the table inet netpol in one transaction.
// The same objects in any order give the same text.
func Ruleset(c Cluster) (string, error) {
	c = c.sorted()
	var jumps, chains strings.Builder
	for _, pod := range c.Pods {
		policies, err := c.isolating(pod)
		if err != nil {
			return "", err
		}
		if len(policies) == 0 {
			continue
		}
		accepts, err := c.accepts(pod, policies)
		if err != nil {
			return "", err
		}
		writeChain(&chains, pod, accepts)
		writeJumps(&jumps, pod)
	}
	return "table inet netpol\ndelete table inet netpol\ntable inet netpol {\n" +
		"\tchain forward {\n\t\ttype filter hook forward priority filter; policy accept;\n\t\tct state established,related accept\n" +
		jumps.String() + "\t}\n" + chains.String() + "}\n", nil
}

func writeJumps(w *strings.Builder, pod *corev1.Pod) {
	for _, addr := range addresses(pod) {
		fmt.Fprintf(w, "\t\t%s daddr %s jump pod/%s\n", family(addr), addr, pod.UID)
	}
}

func writeChain(w *strings.Builder, pod *corev1.Pod, accepts []string) {
	fmt.Fprintf(w, "\tchain pod/%s { # %s/%s\n", pod.UID, pod.Namespace, pod.Name)
	for _, match := range accepts {
		fmt.Fprintf(w, "\t\t%saccept\n", match)
	}
	w.WriteString("\t\tdrop\n\t}\n")
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

// isolating lists the policies that select the pod for ingress.
func (c Cluster) isolating(pod *corev1.Pod) ([]*networkingv1.NetworkPolicy, error) {
	if len(addresses(pod)) == 0 {
		return nil, nil
	}
	var out []*networkingv1.NetworkPolicy
	for _, policy := range c.Policies {
		if policy.Namespace != pod.Namespace || !limitsIngress(policy) {
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

// limitsIngress: a policy without policyTypes is an ingress policy (networking.k8s.io/v1, NetworkPolicySpec).
func limitsIngress(policy *networkingv1.NetworkPolicy) bool {
	types := policy.Spec.PolicyTypes
	return len(types) == 0 || slices.Contains(types, networkingv1.PolicyTypeIngress)
}

// accepts lists the nftables matches of everything that the policies let through to the pod.
func (c Cluster) accepts(pod *corev1.Pod, policies []*networkingv1.NetworkPolicy) ([]string, error) {
	var out []string
	for _, policy := range policies {
		for _, rule := range policy.Spec.Ingress {
			sources, err := c.sourceMatches(policy.Namespace, rule.From)
			if err != nil {
				return nil, fmt.Errorf("NetworkPolicy %s/%s: %w", policy.Namespace, policy.Name, err)
			}
			for _, source := range sources {
				for _, port := range portMatches(pod, rule.Ports) {
					out = append(out, source+port)
				}
			}
		}
	}
	return out, nil
}

// sourceMatches: no peer at all means everyone; peers that nobody fits mean no one.
func (c Cluster) sourceMatches(namespace string, peers []networkingv1.NetworkPolicyPeer) ([]string, error) {
	if len(peers) == 0 {
		return []string{""}, nil
	}
	var out []string
	var pods []netip.Addr
	for _, peer := range peers {
		if peer.IPBlock != nil {
			out = append(out, blockMatch(peer.IPBlock))
			continue
		}
		found, err := c.peerAddresses(namespace, peer)
		if err != nil {
			return nil, err
		}
		pods = append(pods, found...)
	}
	return append(out, addressMatches(pods)...), nil
}

func blockMatch(block *networkingv1.IPBlock) string {
	proto := "ip"
	if strings.Contains(block.CIDR, ":") {
		proto = "ip6"
	}
	match := fmt.Sprintf("%s saddr %s ", proto, block.CIDR)
	if len(block.Except) > 0 {
		match += fmt.Sprintf("%s saddr != { %s } ", proto, strings.Join(block.Except, ", "))
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

// namespaceFits: without a namespaceSelector only the policy's own namespace is meant.
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

func addressMatches(addrs []netip.Addr) []string {
	slices.SortFunc(addrs, netip.Addr.Compare)
	addrs = slices.Compact(addrs)
	byFamily := map[string][]string{}
	for _, addr := range addrs {
		byFamily[family(addr)] = append(byFamily[family(addr)], addr.String())
	}
	var out []string
	for _, proto := range []string{"ip", "ip6"} {
		if len(byFamily[proto]) > 0 {
			out = append(out, fmt.Sprintf("%s saddr { %s } ", proto, strings.Join(byFamily[proto], ", ")))
		}
	}
	return out
}

// portMatches: no port at all means every port; a name that the pod does not have means none.
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

// addresses of a pod on the pod network: none for one on the host's, whose traffic is the node's, and none once it has ended.
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

// selects: an absent selector of a peer's pods means all of them.
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
