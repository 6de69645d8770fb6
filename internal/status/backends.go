package status

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/endpoint"
)

// noBackend is the reason of a proxy that serves, but some of whose backends do not answer.
const noBackend = "BackendsUnhealthy"

// backends counts a proxy's backends, except those of *.apps, which have a condition of their own.
type backends struct {
	total    int
	answer   int
	away     []string // a sentence for each one without a target that answers
	uncalled []string // the names of those that the proxy has not tried yet
	partly   []string // a sentence for each one that answers, and of whose targets the proxy does not know all
	faulty   []string // a sentence for each one that answers, and in which the probe found a fault
	keepOut  bool     // one of these is an endpoint without which no worker joins
}

func backendsOf(s *v1alpha1.ProxyServer) backends {
	var all backends
	for _, b := range s.Spec.Backends {
		if b.Name == endpoint.AppsHTTP || b.Name == endpoint.AppsHTTPS {
			continue
		}
		all.total++
		at := slices.IndexFunc(s.Status.Backends, func(c v1alpha1.BackendStatus) bool { return c.Name == b.Name })
		switch {
		case at < 0 || untried(s.Status.Backends[at]):
			all.uncalled = append(all.uncalled, b.Name)
		case s.Status.Backends[at].Healthy > 0:
			all.answer++
			if message := s.Status.Backends[at].Message; message != "" {
				all.partly = append(all.partly, b.Name+": "+message)
			}
			if fault := faultOf(s, at); fault != nil {
				all.faulty = append(all.faulty, b.Name+": "+fault.Message)
				all.keepOut = all.keepOut || slices.Contains(endpoint.Essential, b.Name)
			}
		default:
			all.away = append(all.away, b.Name+": "+why(b, s.Status.Backends[at]))
		}
	}
	return all
}

// untried: while it starts, a sidecar of the previous release gives no message, and counts 0 of 0.
func untried(c v1alpha1.BackendStatus) bool { return c.Total == 0 && c.Message == "" }

// why no target answers, as the sidecar says; a sidecar of the previous release only counts.
func why(b v1alpha1.ProxyBackend, c v1alpha1.BackendStatus) string {
	switch {
	case c.Message != "":
		return c.Message
	case b.TargetService == "":
		return fmt.Sprintf("0 of %d targetAddresses answer", c.Total)
	}
	return fmt.Sprintf("0 of %d targets answer; see: kubectl -n %s get endpointslices -l kubernetes.io/service-name=%s", c.Total, b.TargetNamespace, b.TargetService)
}

// verdict on all of them: a worker dials every backend while it joins, or soon after.
func (b backends) verdict() verdict {
	const kind = v1alpha1.ConditionBackendsHealthy
	switch {
	case len(b.away) > 0:
		return no(kind, noBackend, strings.Join(b.away, "; "))
	case len(b.uncalled) > 0:
		return no(kind, "Progressing", "the proxy has not tried yet: "+strings.Join(b.uncalled, ", "))
	}
	answer := strings.Join(append([]string{"every endpoint has a backend that answers"}, b.partly...), "; ")
	if len(b.faulty) > 0 {
		answer += "; who connects through the proxy refuses it: " + strings.Join(b.faulty, "; ")
	}
	if b.keepOut {
		return yes(kind, v1alpha1.ReasonProbeFails, answer)
	}
	return yes(kind, "Answering", answer)
}

// faultOf is what the probe found in a backend's answer.
func faultOf(s *v1alpha1.ProxyServer, at int) *v1alpha1.BackendFault {
	if !s.Probes() {
		return nil
	}
	return s.Status.Backends[at].Fault
}

// healthy is the count behind the verdict; empty while nothing is counted.
func (b backends) healthy() string {
	if b.total == len(b.uncalled) {
		return ""
	}
	return fmt.Sprintf("%d/%d", b.answer, b.total)
}
