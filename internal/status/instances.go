package status

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/component"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/observe"
)

// Reasons of a child with two instances, which is Ready while one of them serves.
const (
	// instanceDown: one does not serve, though it did, or has had its time to.
	instanceDown = "InstanceDown"
	// instanceStarting: one does not yet.
	instanceStarting = "InstanceStarting"
	// instancesShareNode: both serve, on one node.
	instancesShareNode = "InstancesShareNode"
	// instancesApart: both serve, and not on one network.
	instancesApart = "InstancesApart"
)

// ofOneNode are the reasons of a component that serves, but on one node only, though two instances are wanted. The alert
// OooiNodeFailureStopsService has them, too.
var ofOneNode = []string{instancesShareNode, "OneInstanceServes", "SecondInstanceWaits"}

// isHalf says that a component is Ready though some of its clients have one instance only, or may have none.
func (v verdict) isHalf() bool {
	return v.Status == metav1.ConditionTrue && (v.Reason == instanceDown || v.Reason == instancesApart)
}

// together is Ready of a child: clients that are given both addresses are served by either instance.
func (c child) together(each []verdict, now time.Time) verdict {
	const kind = v1alpha1.ConditionReady
	var serve, down []int
	for i, v := range each {
		if v.Status == metav1.ConditionTrue {
			serve = append(serve, i)
		} else {
			down = append(down, i)
		}
	}
	all, apart := each[0], c.apart()
	switch {
	case len(serve) == 0:
		all = worst(each)
	case len(down) > 0 && down[0] == 0 && c.ofFirst:
		all = each[0]
	case len(down) > 0:
		i, reason := down[0], instanceDown
		if c.starts(each[i], i, now) {
			reason = instanceStarting
		}
		all = yes(kind, reason, fmt.Sprintf("%s serves; %s does not: %s", c.ips[serve[0]], c.ips[i], each[i].Message))
	case len(each) < len(c.rollouts):
		postponed := judged(v1alpha1.InstanceCondition(kind, len(each)), c.out.Findings, verdict{})
		all = yes(kind, postponed.Reason, postponed.Message)
	case apart != "":
		all = yes(kind, instancesApart, "both instances serve, but not on one network: "+apart+
			"; connect these nodes to the VLAN, or let nodeSelector choose nodes that have it")
	case len(each) > 1 && c.rollouts[0].Node != "" && c.rollouts[0].Node == c.rollouts[1].Node:
		all = yes(kind, instancesShareNode, fmt.Sprintf("both instances serve, on node %s: its failure stops both; add a node with the VLAN, then delete one of the pods", c.rollouts[0].Node))
	case len(c.rollouts) == 1:
		all.Message += "; it is the only instance: its node's failure stops " + c.stops + " until the pod runs on another node"
	}
	return judged(kind, c.out.Findings, all)
}

// fragile is what the failure of one node stops of an Infra that is Ready, and which condition says why.
func fragile(infra *v1alpha1.Infra, components []verdict) string {
	var all []string
	for _, c := range component.All {
		onOneNode := slices.ContainsFunc(components, func(v verdict) bool {
			return v.Type == c.Ready && (slices.Contains(ofOneNode, v.Reason) || !c.Wanted(infra.Spec.InfraComponents).Second)
		})
		if onOneNode {
			all = append(all, fmt.Sprintf("%s (see %s)", c.Stops, c.Ready))
		}
	}
	if len(all) == 0 {
		return ""
	}
	return "; the failure of one node stops " + strings.Join(all, ", ")
}

// apart is which proxies each of two DNS instances finds on the VLAN, if none is found by both: where the VLAN is missing on a node, the
// bridge of its NetworkAttachmentDefinition may be made there, and lead nowhere. A single proxy that is made anew one of them finds first.
func (c child) apart() string {
	var found, clauses []string
	for i, ip := range c.ips[:len(c.rollouts)] {
		health := v1alpha1.InstanceAt(c.instances, ip).Health
		if len(health) < 2 {
			return ""
		}
		var finds []string
		for _, h := range health {
			if h.Hears() {
				finds = append(finds, string(h.IP))
			}
		}
		if slices.ContainsFunc(finds, func(ip string) bool { return slices.Contains(found, ip) }) {
			return ""
		}
		found = append(found, finds...)
		clauses = append(clauses, fmt.Sprintf("%s, on node %s, finds %s", ip, c.rollouts[i].Node, orNo(finds)))
	}
	if len(found) == 0 || len(clauses) < 2 {
		return ""
	}
	return strings.Join(clauses, "; ")
}

func orNo(proxies []string) string {
	if len(proxies) == 0 {
		return "no proxy"
	}
	return "the proxy " + strings.Join(proxies, " and ")
}

// isPostponed says whether an instance is not to start yet.
func (c child) isPostponed(number int) bool {
	return number > 0 && finding.Worst(c.out.Findings, v1alpha1.InstanceCondition(v1alpha1.ConditionReady, number)) == finding.Waiting
}

// worst of verdicts that are all False says what does not pass by itself.
func worst(all []verdict) verdict {
	if i := slices.IndexFunc(all, func(v verdict) bool { return !isProgressing(v) }); i >= 0 {
		return all[i]
	}
	return all[0]
}

// starts says whether an instance that does not serve is not to be missed yet. Where it has no pod, Progressing says since when.
func (c child) starts(v verdict, number int, now time.Time) bool {
	r := c.rollouts[number]
	switch {
	case v.Reason == podNotReady:
		return r.Pod != nil && !overdue(r.Pod, now)
	case !isProgressing(v):
		return false
	case r.Exists && !r.Current: // or ready would say why
		return true
	}
	was := meta.FindStatusCondition(c.before, v1alpha1.ConditionProgressing)
	return was == nil || was.Status != metav1.ConditionTrue || now.Sub(was.LastTransitionTime.Time) < untilDegraded
}

func isProgressing(v verdict) bool { return v.Reason == "Progressing" }

// overdue says whether a pod that does not serve has had its time to. One that is being replaced is not the one to wait for.
func overdue(p *observe.Pod, now time.Time) bool {
	return p != nil && p.DeletionTimestamp == nil && now.Sub(p.CreationTimestamp.Time) >= untilDegraded
}

// StartEnds is how long from now an instance that starts counts as down if nothing changes; zero if none will, or its pod is looked at
// again in any case.
func StartEnds(said component.Report, now time.Time) time.Duration {
	ready, progressing := meta.FindStatusCondition(said.Conditions, v1alpha1.ConditionReady), meta.FindStatusCondition(said.Conditions, v1alpha1.ConditionProgressing)
	if ready == nil || progressing == nil || ready.Reason != instanceStarting {
		return 0
	}
	return max(0, untilDegraded-now.Sub(progressing.LastTransitionTime.Time))
}
