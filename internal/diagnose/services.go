package diagnose

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/endpoint"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/plan/input"
	"github.com/cldmnky/oooi/internal/step"
)

// services are the stages that are the same for all workers.
var services = map[string]func(Facts) step.Step{"dhcp": dhcpServes, "names": namesServed, "proxy": proxyServes, "backends": backendsAnswer}

// anyWorker makes a stage of one worker from what is the same for all.
func anyWorker(look func(Facts) step.Step) func(worker, Facts) step.Step {
	return func(_ worker, f Facts) step.Step { return look(f) }
}

// broken is the first of these conditions of the Infra that is False.
func broken(f Facts, kinds ...string) *metav1.Condition {
	for _, kind := range kinds {
		if c := meta.FindStatusCondition(f.Infra.Status.Conditions, kind); c != nil && c.Status == metav1.ConditionFalse {
			return c
		}
	}
	return nil
}

// refused is what holds the whole Infra back.
func refused(f Facts) *metav1.Condition {
	return broken(f, v1alpha1.ConditionAccepted, v1alpha1.ConditionNetworkReady, v1alpha1.ConditionEndpointsResolved)
}

// neverServed is why an Infra is refused that has nothing yet.
func neverServed(f Facts) *metav1.Condition {
	if f.DHCP.Is != nil {
		return nil
	}
	return refused(f)
}

func on(enabled *bool) bool { return ptr.Deref(enabled, true) }

// told repeats a condition, whose message says what to do.
func told(cause string, c *metav1.Condition) step.Step {
	if c.Status == metav1.ConditionUnknown || c.Reason == "Progressing" || c.Reason == "WaitingForControlPlane" {
		return waits("%s is %s (%s): %s", c.Type, c.Status, c.Reason, c.Message)
	}
	return fail(cause, "do what that says; docs/reference/findings.md explains "+c.Reason, "%s is False (%s): %s", c.Type, c.Reason, c.Message)
}

// down is what the Infra's condition has against a service. That its object is there is no sign that it serves: its pods may not have
// reported, and while the operator does not run nobody writes the condition.
func (f Facts) down(cause, kind string) *step.Step {
	c := meta.FindStatusCondition(f.Infra.Status.Conditions, kind)
	switch {
	case c == nil:
		return new(fail(cause, "see whether the operator runs: oooi check", "the operator has not said yet whether it serves: the Infra has no condition %s", kind))
	case c.Status == metav1.ConditionTrue || c.Reason == poolExhausted:
		return nil
	}
	return new(told(cause, c))
}

// missing is a child that ought to be there; what holds the Infra back explains it.
func (f Facts) missing(cause, child string) step.Step {
	if c := refused(f); c != nil {
		return told(infraRefused, c)
	}
	return fail(cause, "kubectl -n "+f.Infra.Namespace+" describe infra "+f.Infra.Name, "there is no %s", child)
}

func dhcpServes(f Facts) step.Step {
	if c := neverServed(f); c != nil {
		return told(infraRefused, c)
	}
	switch d := f.DHCP; {
	case d.Unread != "":
		return unread("the DHCPServer", d.Unread)
	case d.Is == nil && on(f.Infra.Spec.InfraComponents.DHCP.Enabled):
		return f.missing(dhcpDown, "DHCPServer "+names.DHCPServer(f.Infra.Name))
	case d.Is == nil:
		return skip("DHCP is disabled: workers get their addresses elsewhere")
	}
	if s := f.down(dhcpDown, v1alpha1.ConditionDHCPReady); s != nil {
		return *s
	}
	return ok("DHCP serves at %s", serving(f.DHCP.Is.Status.Instances))
}

// poolExhausted is the reason of a server that serves its holders, and nobody else.
const poolExhausted = "PoolExhausted"

// serving lists the addresses of the instances that are ready.
func serving(all []v1alpha1.Instance) string {
	var ready []string
	for _, i := range all {
		if i.Ready {
			ready = append(ready, string(i.IP))
		}
	}
	return strings.Join(ready, " and ")
}

func namesServed(f Facts) step.Step {
	switch d := f.DNS; {
	case d.Unread != "":
		return unread("the DNSServer", d.Unread)
	case d.Is == nil && on(f.Infra.Spec.InfraComponents.DNS.Enabled):
		return f.missing(dnsDown, "DNSServer "+names.DNSServer(f.Infra.Name))
	case d.Is == nil:
		return skip("DNS is disabled: workers resolve names elsewhere")
	}
	if s := f.down(dnsDown, v1alpha1.ConditionDNSReady); s != nil {
		return *s
	}
	if moved := f.moved(); moved != "" {
		return fail(endpointMoved, f.unpause(), "%s", moved)
	}
	for _, e := range f.Infra.Status.Endpoints {
		for _, host := range e.Hostnames {
			if _, err := netip.ParseAddr(host); err != nil && !answers(f.DNS.Is.Spec.StaticEntries, host) {
				return fail(nameMissing, f.unpause(), "DNSServer %s has no entry for %s, which workers need for %s", f.DNS.Is.Name, host, e.Name)
			}
		}
	}
	serves := ok("DNS answers at %s for %s", serving(f.DNS.Is.Status.Instances), hosts(f.Infra))
	if c := notSo(f.DNS.Is.Status.Instances, f.DNS.Is.Status.Conditions, v1alpha1.ConditionResolversAnswer); c != nil {
		return step.Step{Outcome: step.Warn, Says: serves.Says + "; but " + c.Message, Do: "do what that says; workers join meanwhile", See: "docs/reference/findings.md#" + c.Reason}
	}
	return serves
}

// moved compares where the HostedCluster sends workers, by their user data and the kubelets' kubeconfig, with what the Infra serves.
func (f Facts) moved() string {
	hc := f.HostedCluster.Is
	if hc == nil {
		return ""
	}
	ignition, _, _ := strings.Cut(hc.Status.IgnitionEndpoint, ":")
	sent := map[string]string{"ignition": ignition, "api": hc.Status.ControlPlaneEndpoint.Host}
	for _, e := range f.Infra.Status.Endpoints {
		if host := sent[e.Name]; host != "" && !slices.Contains(e.Hostnames, host) {
			return fmt.Sprintf("HostedCluster %s sends workers to %s for %s, and the Infra serves %s", hc.Name, host, e.Name, strings.Join(e.Hostnames, ", "))
		}
	}
	return ""
}

// unpause is what brings the children up to date.
func (f Facts) unpause() string {
	if f.Infra.Annotations[names.AnnotationPaused] != "" {
		return fmt.Sprintf("the Infra is paused; end that: kubectl -n %s annotate infra %s %s-", f.Infra.Namespace, f.Infra.Name, names.AnnotationPaused)
	}
	return "see whether the operator runs: kubectl -n oooi-system get deployment; and what the Infra's condition Progressing says"
}

func answers(entries []v1alpha1.DNSEntry, host string) bool {
	return slices.ContainsFunc(entries, func(e v1alpha1.DNSEntry) bool { return e.Hostname.StandsFor(host) })
}

func hosts(infra *v1alpha1.Infra) string {
	var all []string
	for _, e := range infra.Status.Endpoints {
		for _, host := range e.Hostnames {
			if _, err := netip.ParseAddr(host); err != nil && slices.Contains(endpoint.Essential, e.Name) {
				all = append(all, host)
			}
		}
	}
	return strings.Join(all, ", ")
}

func proxyServes(f Facts) step.Step {
	switch p := f.Proxy; {
	case p.Unread != "":
		return unread("the ProxyServer", p.Unread)
	case p.Is == nil && on(f.Infra.Spec.InfraComponents.Proxy.Enabled):
		return f.missing(proxyDown, "ProxyServer "+names.ProxyServer(f.Infra.Name))
	case p.Is == nil:
		return skip("the proxy is disabled: workers reach the control plane by another way")
	}
	if s := f.down(proxyDown, v1alpha1.ConditionProxyReady); s != nil {
		return *s
	}
	for _, e := range f.Infra.Status.Endpoints {
		for _, host := range e.Hostnames {
			if !routed(f.Proxy.Is.Spec.Backends, host, e.Port) {
				return fail(noRoute, f.unpause(), "ProxyServer %s has no backend for %s on port %d, which workers need for %s", f.Proxy.Is.Name, host, e.Port, e.Name)
			}
		}
	}
	return ok("the proxy serves at %s, with a backend for each name", serving(f.Proxy.Is.Status.Instances))
}

func routed(all []v1alpha1.ProxyBackend, host string, port v1alpha1.Port) bool {
	return slices.ContainsFunc(all, func(b v1alpha1.ProxyBackend) bool {
		return b.Port == port && (b.CatchAll || b.Hostname.StandsFor(host) ||
			slices.ContainsFunc(b.AlternateHostnames, func(n v1alpha1.DNSNameOrWildcard) bool { return n.StandsFor(host) }))
	})
}

func backendsAnswer(f Facts) step.Step {
	if f.Proxy.Is == nil {
		return skip("no backends are known without the ProxyServer")
	}
	for _, b := range f.Proxy.Is.Status.Backends {
		if b.Healthy > 0 || !slices.Contains(endpoint.Essential, b.Name) {
			continue
		}
		if b.Name == "ignition" && f.ignitionIsDown() {
			return f.noIgnition()
		}
		if policy := f.missingPolicy(b.Name); policy != "" && b.Total > 0 { // without a pod that is ready there is no policy either
			return fail(policyMissing, f.unpause(), "no target of %s answers the proxy, and NetworkPolicy %s, which lets the proxy in, is not there", b.Name, policy)
		}
		down := fail(backendDown, "kubectl -n "+f.controlPlane()+" get pods,endpointslices; what the message names has to run, and let the proxy's pods in", "no target of %s answers the proxy: %s", b.Name, b.Message)
		if f.Policies.Unread != "" && b.Total > 0 {
			down.Says += "; whether a NetworkPolicy is missing is not known: " + f.Policies.Unread
		}
		return down
	}
	if fault, found := f.faulty(); found {
		return fault
	}
	return ok("all backends that a worker needs answer the proxy (%s)", f.Proxy.Is.Status.HealthyBackends)
}

// missingPolicy is our NetworkPolicy for a backend, if it ought to be there and is not. HyperShift's own let all in to the API server's
// konnectivity port and to none of the others (upstream.md).
func (f Facts) missingPolicy(backend string) string {
	for _, b := range f.Proxy.Is.Spec.Backends {
		if b.Name != backend || b.TargetService == "" || f.Policies.Unread != "" || f.Infra.Spec.HostedClusterRef == nil { // without which none are read
			continue
		}
		policy := names.Qualified(f.Infra.Namespace, f.Proxy.Is.Name) + "." + string(b.TargetService)
		if backend != "konnectivity" && !slices.Contains(f.Policies.Is, policy) {
			return string(b.TargetNamespace) + "/" + policy
		}
	}
	return ""
}

// cluster is the HostedCluster that the Infra names; empty if it names none.
func (f Facts) cluster() types.NamespacedName { return clusterOf(f.Infra) }

func clusterOf(infra *v1alpha1.Infra) types.NamespacedName { return input.Refs(infra).HostedCluster }

func (f Facts) controlPlane() string { return endpoint.ControlPlaneNamespaceOf(f.cluster()) }
