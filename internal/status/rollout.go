package status

import (
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/component"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/plan/input"
)

// handedOn are the reasons of a child's Progressing that its Infra shows too, each with the finding that it makes there.
var handedOn = map[string]func(condition, reason string) finding.Builder{
	"TemplateUpdatePending": finding.Warn,
	"PullingImages":         finding.Wait,
	"WaitingForTurn":        finding.Wait,
	"WaitingForInstance":    finding.Wait,
	"WaitingForLostPod":     finding.Wait,
	"ImagePullFailed":       finding.Fail,
	"NewPodUnschedulable":   finding.Fail,
}

// rollouts are what the children say of templates that their pods do not have yet.
func rollouts(children input.Children) []finding.Finding {
	var all []finding.Finding
	for _, part := range component.All {
		r := reportOf(part, children)
		if r == nil {
			continue
		}
		c := meta.FindStatusCondition(r.conditions, v1alpha1.ConditionProgressing)
		if c == nil {
			continue
		}
		reason := current(c.Reason) // a child's status may be older than this manager
		if begin, is := handedOn[reason]; is {
			all = append(all, begin(v1alpha1.ConditionProgressing, reason).Say("%s: %s", r.name, c.Message))
		}
	}
	return all
}
