package dns

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	mdns "github.com/miekg/dns"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/daemon"
)

// resolverPause is between two rounds of questions to the upstream resolvers. A packet may be lost: silentRounds without an answer count.
const (
	resolverPause = 10 * time.Second
	silentRounds  = 2
)

// resolvers are the upstreams that are in use, and which of them answer. It only tells: queries are forwarded by CoreDNS, which has checks of
// its own.
type resolvers struct {
	turned func()           // is called when the verdict changes
	heard  func() time.Time // when one of them answered a client's query: a filter may drop our questions and let clients' pass

	mu      sync.Mutex
	all     []netip.AddrPort
	asked   map[netip.AddrPort]asking
	verdict *metav1.Condition // nil before there is one
}

// asking is what came of asking a resolver.
type asking struct {
	silent int // rounds without an answer
	fault  string
}

// use takes resolvers into use. What is known of those that were in use before stays known.
func (r *resolvers) use(all []netip.AddrPort) {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := map[netip.AddrPort]asking{}
	for _, at := range all {
		if was, has := r.asked[at]; has {
			known[at] = was
		}
	}
	r.all, r.asked = slices.Clone(all), known
	r.judge()
}

// probes ask each for the root's name servers, as CoreDNS' health check does. Any answer is one: a resolver without a way out says SERVFAIL.
func (r *resolvers) probes() (all []daemon.Probe) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, at := range r.all {
		all = append(all, daemon.Probe{Protocol: "dns-udp", At: at.Addr(), Ask: func(ctx context.Context) error {
			_, err := exchange(ctx, "udp", netip.Addr{}, at, mdns.Question{Name: ".", Qtype: mdns.TypeNS})
			r.note(at, err)
			return err
		}})
	}
	return all
}

func (r *resolvers) note(at netip.AddrPort, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	is := asking{}
	if err != nil {
		is = asking{r.asked[at].silent + 1, daemon.Fault(err)}
	}
	r.asked[at] = is
	r.judge()
}

// judge says whether any resolver answers, once each has been asked, or one has answered.
func (r *resolvers) judge() {
	var silent []string
	answer := false
	for _, at := range r.all {
		switch is, known := r.asked[at]; {
		case known && is.silent == 0:
			answer = true
		case is.silent >= silentRounds:
			silent = append(silent, fmt.Sprintf("%s (%s)", at.Addr(), is.fault))
		}
	}
	var next metav1.Condition
	switch {
	case answer && len(silent) == 0, len(r.all) > 0 && time.Since(r.heard()) < silentRounds*resolverPause:
		next = metav1.Condition{Status: metav1.ConditionTrue, Reason: "ResolversAnswer", Message: "names outside the hosted cluster are forwarded"}
	case answer:
		next = metav1.Condition{Status: metav1.ConditionTrue, Reason: "SomeResolversAnswer", Message: "another resolver answers, and not: " + strings.Join(silent, ", ")}
	case len(r.all) == 0:
		next = metav1.Condition{Status: metav1.ConditionFalse, Reason: "NoResolver", Message: "no resolver is known: workers get REFUSED for each name outside the hosted cluster, such as an image registry's; name resolvers in the Infra's networkConfig.dnsServers"}
	case len(silent) == len(r.all):
		next = metav1.Condition{Status: metav1.ConditionFalse, Reason: "ResolversSilent", Message: "no resolver answers: " + strings.Join(silent, ", ") +
			"; workers get SERVFAIL for each name outside the hosted cluster, such as an image registry's; let the pod reach them on UDP port 53, or name others in the Infra's networkConfig.dnsServers"}
	default:
		return
	}
	next.Type = v1alpha1.ConditionResolversAnswer
	if r.verdict == nil || *r.verdict != next {
		r.verdict = &next
		r.turned()
	}
}

// condition is the verdict, nil if there is none yet.
func (r *resolvers) condition() *metav1.Condition {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.verdict
}
