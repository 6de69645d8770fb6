package workload

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	accore "k8s.io/client-go/applyconfigurations/core/v1"
	acrbac "k8s.io/client-go/applyconfigurations/rbac/v1"
	"k8s.io/utils/ptr"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/plan/desired"
)

// choose decides which template the pods get. A manager upgrade alone must not restart pods: the template that was applied last is kept,
// word for word, until users or the cluster decide otherwise about the pod. Then the newest is applied
// (docs/adr/0005-released-templates.md), but only once its images are pulled and it is this Infra's turn. The plan gets what that needs.
func (w workload) choose(p *ChildPlan, template *accore.PodTemplateSpecApplyConfiguration, rules ...*acrbac.PolicyRuleApplyConfiguration) chosenTemplate {
	newest := chosenTemplate{template: template, text: string(desired.Encoded(template)), rules: rules}
	last, relied := w.last(newest)
	switch {
	case relied && w.stays(last):
		p.Find(w.waits())
		return w.sealed(last)
	case relied && (w.awaitsEnd(p) || w.now.Serves && (w.awaitsPeer(p) || w.postponed(p, last, newest)) || !w.now.Serves && w.awaitsStart(p)):
		last.annotations = w.asItWas(last)
		return last
	}
	return w.sealed(newest)
}

// last is the template that the workload has; false if that is the newest, or if no manager wrote it.
func (w workload) last(newest chosenTemplate) (chosenTemplate, bool) {
	text := w.running[names.AnnotationTemplate]
	_, sealed, _ := strings.Cut(w.running[names.AnnotationSeal], ".")
	if text == "" || text == newest.text || !strings.HasPrefix(sealed, desired.Digest(text)) && w.running[names.AnnotationServed] != desired.Digest(text) {
		return chosenTemplate{}, false
	}
	last := chosenTemplate{template: &accore.PodTemplateSpecApplyConfiguration{}, text: text, rules: w.rulesOf(newest.rules), kept: true}
	err := json.Unmarshal([]byte(text), last.template)
	return last, err == nil && string(desired.Encoded(last.template)) != newest.text
}

// stays says whether only a newer manager would change the last template. A template whose pods never served is not kept.
func (w workload) stays(last chosenTemplate) bool {
	return w.served(last.text) && slices.ContainsFunc(w.seals(last.text), func(seal string) bool { return strings.HasPrefix(w.running[names.AnnotationSeal], seal) }) &&
		(w.tuned() || !expectsTuning(last.template))
}

// served says whether a pod of the workload's template has been Ready. Managers up to b6c9098 did not record that. Their templates count as
// served, because a manager that is upgraded while a node restarts would replace the pods of all Infras.
func (w workload) served(template string) bool {
	unknown := strings.Count(w.running[names.AnnotationSeal], ".") == 1
	return w.running[names.AnnotationTemplate] == template && (w.now.Rolled || unknown || Served(w.running))
}

// Served says whether the template in a workload's annotations has served.
func Served(annotations map[string]string) bool {
	return annotations[names.AnnotationServed] != "" && annotations[names.AnnotationServed] == desired.Digest(annotations[names.AnnotationTemplate])
}

// sealed is a template with the annotations that tell the next manager about it.
func (w workload) sealed(r chosenTemplate) chosenTemplate {
	r.annotations = map[string]string{names.AnnotationTemplate: r.text, names.AnnotationSeal: w.seal(r.text) + "." + w.here(), names.AnnotationRules: string(desired.Encoded(r.rules))}
	if w.served(r.text) {
		r.annotations[names.AnnotationServed] = desired.Digest(r.text)
	} else if last := w.running[names.AnnotationServed]; last != "" {
		r.annotations[names.AnnotationServed] = last
	}
	return r
}

// asItWas leaves the seal of a kept template as it was, which shows that another template is due.
func (w workload) asItWas(last chosenTemplate) map[string]string {
	all := w.sealed(last).annotations
	maps.DeleteFunc(all, func(key, _ string) bool { return key == names.AnnotationSeal })
	if seal, is := w.running[names.AnnotationSeal]; is {
		all[names.AnnotationSeal] = seal
	}
	return all
}

// seal binds a template to what decided it. In the annotation, a digest of what its own users decided (here) follows.
func (w workload) seal(template string) string {
	return desired.Digest(w.pod) + "." + desired.Digest(template)
}

// seals are the seal and those that older managers wrote for the same template and decision.
func (w workload) seals(template string) []string {
	all := []string{w.seal(template)}
	for _, network := range w.former {
		w.Network = network
		all = append(all, w.seal(template))
	}
	return all
}

// rulesOf a kept template are those that were recorded with it, and the newest. The record is checked, because a user who may annotate the
// workload need not be allowed to grant rights.
func (w workload) rulesOf(newest []*acrbac.PolicyRuleApplyConfiguration) []*acrbac.PolicyRuleApplyConfiguration {
	var before []*acrbac.PolicyRuleApplyConfiguration
	if json.Unmarshal([]byte(w.running[names.AnnotationRules]), &before) != nil {
		return newest // an older manager wrote none, and had the same
	}
	all := slices.Clone(newest)
	for _, rule := range before {
		if w.grants(rule) {
			all = with(all, rule)
		}
	}
	return all
}

// with appends a rule that is not there yet.
func with(all []*acrbac.PolicyRuleApplyConfiguration, rule *acrbac.PolicyRuleApplyConfiguration) []*acrbac.PolicyRuleApplyConfiguration {
	if slices.ContainsFunc(all, func(has *acrbac.PolicyRuleApplyConfiguration) bool {
		return string(desired.Encoded(has)) == string(desired.Encoded(rule))
	}) {
		return all
	}
	return append(all, rule)
}

// grants says whether a daemon of ours can have had a rule: to read anything but Secrets, or write leases, its object's status or events.
func (w workload) grants(rule *acrbac.PolicyRuleApplyConfiguration) bool {
	if rule == nil || len(rule.NonResourceURLs) > 0 {
		return false
	}
	reads := !slices.ContainsFunc(rule.Verbs, func(verb string) bool { return !slices.Contains([]string{"get", "list", "watch"}, verb) })
	writable := []string{"dhcpleases", w.serves.Resource + "/status", "events"}
	return !slices.ContainsFunc(rule.Resources, func(resource string) bool {
		return resource == "secrets" || strings.Contains(resource, "*") || !reads && !slices.Contains(writable, resource)
	})
}

// expectsTuning says whether pods of a template are not Ready while their interface forwards. If the network no longer prevents that, they are
// replaced. If it begins to prevent it, no pod is replaced: the next one uses it.
func expectsTuning(template *accore.PodTemplateSpecApplyConfiguration) bool {
	return template.Spec != nil && slices.ContainsFunc(template.Spec.Containers, func(c accore.ContainerApplyConfiguration) bool {
		return slices.ContainsFunc(c.Env, func(e accore.EnvVarApplyConfiguration) bool {
			return ptr.Deref(e.Name, "") == tunedVariable && ptr.Deref(e.Value, "") == strconv.FormatBool(true)
		})
	})
}

func (w workload) waits() finding.Finding {
	return finding.Warn(v1alpha1.ConditionProgressing, "TemplateUpdatePending").
		Say("a newer pod template is applied when the pod's spec or network changes; to apply it now, run: %s", w.release())
}
