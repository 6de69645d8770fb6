package diagnose

import (
	"time"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/step"
)

// Path is how far one worker came.
type Path struct {
	Worker string
	// Address that it has leased; empty if it has none.
	Address string
	// Started is when it began to boot; zero if that is not known.
	Started time.Time
	// Seen are the stages that daemons saw of it.
	Seen map[v1alpha1.StageName]v1alpha1.Stage
	// Steps are those of Worker, up to where it stands.
	Steps []step.Step
}

// Stages are the names of the steps of a Path that came to its end, in order.
func Stages() (all []string) {
	for _, s := range stages {
		all = append(all, s.name)
	}
	return all
}

// Services are the steps that are the same for all workers.
func Services(f Facts) (all []step.Step) {
	for _, s := range stages {
		if look, is := services[s.name]; is {
			all = append(all, named(look(f), s.name, "Infra "+f.Infra.Namespace+"/"+f.Infra.Name))
		}
	}
	return all
}

// Paths are the walks of all workers, by name.
func Paths(f Facts) (all []Path) {
	for _, w := range joining(f) {
		p := Path{Worker: w.name, Started: w.started(), Steps: w.walk(f)}
		if hasLease(w, f) {
			p.Address, p.Seen = string(w.lease.Spec.IP), w.lease.Stages()
		}
		all = append(all, p)
	}
	return all
}

// Waits says whether a worker that stands at this step may still go on by itself.
func Waits(s step.Step) bool { return s.Outcome == step.Warn && s.See == Page+booting }
