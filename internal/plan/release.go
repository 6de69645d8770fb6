package plan

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/labels"
	accore "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/names"
)

// released is the template that a workload's pods have, and what tells the next manager so.
type released struct {
	template    *accore.PodTemplateSpecApplyConfiguration
	annotations map[string]string
}

// release lets a new manager alone restart no pod (issue 3): the template that was released last stays, word for word,
// until users or the cluster decide something else of the pod; then the newest goes (docs/adr/0005-released-templates.md).
func (w workload) release(newest *accore.PodTemplateSpecApplyConfiguration) (released, []finding.Finding) {
	template, text := newest, string(encoded(newest))
	var waits []finding.Finding
	if last, stays := w.lastReleased(text); stays {
		template, text, waits = last, w.running[names.AnnotationTemplate], w.waits()
	}
	return released{template, map[string]string{names.AnnotationTemplate: text, names.AnnotationReleased: w.seal(text)}}, waits
}

// lastReleased is the template that stays against the newest: none when that is the same, when other inputs decided it, or
// when it was edited.
func (w workload) lastReleased(newest string) (*accore.PodTemplateSpecApplyConfiguration, bool) {
	text := w.running[names.AnnotationTemplate]
	if text == newest || w.running[names.AnnotationReleased] != w.seal(text) {
		return nil, false
	}
	last := &accore.PodTemplateSpecApplyConfiguration{}
	err := json.Unmarshal([]byte(text), last)
	return last, err == nil && string(encoded(last)) != newest
}

// seal binds a template to what decided it.
func (w workload) seal(template string) string { return digest(w.pod) + "." + digest(template) }

func (w workload) waits() []finding.Finding {
	return []finding.Finding{finding.Note(v1alpha1.ConditionProgressing, "NewerTemplateWaits").
		Say("the pod stays as an older manager made it until its spec or its network changes, or until you say: kubectl -n %s annotate statefulset,deployment -l %s %s-",
			w.namespace(), labels.FormatLabels(w.selector()), names.AnnotationReleased)}
}
