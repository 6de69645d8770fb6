// Package diagnose says how far a worker came on its way from power-on to a Node that answers, and what stops it there: pure, from facts
// that were read before. `oooi diagnose` prints what it says, in the look of internal/step.
//
// The stages are in the order of a worker's boot. The first that fails ends the walk, for all that follows from it would say nothing new. A
// stage that cannot be read is told, and the walk goes on. What is broken now, but did not stop this worker, is a warning.
package diagnose

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/step"
)

// Page explains each cause, under its anchor.
const Page = "docs/DIAGNOSE.md#"

// rights is the anchor of what a caller needs.
const rights = "your-rights"

// stage is one thing that must happen, or be there, before a worker can go on.
type stage struct {
	name string
	look func(worker, Facts) step.Step
	// past says that the worker got beyond it, and does not need it at present; or that this is not known.
	past func(worker, Facts) bool
}

var stages = []stage{
	{"machine", machine, never}, {"card", card, hasLease}, {"dhcp", anyWorker(dhcpServes), hasLease}, {"lease", leased, isReady}, {"hostname", hostname, perhaps(hasNode)},
	{"names", noting(anyWorker(namesServed), v1alpha1.StageNameAsked), perhaps(isReady)}, {"proxy", noting(anyWorker(proxyServes), v1alpha1.StageUnmatchedHello), perhaps(isReady)}, {"backends", noting(anyWorker(backendsAnswer), v1alpha1.StageAPIHello, v1alpha1.StageKonnectivityHello), isServed}, {"ignition", noting(ignition, v1alpha1.StageIgnitionHello), perhaps(hasAsked)},
	{"certificate", certificate, hasNode}, {"node", node, never}, {"tunnel", tunnel, never},
}

// Worker walks the boot path of one worker, by the name of its machine or its host name. It says false if there is none of that name.
func Worker(f Facts, name string) ([]step.Step, bool) {
	all := workers(f)
	i := slices.IndexFunc(all, func(w worker) bool { return w.name == name })
	if i < 0 {
		return nil, false
	}
	return f.asked(all[i].walk(f), all[i]), true
}

// Infra looks at what all workers need, and walks each worker's path. A worker that came to the end has one line, also if what all need broke
// after it.
func Infra(f Facts) (all []step.Step) {
	all = f.asked(Services(f), workers(f)...)
	if f.Machines.Unread != "" {
		all = append(all, named(unread("virtual machines", f.Machines.Unread), "machine", "Workers"))
	}
	for _, w := range joining(f) {
		steps := w.walk(f)
		if last := steps[len(steps)-1]; len(steps) == len(stages) && step.Worst(notTold(steps)) == step.OK {
			last.Outcome, last.Says = step.OK, w.name+" has joined: "+last.Says
			steps = []step.Step{last}
		}
		all = append(all, steps...)
	}
	return all
}

// notTold are the steps of a walk that are not told of the whole Infra before.
func notTold(steps []step.Step) []step.Step {
	return slices.DeleteFunc(slices.Clone(steps), func(s step.Step) bool { _, is := services[s.Name]; return is })
}

// joining are the workers without what is only on the VLAN: a lease alone makes no worker.
func joining(f Facts) []worker {
	return slices.DeleteFunc(workers(f), func(w worker) bool { return w.machine == nil && f.Hosted.Unread == "" && !hasAsked(w, f) })
}

func (w worker) walk(f Facts) (all []step.Step) {
	for _, s := range stages {
		is := named(s.look(w, f), s.name, "Worker "+w.name)
		is.Of = w.of
		stops := is.Outcome == step.Fail || Waits(is)
		if stops && s.past(w, f) {
			stops, is.Outcome = false, step.Warn
		}
		if all = append(all, is); stops {
			return all
		}
	}
	return all
}

// worker is a machine, or a client with a lease that is none of KubeVirt's.
type worker struct {
	name, of string
	machine  *Machine
	lease    *v1alpha1.DHCPLease
}

// workers are sorted by name.
func workers(f Facts) (all []worker) {
	taken := map[string]bool{}
	for i := range f.Machines.Is {
		m := &f.Machines.Is[i]
		if f.ofAnother(m) {
			continue
		}
		w := worker{name: m.Name, of: "VirtualMachine " + m.Name, machine: m}
		for j := range f.Leases.Is {
			if l := &f.Leases.Is[j]; m.has(string(l.Spec.MAC)) {
				taken[l.Name] = true
				if w.lease == nil || newer(l, w.lease) {
					w.lease = l
				}
			}
		}
		all = append(all, w)
	}
	for i := range f.Leases.Is {
		if l := &f.Leases.Is[i]; !taken[l.Name] && (l.Spec.VMRef == nil || f.Machines.Unread != "") && l.Spec.State == v1alpha1.LeaseBound {
			all = append(all, worker{name: cmp.Or(l.Spec.Hostname, string(l.Spec.MAC), l.Spec.ClientID), of: "DHCPLease " + l.Namespace + "/" + l.Name, lease: l})
		}
	}
	slices.SortFunc(all, func(a, b worker) int { return cmp.Compare(a.name, b.name) })
	return all
}

// newer prefers a lease that is bound, then the one that is promised for longer.
func newer(a, b *v1alpha1.DHCPLease) bool {
	if bound := a.Spec.State == v1alpha1.LeaseBound; bound != (b.Spec.State == v1alpha1.LeaseBound) {
		return bound
	}
	return a.Spec.DurableUntilTime.After(b.Spec.DurableUntilTime.Time)
}

func (m *Machine) has(mac string) bool {
	return mac != "" && slices.ContainsFunc(m.Cards, func(c Card) bool { return strings.EqualFold(c.MAC, mac) })
}

// started is when the worker's clock began; zero if that is not known.
func (w worker) started() time.Time {
	if w.machine == nil {
		return w.lease.CreationTimestamp.Time
	}
	return w.machine.Started
}

// runs is for how long it has been running.
func (w worker) runs(f Facts) time.Duration { return f.Now.Sub(w.started()).Round(time.Second) }

// after tells a time, and how long after the start of the worker it was.
func (w worker) after(at time.Time) string {
	text := "at " + at.UTC().Format(time.RFC3339)
	if start := w.started(); w.machine != nil && !start.IsZero() && !at.Before(start) {
		text += fmt.Sprintf(" (+%s)", at.Sub(start).Round(time.Second))
	}
	return text
}

func never(worker, Facts) bool        { return false }
func hasLease(w worker, f Facts) bool { return w.lease != nil && bound(w.lease, f.Now) }
func hasNode(w worker, f Facts) bool  { _, is := f.Hosted.Is.Nodes[w.name]; return is }
func isReady(w worker, f Facts) bool  { return f.Hosted.Is.Nodes[w.name].Ready.Status == "True" }
func hasAsked(w worker, f Facts) bool { return hasNode(w, f) || len(w.requests(f)) > 0 }

// perhaps is also true while the hosted cluster is not read: only that tells how far a worker came.
func perhaps(past func(worker, Facts) bool) func(worker, Facts) bool {
	return func(w worker, f Facts) bool { return f.Hosted.Unread != "" || past(w, f) }
}

// isServed is perhaps(isReady), unless the hosted cluster is not read because its API is down, which stops every worker.
func isServed(w worker, f Facts) bool {
	return isReady(w, f) || f.Hosted.Unread != "" && f.FaultOf("api") == nil && (f.Proxy.Is == nil || !slices.ContainsFunc(f.Proxy.Is.Status.Backends, func(b v1alpha1.BackendStatus) bool { return b.Name == "api" && b.Healthy == 0 }))
}

func named(s step.Step, name, section string) step.Step {
	s.Name, s.Section = name, section
	return s
}

func ok(says string, args ...any) step.Step {
	return step.Step{Outcome: step.OK, Says: fmt.Sprintf(says, args...)}
}

func skip(says string, args ...any) step.Step {
	return step.Step{Outcome: step.Skip, Says: fmt.Sprintf(says, args...)}
}

// fail names a cause, which is an anchor of Page, and what mends it.
func fail(cause, do, says string, args ...any) step.Step {
	return step.Step{Outcome: step.Fail, Says: fmt.Sprintf(says, args...), Do: do, See: Page + cause}
}

// waits is where a worker stands that may still go on by itself.
func waits(says string, args ...any) step.Step {
	return step.Step{Outcome: step.Warn, Says: fmt.Sprintf(says, args...), Do: "wait, and run this again", See: Page + booting}
}

func unread(what, why string) step.Step {
	do := step.ToRead(why, "have an administrator grant you that right, or run this as somebody who has it")
	return step.Step{Outcome: step.Unread, Says: what + " not read: " + why, Do: do, See: Page + rights}
}
