package observe

import (
	"strconv"
	"time"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"

	"github.com/cldmnky/oooi/internal/names"
)

// Pause says why our writes are stopped, and until when. The zero value is no pause.
type Pause struct {
	Reason string
	Until  time.Time // zero: until somebody ends it
}

// Active says whether writes are stopped.
func (p Pause) Active() bool { return p.Reason != "" }

// pause reads our annotation, and HyperShift's own pause: `true`, or the time at which it ends (HostedCluster.spec.pausedUntil). As in
// HyperShift, any other value pauses nothing.
func (o *Observer) pause(annotations map[string]string, hc *hyperv1.HostedCluster) Pause {
	if value, set := annotations[names.AnnotationPaused]; set && value != "false" {
		return Pause{Reason: "annotation " + names.AnnotationPaused + " is set; remove it to go on"}
	}
	if hc == nil || hc.Spec.PausedUntil == nil {
		return Pause{}
	}
	reason := "HostedCluster " + hc.Namespace + "/" + hc.Name + " is paused (spec.pausedUntil: " + *hc.Spec.PausedUntil + ")"
	if until, err := time.Parse(time.RFC3339, *hc.Spec.PausedUntil); err == nil && until.After(o.Now()) {
		return Pause{Reason: reason, Until: until}
	}
	if paused, err := strconv.ParseBool(*hc.Spec.PausedUntil); err == nil && paused {
		return Pause{Reason: reason}
	}
	return Pause{}
}
