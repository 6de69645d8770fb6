package stages

import (
	"slices"
	"time"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/boot"
)

// counted are the times that a worker took since its lease, for what was seen of it that its lease does not say yet. A worker that joined before
// stages were written connects to konnectivity, too: it counts only after Ignition.
func counted(l *v1alpha1.DHCPLease, saw []v1alpha1.Stage) map[string]time.Duration {
	times := map[string]time.Duration{}
	if l.Spec.LastTransitionTime == nil {
		return times
	}
	was := told(l)
	came := func(name v1alpha1.StageName, far uint8) (v1alpha1.Stage, bool) {
		i := slices.IndexFunc(saw, func(s v1alpha1.Stage) bool { return s.Name == name && rank(s) >= far })
		if i < 0 || was[nth(name)] >= far {
			return v1alpha1.Stage{}, false
		}
		return saw[i], true
	}
	ignition, fetched := came(v1alpha1.StageIgnitionHello, receivedMuch)
	if fetched {
		times[boot.LeaseToIgnition] = ignition.FirstTime.Sub(l.Spec.LastTransitionTime.Time)
	}
	if s, joined := came(v1alpha1.StageKonnectivityHello, forwarded); joined && (fetched || was[nth(v1alpha1.StageIgnitionHello)] == receivedMuch) {
		times[boot.LeaseToKonnectivity] = s.FirstTime.Sub(l.Spec.LastTransitionTime.Time)
	}
	return times
}
