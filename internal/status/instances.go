package status

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cldmnky/oooi/api/v1alpha1"
)

// Reasons of a child with two instances, which is Ready while one of them serves.
const (
	// instanceDown: one does not serve, though it did, or has had its time to.
	instanceDown = "InstanceDown"
	// instanceStarting: one does not yet.
	instanceStarting = "InstanceStarting"
	// instancesShareNode: both serve, on one node.
	instancesShareNode = "InstancesShareNode"
)

// together is Ready of a child: clients that are given both addresses are served by either instance.
func (c child) together(accepted verdict, now time.Time) verdict {
	const kind = v1alpha1.ConditionReady
	var serve, down []int
	var each []verdict
	for i := range c.rollouts {
		v := c.ready(accepted, i)
		each = append(each, v)
		if v.Status == metav1.ConditionTrue {
			serve = append(serve, i)
		} else {
			down = append(down, i)
		}
	}
	all := each[0]
	switch {
	case len(serve) == 0:
		all = worst(each)
	case len(down) > 0:
		i, reason := down[0], instanceDown
		if each[i].Reason == "Progressing" || each[i].Reason == podNotReady && c.young(i, now) {
			reason = instanceStarting
		}
		all = yes(kind, reason, fmt.Sprintf("%s serves; %s does not: %s", c.ips[serve[0]], c.ips[i], each[i].Message))
	case len(each) > 1 && c.rollouts[0].Node != "" && c.rollouts[0].Node == c.rollouts[1].Node:
		all = yes(kind, instancesShareNode, fmt.Sprintf("both instances serve, on node %s: its failure stops both; add a node with the VLAN, then delete one of the pods", c.rollouts[0].Node))
	}
	return judged(kind, c.out.Findings, all)
}

// worst of verdicts that are all False says what does not pass by itself.
func worst(all []verdict) verdict {
	if i := slices.IndexFunc(all, func(v verdict) bool { return v.Reason != "Progressing" }); i >= 0 {
		return all[i]
	}
	return all[0]
}

// young says whether the pod that does not serve was made too recently to be missed.
func (c child) young(number int, now time.Time) bool {
	p := c.rollouts[number].Pod
	return p != nil && now.Sub(p.CreationTimestamp.Time) < untilDegraded
}
