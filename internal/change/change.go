// Package change says what a change does before it is made: which objects the operator writes, which pods it replaces, and what workers
// notice. It compares what is planned from the objects as they are with what is planned from them as they would be.
package change

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/component"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/plan"
	"github.com/cldmnky/oooi/internal/plan/workload"
)

// Picture is an Infra and what is planned from it.
type Picture struct {
	// Infra is nil if it does not exist.
	Infra *v1alpha1.Infra
	// Paused is why nothing is written; empty if something may be.
	Paused string
	Plan   plan.InfraPlan
	// Children are those that exist or, after the change, that are planned.
	Children map[component.Name]workload.Child[component.Server]
}

// stopped says whether what is planned is not written.
func (p Picture) stopped() bool { return p.Paused != "" || p.Plan.Frozen }

// wants says whether the plan has a component.
func (p Picture) wants(part component.Component) bool {
	return slices.ContainsFunc(p.Plan.Objects, func(o runtime.ApplyConfiguration) bool {
		of, is := component.Applied(o)
		return is && of.Name == part.Name
	})
}

// Change of one Infra.
type Change struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Stopped is why nothing is written: the Infra is paused, or refused.
	Stopped string `json:"stopped,omitempty"`
	// Objects that are written.
	Objects []Object `json:"objects,omitempty"`
	// Pods that are made, replaced or ended, in this order.
	Pods []Pod `json:"pods,omitempty"`
	// AwaitsTurn: the pods of one Infra are replaced at a time, so another's may come first.
	AwaitsTurn bool `json:"awaitsTurn,omitempty"`
	// Services that begin or end, or whose pods are replaced.
	Services []Service `json:"services,omitempty"`
	// Clients says what workers and other clients notice.
	Clients []Notice `json:"clients,omitempty"`
	// Findings that the Infra does not have yet.
	Findings []Finding `json:"findings,omitempty"`
}

// Finding is what the Infra's conditions, or those of its children, will say.
type Finding struct {
	Code string `json:"code"`
	// Severity as an admin reads it: refused, waiting or warning.
	Severity string `json:"severity"`
	Field    string `json:"field,omitempty"`
	Reason   string `json:"reason"`
}

// None says that nothing changes.
func (c Change) None() bool {
	return len(c.Objects)+len(c.Pods)+len(c.Services)+len(c.Clients)+len(c.Findings) == 0
}

// Between is the change that leads from one picture of an Infra to another.
func Between(before, after Picture) Change {
	c := Change{Namespace: after.Infra.Namespace, Name: after.Infra.Name, Objects: Written("Infra", orNone(before.Infra), after.Infra)}
	c.Findings = fresh(before.Plan.Findings, after.Plan.Findings)
	switch {
	case after.Paused != "":
		c.Stopped, c.Findings = after.Paused, nil
		return c
	case after.Plan.Frozen:
		c.Stopped = "the Infra is refused; what runs stays as it is, but for what is switched off"
	default:
		c.Objects = append(c.Objects, objects(besideChildren(before, after), others(after.Plan.Objects))...)
	}
	for _, part := range component.All {
		was := memberOf(part, before)
		if !before.stopped() && !before.wants(part) {
			was.Server = nil // it is on its way out
		}
		if !after.Plan.Frozen || slices.Contains(after.Plan.Off, string(part.Name)) {
			c.add(was, memberOf(part, after), before.stopped())
		}
	}
	return c
}

func orNone(infra *v1alpha1.Infra) component.Server {
	if infra == nil {
		return nil
	}
	return infra
}

// add says what becomes of one component. If writes were stopped before, what runs is compared, and not what would have been written.
func (c *Change) add(was, is member, stopped bool) {
	if was.Server == nil && is.Server == nil {
		return
	}
	now, then := was.played(), is.played()
	if stopped && now.Server != nil && then.Server != nil {
		now = now.asItRuns(then)
	}
	pods := replaced(now, then)
	c.AwaitsTurn = c.AwaitsTurn || then.turn && slices.ContainsFunc(pods, func(p Pod) bool { return p.Verb == Replace })
	c.Objects = slices.Concat(c.Objects, Written(was.part.Kind, was.Server, is.Server), objects(now.objects, then.objects))
	c.Pods = append(c.Pods, pods...)
	c.Services = append(c.Services, services(now, then, pods)...)
	c.Clients = append(c.Clients, clients(now, then, pods)...)
	c.Findings = append(c.Findings, fresh(now.findings, then.findings)...)
}

// besideChildren are the objects, except children, that the cluster has of an Infra. Nobody knows them where they were not written as they
// are planned: they then count as those that will be.
func besideChildren(before, after Picture) []runtime.ApplyConfiguration {
	if len(before.Children) > 0 && before.stopped() {
		return others(after.Plan.Objects)
	}
	return others(before.Plan.Objects)
}

func others(all []runtime.ApplyConfiguration) []runtime.ApplyConfiguration {
	return slices.DeleteFunc(slices.Clone(all), func(o runtime.ApplyConfiguration) bool {
		_, child := component.Applied(o)
		return child
	})
}

// fresh are the findings that are not among those of before.
func fresh(before, after []finding.Finding) (all []Finding) {
	for _, f := range after {
		if !slices.ContainsFunc(before, func(b finding.Finding) bool {
			return b.Condition == f.Condition && b.Reason == f.Reason && b.Message == f.Message
		}) {
			all = append(all, Finding{Code: f.Reason, Severity: f.Severity.Told(), Field: f.Field, Reason: f.Message})
		}
	}
	return slices.Compact(all) // each instance of a component may have it
}
