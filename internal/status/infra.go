package status

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/plan"
)

// Outcome is what became of a plan.
type Outcome struct {
	Findings []finding.Finding // of the plan and of applying it
	// Held: nothing was applied.
	Held bool
	// Wrote: what was read of the parts is from before the change.
	Wrote bool
	// Paused says why nothing was written; empty when it was.
	Paused string
	// GuestLeft: nothing of ours is in the hosted cluster (any more), or nobody can tell.
	GuestLeft bool
	// GuestStays is why something of ours is still there while it is to be removed.
	GuestStays string
}

// Infra says how an Infra stands.
func Infra(infra *v1alpha1.Infra, p plan.InfraPlan, children plan.Children, out Outcome, now time.Time) v1alpha1.InfraStatus {
	before := infra.Status.Conditions
	out.Findings = append(out.Findings[:len(out.Findings):len(out.Findings)], remembered(before, p)...)
	accepted := judged(v1alpha1.ConditionAccepted, out.Findings, yes(v1alpha1.ConditionAccepted, "Valid", "the spec is valid and permitted"))
	network := judged(v1alpha1.ConditionNetworkReady, out.Findings, unlessHeld(out, before, yes(v1alpha1.ConditionNetworkReady, "Fit", "the NetworkAttachmentDefinition is there and fit")))
	endpoints := judged(v1alpha1.ConditionEndpointsResolved, out.Findings, unlessHeld(out, before, yes(v1alpha1.ConditionEndpointsResolved, "Resolved", "every endpoint has a name, a port and a backend")))
	components := componentVerdicts(infra, children, out)
	needed, published := slices.Concat([]verdict{accepted, network, endpoints}, components), appsVerdicts(infra, p, components, out)
	all := slices.Concat(needed, published, []verdict{progressing(infra, out, needed), degraded(before, out, append(components, published...)), ready(out, needed)})

	status := v1alpha1.InfraStatus{
		Conditions: conditions(before, infra.Generation, now, all...), ObservedGeneration: infra.Generation,
		Addresses: infra.Status.Addresses, Endpoints: infra.Status.Endpoints, Leases: leases(infra, children.DHCP),
	}
	status.AppsIngress = apps(infra, p, out, status.Conditions, now)
	switch {
	case !out.Held:
		status.Addresses, status.Endpoints = p.Addresses, p.Endpoints
	case out.Paused == "":
		status.Addresses = slices.DeleteFunc(slices.Clone(status.Addresses), func(a v1alpha1.AssignedAddress) bool { return slices.Contains(p.Off, a.Component) })
	}
	return status
}

func unlessHeld(out Outcome, before []metav1.Condition, good verdict) verdict {
	if out.Held {
		return kept(before, good.Type)
	}
	return good
}

// componentVerdicts are one for each component that is on; one that is off has no condition.
func componentVerdicts(infra *v1alpha1.Infra, children plan.Children, out Outcome) []verdict {
	c := infra.Spec.InfraComponents
	var all []verdict
	if on(c.DHCP.Enabled) {
		all = append(all, component(v1alpha1.ConditionDHCPReady, reportOfDHCP(children.DHCP), out))
	}
	if on(c.DNS.Enabled) {
		all = append(all, component(v1alpha1.ConditionDNSReady, reportOfDNS(children.DNS), out))
	}
	if on(c.Proxy.Enabled) {
		all = append(all, component(v1alpha1.ConditionProxyReady, reportOfProxy(children.Proxy), out))
	}
	return all
}

func on(enabled *bool) bool { return ptr.Deref(enabled, true) }

// report is what a child's status says.
type report struct {
	name       string
	settled    bool // its status is about its newest spec
	conditions []metav1.Condition
}

func reportOfDHCP(s *v1alpha1.DHCPServer) *report {
	if s == nil {
		return nil
	}
	return &report{"DHCPServer " + s.Name, s.Generation == s.Status.ObservedGeneration, s.Status.Conditions}
}

func reportOfDNS(s *v1alpha1.DNSServer) *report {
	if s == nil {
		return nil
	}
	return &report{"DNSServer " + s.Name, s.Generation == s.Status.ObservedGeneration, s.Status.Conditions}
}

func reportOfProxy(s *v1alpha1.ProxyServer) *report {
	if s == nil {
		return nil
	}
	return &report{"ProxyServer " + s.Name, s.Generation == s.Status.ObservedGeneration, s.Status.Conditions}
}

// component hands a child's own Ready on, once it is about the newest spec.
func component(kind string, r *report, out Outcome) verdict {
	switch {
	case r == nil && out.Held:
		return unknown(kind, "NotCreated", "nothing is created while the spec cannot be applied")
	case r == nil || out.Wrote:
		return no(kind, "Progressing", "the change has just been applied")
	case !r.settled:
		return no(kind, "Progressing", r.name+" has a newer spec than its status is about")
	}
	c := meta.FindStatusCondition(r.conditions, v1alpha1.ConditionReady)
	if c == nil {
		return unknown(kind, "NotReported", r.name+" has not reported yet")
	}
	return judged(kind, out.Findings, verdict{kind, c.Status, c.Reason, c.Message})
}

func progressing(infra *v1alpha1.Infra, out Outcome, all []verdict) verdict {
	const kind = v1alpha1.ConditionProgressing
	if out.Paused != "" {
		return no(kind, "Paused", out.Paused)
	}
	for _, f := range out.Findings {
		if f.Outcome == finding.Waiting {
			return yes(kind, f.Reason, f.Message)
		}
	}
	for _, v := range all {
		if v.Status != metav1.ConditionTrue && v.Reason == "Progressing" {
			return yes(kind, "RollingOut", v.Type+": "+v.Message)
		}
	}
	return no(kind, "Settled", fmt.Sprintf("generation %d is applied", infra.Generation))
}

// degraded: what the user must mend, or a component that served and does not, without a change being rolled out.
func degraded(before []metav1.Condition, out Outcome, components []verdict) verdict {
	const kind = v1alpha1.ConditionDegraded
	for _, f := range out.Findings {
		if f.Outcome.Mend() {
			return yes(kind, f.Reason, f.Message)
		}
	}
	for _, v := range components {
		served := meta.IsStatusConditionTrue(before, v.Type) || meta.IsStatusConditionTrue(before, kind)
		if v.Status == metav1.ConditionFalse && v.Reason != "Progressing" && served {
			return yes(kind, v.Reason, v.Type+": "+v.Message)
		}
	}
	return no(kind, "AsExpected", "nothing that worked has ceased to")
}

func ready(out Outcome, all []verdict) verdict {
	const kind = v1alpha1.ConditionReady
	if bad, found := firstNot(all...); found {
		return judged(kind, out.Findings, no(kind, bad.Reason, bad.Type+": "+bad.Message))
	}
	return judged(kind, out.Findings, yes(kind, "Serving", "workers can join"))
}

func leases(infra *v1alpha1.Infra, dhcp *v1alpha1.DHCPServer) *v1alpha1.LeaseCount {
	switch {
	case !on(infra.Spec.InfraComponents.DHCP.Enabled):
		return nil
	case dhcp == nil:
		return infra.Status.Leases
	}
	return &v1alpha1.LeaseCount{Active: dhcp.Status.ActiveLeases, PoolSize: dhcp.Status.PoolSize}
}
