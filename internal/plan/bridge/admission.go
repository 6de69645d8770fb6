package bridge

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/internal/finding"
)

// refusedThoughAwaited could be waited for, and admission refuses it (docs/adr/0006-admission-stops-nobody.md): who writes a
// bridge is there to hear of it.
var refusedThoughAwaited = []string{"DPUClusterNotFound", "MappingNotFound", "ImageNotMapped"}

// gates are the conditions that hold a hosted cluster back, and that admission judges: not SecretsValid, since any pod may post an
// AdmissionReview, and would hear which Secrets there are. The others come about by themselves, once the hosted cluster is there.
var gates = []string{
	dpuv1.ConditionDPUClusterBound, dpuv1.ConditionReady,
	dpuv1.ConditionBlueFieldContainerImageAvailable, dpuv1.ConditionMetalLBConfigured,
}

// Judge says why a bridge must be refused, and what it will wait for. was is the stored bridge, nil for a new one. What was stored
// before may stay, so that other fields can be corrected.
func Judge(in Input, was *dpuv1.DPUHCPBridge) (refused, awaited []finding.Finding) {
	if was == nil {
		in.Bridge = unstored(in.Bridge)
	}
	in.Rivals = slices.DeleteFunc(slices.Clone(in.Rivals), func(r Rival) bool { // to make it twice is another mistake
		return r.Namespace == in.Bridge.Namespace && r.Name == in.Bridge.Name
	})
	for _, f := range Of(in).Findings {
		bad := f.Severity == finding.Refused || slices.Contains(refusedThoughAwaited, f.Reason)
		switch {
		case f.Severity == finding.Warning || !slices.Contains(gates, f.Condition):
		case bad && (was == nil || writes(was, in.Bridge, f.Field)):
			refused = append(refused, f)
		default:
			awaited = append(awaited, f)
		}
	}
	return refused, awaited
}

// unstored is a bridge that is about to be made, as planning has it: younger than those that are there, of the same second too.
func unstored(b *dpuv1.DPUHCPBridge) *dpuv1.DPUHCPBridge {
	b = b.DeepCopy()
	b.UID, b.CreationTimestamp = "", metav1.Time{}
	return b
}

// writes says whether a change writes the field that findings are about. The others are set once, or not judged.
func writes(was, now *dpuv1.DPUHCPBridge, field string) bool {
	return field == "spec.ocpReleaseImage" && was.Spec.OCPReleaseImage != now.Spec.OCPReleaseImage
}
