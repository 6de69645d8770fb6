package workload

import (
	"slices"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/finding"
)

// awaitsPeer: while another instance does not serve its own template, this one is the only one that is known to answer.
func (w workload) awaitsPeer(p *ChildPlan) bool {
	busy := slices.ContainsFunc(w.peers, func(i Instance) bool { return i.Running != nil && !i.Now.Rolled })
	if w.moving || busy {
		p.AwaitsPeer = true
		p.Find(finding.Wait(v1alpha1.ConditionProgressing, "WaitingForInstance").
			Say("the new pod with %s waits until the other instance serves: one of them is replaced at a time", w.Addresses[0].Addr()))
	}
	return w.moving || busy
}
