package workload

import (
	accore "k8s.io/client-go/applyconfigurations/core/v1"
	acrbac "k8s.io/client-go/applyconfigurations/rbac/v1"

	"github.com/cldmnky/oooi/internal/names"
)

// chooseEach chooses the pod template of each instance, so that one instance is updated after the other.
func chooseEach(p *ChildPlan, all []workload, newest func(workload) *accore.PodTemplateSpecApplyConfiguration, rules ...*acrbac.PolicyRuleApplyConfiguration) []chosenTemplate {
	var chosen []chosenTemplate
	moving := false
	for i, w := range all {
		w.moving = moving
		r := w.choose(p, newest(w), rules...)
		chosen = append(chosen, r)
		moving = moving || p.AwaitsImages || p.AwaitsTurn || p.AwaitsPeer || r.text != w.running[names.AnnotationTemplate]
		if p.AwaitsTurn && !w.moving {
			p.Next = i
		}
	}
	return chosen
}

// rulesOfAll are the rules that the pods of any instance need, because all share one ServiceAccount.
func rulesOfAll(chosen []chosenTemplate) (all []*acrbac.PolicyRuleApplyConfiguration) {
	for _, r := range chosen {
		for _, rule := range r.rules {
			all = with(all, rule)
		}
	}
	return all
}
