package bridge

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/internal/finding"
)

// refusedThoughAwaited are reasons for which a bridge could wait, but which admission refuses (docs/adr/0006-admission-stops-nobody.md),
// because whoever writes the bridge is there to read it.
var refusedThoughAwaited = []string{"DPUClusterNotFound", "MappingNotFound", "ImageNotMapped"}

// toldAtOnce are warnings of what can only be chosen when a bridge is created.
var toldAtOnce = []string{"ReachedAtOneNode"}

// gates are the conditions that prevent a hosted cluster and that admission checks: not SecretsValid, because any pod may post an
// AdmissionReview, and would learn which Secrets exist. The other conditions follow once the hosted cluster exists.
var gates = []string{
	dpuv1.ConditionDPUClusterBound, dpuv1.ConditionReady,
	dpuv1.ConditionBlueFieldContainerImageAvailable, dpuv1.ConditionMetalLBConfigured,
}

// Judge says why a bridge must be refused, and what it will wait for, or its author should know before it is too late. was is the stored bridge,
// nil for a new one. What was stored before may stay, so that other fields can be corrected.
func Judge(in Input, was *dpuv1.DPUHCPBridge) (refused, awaited []finding.Finding) {
	if was == nil {
		in.Bridge = unstored(in.Bridge)
	}
	in.Rivals = slices.DeleteFunc(slices.Clone(in.Rivals), func(r Rival) bool { // to create it twice is another mistake
		return r.Namespace == in.Bridge.Namespace && r.Name == in.Bridge.Name
	})
	for _, f := range Of(in).Findings {
		bad := f.Severity == finding.Refused || slices.Contains(refusedThoughAwaited, f.Reason)
		switch {
		case was == nil && slices.Contains(toldAtOnce, f.Reason):
			awaited = append(awaited, f)
		case f.Severity == finding.Warning || !slices.Contains(gates, f.Condition):
		case bad && (was == nil || writes(was, in.Bridge, f.Field)):
			refused = append(refused, f)
		default:
			awaited = append(awaited, f)
		}
	}
	return refused, awaited
}

// unstored is a bridge that is about to be created, as planning needs it: younger than the existing ones, also those of the same second.
func unstored(b *dpuv1.DPUHCPBridge) *dpuv1.DPUHCPBridge {
	b = b.DeepCopy()
	b.UID, b.CreationTimestamp = "", metav1.Time{}
	return b
}

// writes says whether an update changes the field of a finding. The other fields are immutable, or not checked.
func writes(was, now *dpuv1.DPUHCPBridge, field string) bool {
	return field == "spec.ocpReleaseImage" && was.Spec.OCPReleaseImage != now.Spec.OCPReleaseImage
}
