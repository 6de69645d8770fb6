package status

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/component"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/plan"
	"github.com/cldmnky/oooi/internal/plan/ending"
	"github.com/cldmnky/oooi/internal/plan/input"
)

// Outcome is what came of applying a plan.
type Outcome struct {
	Findings []finding.Finding // of planning and of applying
	// Frozen: nothing was applied.
	Frozen bool
	// Wrote: something was written, so what was read of the parts may be older.
	Wrote bool
	// Paused says why nothing was written; empty if that is not so.
	Paused string
	// Requests of kubelets in a bridge's hosted cluster.
	Requests []dpuv1.CertificateRequest
	// GuestLeft: nothing of ours is, or is any longer, in the hosted cluster, or nobody can tell.
	GuestLeft bool
	// GuestStays is why something of ours that is to be removed is still there.
	GuestStays string
}

// Infra is an Infra's status.
func Infra(infra *v1alpha1.Infra, p plan.InfraPlan, children input.Children, out Outcome, now time.Time) v1alpha1.InfraStatus {
	before := infra.Status.Conditions
	out.Findings = append(out.Findings[:len(out.Findings):len(out.Findings)], append(remembered(before, p), rollouts(children)...)...)
	accepted := judged(v1alpha1.ConditionAccepted, out.Findings, yes(v1alpha1.ConditionAccepted, "Valid", "the spec is valid, and its references are granted"))
	network := judged(v1alpha1.ConditionNetworkReady, out.Findings, unlessFrozen(out, before, yes(v1alpha1.ConditionNetworkReady, "NADValid", "the NetworkAttachmentDefinition exists and can be used")))
	endpoints := judged(v1alpha1.ConditionEndpointsResolved, out.Findings, unlessFrozen(out, before, yes(v1alpha1.ConditionEndpointsResolved, "Resolved", "the name, the port and the backend of every endpoint are known; BackendsHealthy says whether they answer")))
	components, behind := componentVerdicts(infra, children, out), behindProxy(infra, children.Proxy())
	needed, published := slices.Concat([]verdict{accepted, network, endpoints}, components, behind), appsVerdicts(infra, p, components, out)
	all := slices.Concat(needed, published, []verdict{progressing(infra, children, out, needed), degraded(before, now, slices.Concat(components, behind, published)), ready(infra, out, needed)})

	status := v1alpha1.InfraStatus{
		Conditions: conditions(before, infra.Generation, now, all...), ObservedGeneration: infra.Generation,
		Addresses: infra.Status.Addresses, Endpoints: infra.Status.Endpoints, Leases: leases(infra, children.DHCP()),
	}
	if len(behind) > 0 {
		status.HealthyBackends = backendsOf(children.Proxy()).healthy()
	}
	status.AppsIngress = appsStatus(infra, p, out, status.Conditions, now)
	switch {
	case !out.Frozen:
		status.Addresses, status.Endpoints = p.Addresses, p.Endpoints
	case out.Paused == "":
		status.Addresses = slices.DeleteFunc(slices.Clone(status.Addresses), func(a v1alpha1.AssignedAddress) bool { return slices.Contains(p.Off, a.Component) })
	}
	return status
}

// InfraEnding is the status of an Infra that is being deleted; it says nothing about what is being removed.
func InfraEnding(infra *v1alpha1.Infra, waits ending.Ending, now time.Time) v1alpha1.InfraStatus {
	status := *infra.Status.DeepCopy()
	stuck := no(v1alpha1.ConditionDegraded, ending.Deleting, "the deletion is in progress")
	if waits.Stuck {
		stuck = yes(v1alpha1.ConditionDegraded, waits.Reason, waits.Message)
	}
	status.Conditions = conditions(infra.Status.Conditions, infra.Generation, now,
		yes(v1alpha1.ConditionProgressing, waits.Reason, waits.Message), stuck, no(v1alpha1.ConditionReady, ending.Deleting, "it is being deleted: "+waits.Message))
	status.ObservedGeneration = infra.Generation
	return status
}

func unlessFrozen(out Outcome, before []metav1.Condition, good verdict) verdict {
	if out.Frozen {
		return kept(before, good.Type)
	}
	return good
}

// componentVerdicts has one verdict per enabled component; a disabled one has no condition.
func componentVerdicts(infra *v1alpha1.Infra, children input.Children, out Outcome) []verdict {
	var all []verdict
	for _, c := range component.All {
		if c.Wanted(infra.Spec.InfraComponents).Enabled {
			all = append(all, handedUp(c.Ready, reportOf(c, children), out))
		}
	}
	return all
}

// behindProxy has one verdict while there is a proxy.
func behindProxy(infra *v1alpha1.Infra, proxy *v1alpha1.ProxyServer) []verdict {
	if proxy == nil || !on(infra.Spec.InfraComponents.Proxy.Enabled) {
		return nil
	}
	return []verdict{backendsOf(proxy).verdict()}
}

func on(enabled *bool) bool { return ptr.Deref(enabled, true) }

// report is what a child's status says.
type report struct {
	name       string
	settled    bool // its status describes its newest spec
	conditions []metav1.Condition
}

// reportOf a component's child; nil if there is none.
func reportOf(c component.Component, children input.Children) *report {
	server := children[c.Name]
	if server == nil {
		return nil
	}
	written := c.Written(server)
	return &report{c.Kind + " " + server.GetName(), server.GetGeneration() == written.ObservedGeneration, written.Conditions}
}

// handedUp is a child's own Ready, once that is about the newest spec.
func handedUp(kind string, r *report, out Outcome) verdict {
	switch {
	case r == nil && out.Frozen:
		return unknown(kind, "NotCreated", "nothing is created until the spec can be applied")
	case r == nil || out.Wrote:
		return no(kind, "Progressing", "the change has just been applied")
	case !r.settled:
		return no(kind, "Progressing", r.name+" has a newer spec than its status describes")
	}
	c := meta.FindStatusCondition(r.conditions, v1alpha1.ConditionReady)
	if c == nil {
		return unknown(kind, "NotReported", r.name+" has not reported yet")
	}
	if c.Reason == noBackend { // BackendsHealthy says it; the proxy itself serves
		return judged(kind, out.Findings, yes(kind, "Serving", "the pod serves the newest configuration"))
	}
	own := verdict{kind, c.Status, current(c.Reason), c.Message}
	if own.Status != metav1.ConditionTrue && finding.Worst(out.Findings, kind) == finding.Warning {
		return own // a warning makes nothing serve
	}
	return judged(kind, out.Findings, own)
}

// progressing: the spec is being carried out, or waits for something outside. A refused spec is not progressing.
func progressing(infra *v1alpha1.Infra, children input.Children, out Outcome, all []verdict) verdict {
	const kind = v1alpha1.ConditionProgressing
	if out.Paused != "" {
		return no(kind, "Paused", out.Paused)
	}
	for _, f := range out.Findings {
		if f.Severity == finding.Waiting {
			return yes(kind, f.Reason, f.Message)
		}
	}
	switch {
	case out.Frozen && len(children) == 0:
		return no(kind, "Refused", "nothing is created: first change what the other conditions name")
	case out.Frozen:
		return no(kind, "Refused", fmt.Sprintf("generation %d is not applied, and everything that runs stays as it is: first change what the other conditions name", infra.Generation))
	}
	for _, v := range all {
		if v.Status != metav1.ConditionTrue && isProgressing(v) || v.Reason == instanceStarting {
			return yes(kind, "RollingOut", v.Type+": "+v.Message)
		}
	}
	settled := judged(kind, out.Findings, no(kind, "Settled", fmt.Sprintf("generation %d is applied", infra.Generation)))
	settled.Status = metav1.ConditionFalse // a warning here says what does not progress
	return settled
}

func ready(infra *v1alpha1.Infra, out Outcome, all []verdict) verdict {
	const kind = v1alpha1.ConditionReady
	if bad, found := firstNot(all...); found {
		return judged(kind, out.Findings, no(kind, bad.Reason, bad.Type+": "+bad.Message))
	}
	if i := slices.IndexFunc(all, func(v verdict) bool { return v.Reason == v1alpha1.ReasonProbeFails }); i >= 0 {
		return judged(kind, out.Findings, yes(kind, v1alpha1.ReasonProbeFails, "the services run, but a worker that boots now cannot join; "+all[i].Type+": "+all[i].Message))
	}
	const well = "a worker that boots now can join"
	if i := slices.IndexFunc(all, verdict.isHalf); i >= 0 {
		return judged(kind, out.Findings, yes(kind, all[i].Reason, well+"; "+all[i].Type+": "+all[i].Message))
	}
	return judged(kind, out.Findings, yes(kind, "Serving", well+fragile(infra, all)))
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
