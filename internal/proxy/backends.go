package proxy

import (
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"time"

	"golang.org/x/time/rate"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/daemon"
	"github.com/cldmnky/oooi/internal/proxy/endpoints"
	"github.com/cldmnky/oooi/internal/proxy/intent"
)

const (
	// countPause is the least time between two statuses with different backends, in the long run: a target may come and go for ever.
	countPause = 5 * time.Second
	// countBurst such statuses may follow each other: after one target has left, or a probe has failed, the last target's end must not wait.
	countBurst = 3
)

// said is what the status last reported of the backends.
type said struct {
	backends []v1alpha1.BackendStatus
	any      bool
	limit    *rate.Limiter
}

func newSaid() *said { return &said{limit: rate.NewLimiter(rate.Every(countPause), countBurst)} }

// next returns what the status should report now. A new backend is reported at once.
func (s *said) next(counted []v1alpha1.BackendStatus, now time.Time) []v1alpha1.BackendStatus {
	if !reflect.DeepEqual(s.backends, counted) && (s.limit.AllowN(now, 1) || len(counted) > len(s.backends)) {
		s.backends, s.any = counted, true
	}
	return s.backends
}

// backends returns the status of each backend. If Envoy has yet to try a backend's targets, as after a restart, it repeats the last status, even
// an earlier run's; without one it leaves the backend out.
func (p *Proxy) backends(counts map[string]tally) []v1alpha1.BackendStatus {
	before := p.said.backends
	if !p.said.any {
		before = p.seen.Status.Backends
	}
	var all []v1alpha1.BackendStatus
	for _, b := range p.told.Backends {
		count, counted := counts[b.Name]
		was := slices.IndexFunc(before, func(s v1alpha1.BackendStatus) bool { return s.Name == b.Name })
		switch untried := !counted || count.healthy == 0 && (count.untried > 0 || p.unread(b)); {
		case !untried:
			is := v1alpha1.BackendStatus{Name: b.Name, Healthy: count.healthy, Total: count.total, Message: daemon.Bounded(p.why(b, count))}
			if fault, probed := p.probes.fault(b.Name); is.Healthy > 0 && probed { // else Message says it all
				is.Fault = fault
			} else if is.Healthy > 0 && was >= 0 {
				is.Fault = before[was].Fault
			}
			all = append(all, is)
		case was >= 0:
			all = append(all, before[was])
		}
	}
	return all
}

// unread says whether a backend's pods are not known yet.
func (p *Proxy) unread(b intent.Backend) bool { return errors.Is(p.lacks(b), endpoints.ErrUnread) }

// lacks returns why a backend of a Service has no targets, or what is not known of them.
func (p *Proxy) lacks(b intent.Backend) error {
	if p.watch == nil || b.Service == nil {
		return nil
	}
	_, _, err := p.watch.Targets(*b.Service)
	return err
}

// unanswered counts the backends with no target that answers.
func (p *Proxy) unanswered() (n float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, b := range p.said.backends {
		if b.Healthy == 0 {
			n++
		}
	}
	return n
}

// why returns why no target of a backend answers, or what is not known of the targets.
func (p *Proxy) why(b intent.Backend, count tally) string {
	switch lacks := p.lacks(b); {
	case lacks != nil && !errors.Is(lacks, endpoints.ErrUnread):
		return strings.ReplaceAll(lacks.Error(), "\n", "; ")
	case count.healthy > 0:
		return ""
	case b.Service == nil:
		return fmt.Sprintf("none of targetAddresses (%s) takes a connection", listed(b.Targets))
	case count.total == 0:
		return p.withoutTargets(*b.Service)
	case count.silent == count.total:
		return fmt.Sprintf("no ready pod of service %s/%s answers a connection within a second: a NetworkPolicy of namespace %s does not allow the proxy's pod, or its pods hang", b.Service.Namespace, b.Service.Name, b.Service.Namespace)
	}
	return fmt.Sprintf("no ready pod of service %s/%s takes a connection on port %d; see: kubectl -n %s get endpointslices -l kubernetes.io/service-name=%s",
		b.Service.Namespace, b.Service.Name, b.Service.Port, b.Service.Namespace, b.Service.Name)
}

// listed names the first few targets, and counts the others.
func listed(targets []netip.AddrPort) string {
	const most = 3
	var all []string
	for _, t := range targets[:min(most, len(targets))] {
		all = append(all, t.String())
	}
	if more := len(targets) - most; more > 0 {
		all = append(all, fmt.Sprintf("%d more", more))
	}
	return strings.Join(all, ", ")
}

func (p *Proxy) withoutTargets(s intent.Service) string {
	if p.watch == nil {
		return "only in a cluster are the pods of a Service known"
	}
	return fmt.Sprintf("service %s/%s has no ready pod with the address and the port that its EndpointSlice says; see: kubectl -n %s get endpointslices -l kubernetes.io/service-name=%s", s.Namespace, s.Name, s.Namespace, s.Name)
}
