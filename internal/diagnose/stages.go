package diagnose

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/step"
)

var withWhom = map[v1alpha1.StageName]string{
	v1alpha1.StageIgnitionHello: "Ignition", v1alpha1.StageAPIHello: "the API", v1alpha1.StageKonnectivityHello: "konnectivity",
}

// noting adds to what works what the worker did there.
func noting(look func(worker, Facts) step.Step, stages ...v1alpha1.StageName) func(worker, Facts) step.Step {
	return func(w worker, f Facts) step.Step {
		s := look(w, f)
		if s.Outcome == step.OK {
			s.Says += w.did(stages...)
		}
		return s
	}
}

// did tells what the daemons and the operator saw of a worker since its start; empty if they saw nothing, or write no stages yet.
func (w worker) did(stages ...v1alpha1.StageName) string {
	if w.lease == nil {
		return ""
	}
	var all []string
	for _, name := range stages {
		if s, saw := w.lease.Stages()[name]; saw && !s.FirstTime.Time.Before(w.started()) {
			all = append(all, w.tells(s))
		}
	}
	if len(all) == 0 {
		return ""
	}
	return "; it " + strings.Join(all, ", ")
}

func (w worker) tells(s v1alpha1.Stage) string {
	whom, at := withWhom[s.Name], w.after(s.FirstTime.Time)
	switch {
	case s.Name == v1alpha1.StageNameAsked:
		return fmt.Sprintf("asked for %s %s", cmp.Or(s.ServerName, "a name"), at)
	case s.Name == v1alpha1.StageUnmatchedHello:
		return fmt.Sprintf("sent the proxy %s %s, for which it has no backend", cmp.Or(s.ServerName, "no server name"), at)
	case s.Name == v1alpha1.StageNodeReady:
		return "became a Ready Node " + at
	case s.Result == v1alpha1.StageNoTarget:
		return fmt.Sprintf("tried %s %s, and no target accepted the connection", whom, at)
	case s.ReceivedBytes >= v1alpha1.MuchReceived:
		return fmt.Sprintf("connected to %s %s, and received %d bytes", whom, at, s.ReceivedBytes)
	case s.ReceivedBytes > 0:
		return fmt.Sprintf("connected to %s %s, and received %d bytes: a TLS handshake or a refusal, and no more", whom, at, s.ReceivedBytes)
	}
	return fmt.Sprintf("connected to %s %s", whom, at)
}
