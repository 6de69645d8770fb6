package dpu

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cldmnky/oooi/internal/dpf"
)

// Row is the state of one DPU.
type Row struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Phase is DPF's, and Since when it began: when DPF last changed a condition.
	Phase string      `json:"phase"`
	Since metav1.Time `json:"since"`
	// Template is the ConfigMap that DPF takes for it, in DPFOperatorConfig's namespace; empty if none, or several match, or if that was not read.
	Template string `json:"template,omitempty"`
	// OSInstalled, Approved and NodeReady are when that happened; nil: not (yet). Approved is the last approval of a CSR of this OS that an Event
	// reports; nil also if that is an hour ago, as long as Events last.
	OSInstalled *metav1.Time `json:"osInstalled,omitempty"`
	Approved    *metav1.Time `json:"csrApproved,omitempty"`
	NodeReady   *metav1.Time `json:"nodeReady,omitempty"`
	// WaitsFor is a sentence; empty if the DPU is ready.
	WaitsFor string `json:"waitsFor,omitempty"`
	// Steps are DPF's conditions that are True and no failure, in the order in which they became so.
	Steps []Step `json:"steps"`
}

// Step is when DPF had done something.
type Step struct {
	Condition string      `json:"condition"`
	At        metav1.Time `json:"at"`
}

// Approvals are what is known about the approval of CSRs.
type Approvals struct {
	// Stopped is why the operator approves none; empty if it does.
	Stopped string
	// Of are the times of the last approval by host.
	Of map[string]time.Time
	// Explain is the command that says why a CSR is not approved.
	Explain string
}

// RowOf is the row of one DPU.
func (f Facts) RowOf(d *dpf.DPU, approvals Approvals) Row {
	r := Row{Namespace: d.Namespace, Name: d.Name, Phase: cmp.Or(d.Status.Phase, "Initializing"), Since: d.CreationTimestamp, Steps: []Step{}}
	for _, c := range d.Status.Conditions {
		if told(c.Type) {
			continue
		}
		if c.LastTransitionTime.After(r.Since.Time) {
			r.Since = c.LastTransitionTime
		}
		if c.Status == metav1.ConditionTrue && c.Type != conditionError {
			r.Steps = append(r.Steps, Step{c.Type, c.LastTransitionTime})
		}
	}
	slices.SortStableFunc(r.Steps, func(a, b Step) int { return a.At.Compare(b.At.Time) })
	r.OSInstalled, r.NodeReady = since(d, dpf.ConditionOSInstalled), since(d, dpf.ConditionClusterReady)
	if at, known := approvals.Of[d.Name]; known && r.OSInstalled != nil && !at.Before(r.OSInstalled.Time) {
		r.Approved = &metav1.Time{Time: at}
	}
	if templates := f.TemplatesOf(d); len(templates) == 1 {
		r.Template = templates[0].Name
	}
	r.WaitsFor = f.waits(d, r, approvals)
	return r
}

// waits says what a DPU waits for: the first that is missing, in the order in which a DPU needs it.
func (f Facts) waits(d *dpf.DPU, r Row, approvals Approvals) string {
	findings, failed, away := f.Of(d), failures(d), lost(d)
	switch {
	case d.DeletionTimestamp != nil:
		return "DPF deletes it"
	case failed != "":
		return "somebody has to act: " + failed
	case since(d, dpf.ConditionReady) != nil:
		return ""
	case len(findings) > 0:
		return findings[0].Message
	case r.OSInstalled == nil:
		return "DPF installs its OS" + unmet(d)
	case away != nil:
		return fmt.Sprintf("it joined, and is not Ready now: DPF reports %s: %s", away.Reason, short(away.Message))
	case r.NodeReady != nil:
		return "its Node is Ready; DPF finishes" + unmet(d)
	case approvals.Stopped != "":
		return "the operator approves no CSR: " + approvals.Stopped
	case r.Approved == nil:
		return "no Event of the last hour says that its CSR was approved: it boots, its CSR waits (" + approvals.Explain + "), or its Node does not become Ready" + unmet(d)
	}
	return "its CSR is approved; its Node becomes Ready" + unmet(d)
}

// unmet is what DPF says about the condition that it is working on.
func unmet(d *dpf.DPU) string {
	var latest metav1.Condition
	for _, c := range d.Status.Conditions {
		if c.Status == metav1.ConditionFalse && c.Type != dpf.ConditionReady && c.Type != conditionError && !told(c.Type) && !c.LastTransitionTime.Before(&latest.LastTransitionTime) {
			latest = c
		}
	}
	if latest.Type == "" {
		return ""
	}
	return fmt.Sprintf(" (%s is False: %s)", latest.Type, cmp.Or(latest.Message, latest.Reason))
}
