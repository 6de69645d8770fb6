package workload

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/names"
)

// LongestStart is how long an instance that does not serve waits until another one's new pod does.
const LongestStart = 2 * time.Minute

// awaitsPeer: while another instance does not serve its current template, only this one is known to answer. One that never served, and does
// not start, is not waited for: a quota may refuse its pod for ever.
func (w workload) awaitsPeer(p *ChildPlan) bool {
	busy := slices.ContainsFunc(w.peers, func(i Instance) bool {
		return i.Running != nil && !i.Now.Rolled && (i.Running[names.AnnotationServed] != "" || i.Now.Starts)
	})
	if w.moving || busy {
		w.waitsForPeer(p)
	}
	return w.moving || busy
}

// awaitsStart: while another instance starts and none serves, this one's pod may serve again sooner than a new pod would.
func (w workload) awaitsStart(p *ChildPlan) bool {
	serves := slices.ContainsFunc(w.peers, func(i Instance) bool { return i.Now.Serves })
	starts := slices.ContainsFunc(w.peers, func(i Instance) bool { return i.Now.Starts })
	if starts && !serves {
		w.waitsForPeer(p)
	}
	return starts && !serves
}

func (w workload) waitsForPeer(p *ChildPlan) {
	p.AwaitsPeer = true
	if slices.ContainsFunc(p.Findings, func(f finding.Finding) bool { return f.Condition == v1alpha1.ConditionProgressing }) {
		return // it says what the other instance itself waits for
	}
	p.Find(finding.Wait(v1alpha1.ConditionProgressing, "WaitingForInstance").
		Say("the new pod with %s waits until the other instance serves: one of them is replaced at a time; if that one stays down, correct what Ready says of it, or have one instance only (an Infra's %s.replicas: 1)", w.Addresses[0].Addr(), w.App))
}

// awaitsFirst says whether a second DHCP instance is not started yet: the first reports and, perhaps because it is of an older release, not that
// it knows of the second, which would serve nobody until it does (dhcp-rules.md#lease-14).
func awaitsFirst(in Child[*v1alpha1.DHCPServer], second workload) bool {
	if second.Instance == 0 || second.running != nil || in.Running == nil {
		return false
	}
	self, status := v1alpha1.IPAddress(second.Addresses[0].Addr().String()), in.Server.Status
	knows := slices.Contains(status.ServesWith(v1alpha1.IPAddress(in.Server.Spec.NetworkConfig.ServerIP)), self)
	return !knows && meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionConfigAccepted) != nil
}

func (w workload) waitsForFirst() finding.Finding {
	return finding.Wait(v1alpha1.InstanceCondition(v1alpha1.ConditionReady, w.Instance), "SecondInstanceWaits").
		Say("one DHCP instance serves: a node's failure stops DHCP; the second starts once the first reports that it knows of it; if the first one's pod is of an older release, update it: %s", w.release())
}
