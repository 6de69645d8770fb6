package change

import (
	"fmt"
	"slices"

	"github.com/cldmnky/oooi/internal/component"
	"github.com/cldmnky/oooi/internal/plan/workload"
)

// What becomes of a service.
const (
	Stays  = "stays"  // somebody always answers
	Away   = "away"   // nobody answers for a while
	Begins = "begins" // it was not there
	Ends   = "ends"
)

// Service is one component, for workers.
type Service struct {
	Component string `json:"component"`
	Effect    string `json:"effect"`
	// Seconds that it is about to be away, once its images are pulled: an estimate; the lab measures 3. 0 if it is not.
	Seconds int    `json:"seconds,omitempty"`
	Why     string `json:"why"`
}

// awaySeconds is about how long the only pod of a component is away: it ends, and the next one starts.
const awaySeconds = 10

// services says what becomes of a component's service, if its pods change.
func services(now, then rollout, pods []Pod) []Service {
	s := Service{Component: string(now.part.Name)}
	switch {
	case len(pods) == 0:
		return nil
	case now.Server == nil || !anyRuns(now):
		s.Effect, s.Why = Begins, "it had no pod"
	case then.Server == nil:
		s.Effect, s.Why = Ends, "it is switched off"
	default:
		s.Effect, s.Seconds, s.Why = lasting(now, pods)
	}
	return []Service{s}
}

func anyRuns(r rollout) bool {
	return slices.ContainsFunc(r.running, func(t string) bool { return t != "" })
}

// lasting says what becomes of a service that is there before and after.
func lasting(now rollout, pods []Pod) (effect string, seconds int, why string) {
	replaced := slices.DeleteFunc(slices.Clone(pods), func(p Pod) bool { return p.Verb != Replace })
	idle := slices.IndexFunc(now.instances(), func(i workload.Instance) bool { return i.Running != nil && !i.Now.Serves })
	switch {
	case len(replaced) == 0 && slices.ContainsFunc(pods, func(p Pod) bool { return p.Verb == Delete }):
		return Stays, 0, "its first instance goes on"
	case len(replaced) == 0:
		return Stays, 0, "an instance is added"
	case len(now.running) < 2 || !now.runs(1):
		return Away, awaySeconds, "it has one instance, whose pod ends before the next one starts"
	case idle >= 0:
		return Away, awaySeconds, fmt.Sprintf("of its two instances, the one with %s does not serve now", now.ip(idle))
	case len(replaced) == 1:
		return Stays, 0, "its other instance serves meanwhile"
	}
	return Stays, 0, "its two instances are replaced one after the other, and one waits until the other serves"
}

// captures says whether clients have addresses that only the first instance serves.
func captures(r rollout) bool {
	return r.part.Name == component.Proxy && r.Server != nil && r.part.Written(r.Server).OfFirst
}
