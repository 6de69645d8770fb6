package guest

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"golang.org/x/time/rate"

	"github.com/cldmnky/oooi/internal/csr"
)

// Reasons of warnings about bootstrap CSRs. Whoever holds the token in a worker's Ignition may be behind them.
const (
	// NodeBootstrapsAgain: a bootstrap CSR was approved for a host whose Node existed.
	NodeBootstrapsAgain = "NodeBootstrapsAgain"
	// RebootstrapRefused: one waits, because the bridge lets no existing Node bootstrap again.
	RebootstrapRefused = "RebootstrapRefused"
	// KeysDiffer: CSRs for one host are of different keys.
	KeysDiffer = "KeysDiffer"
)

// Notice tells of a CSR: of its approval, or a warning.
type Notice struct {
	Name            string // of the CSR
	Kind            csr.Kind
	Host            string
	Warning         bool
	Reason, Message string // of an approval: as on the CSR
}

// standing is what a warning is about, and warnAgain how soon it is told again: who asks often is no news.
type standing struct{ reason, host string }

const warnAgain = 30 * time.Minute

// warn has a warning told, unless that was done a short while ago.
func (v *approving) warn(warning Notice) {
	at := standing{warning.Reason, warning.Host}
	if now := time.Now(); now.Sub(v.warned[at]) > warnAgain {
		v.warned[at] = now
		warning.Kind, warning.Warning = csr.Bootstrap, true
		v.notices = append(v.notices, warning)
	}
}

// forgetWarnings about hosts that are no DPU's, and what those had.
func (v *approving) forgetWarnings(isDPU map[string]bool) {
	maps.DeleteFunc(v.warned, func(at standing, _ time.Time) bool { return !isDPU[at.host] })
	maps.DeleteFunc(v.served, func(host string, _ *rate.Limiter) bool { return !isDPU[host] })
	v.mu.Lock()
	defer v.mu.Unlock()
	maps.DeleteFunc(v.rejoined, func(host string, _ time.Time) bool { return !isDPU[host] })
}

// noted are the notices of what was seen.
func (v *approving) noted() []Notice {
	v.seen.Lock()
	defer v.seen.Unlock()
	all := v.notices
	v.notices = nil
	return all
}

const (
	// eventsAtOnce are told of approvals, two for each of 150 DPUs, and then one in eventEvery: each is an object in the management
	// cluster, made because a hosted cluster's Nodes ask.
	eventsAtOnce = 300
	eventEvery   = 10 * time.Second
)

func (a *approver) tell(all []Notice) {
	for _, n := range all {
		if n.Warning {
			warnings.WithLabelValues(n.Reason).Inc()
		}
		if a.hasEvent(&n) {
			a.told(n)
		}
	}
}

// hasEvent says whether an approval is told, or that a Node bootstraps again: that once in a while. One that is told says how many before it
// were not.
func (a *approver) hasEvent(n *Notice) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case n.Reason == NodeBootstrapsAgain:
		is := time.Since(a.rejoined[n.Host]) > warnAgain
		if is {
			a.rejoined[n.Host] = time.Now()
		}
		return is
	case n.Warning: // warn has looked
		return true
	case !a.events.Allow():
		a.silent++
		return false
	}
	if a.silent > 0 {
		n.Message += fmt.Sprintf(" (%d more approvals had no event since the last)", a.silent)
		a.silent = 0
	}
	return true
}

const (
	// servingAtOnce certificates a Node may have, and then one in servingEvery. A kubelet asks when it starts, when its addresses change,
	// and months later (kubelet pkg/kubelet/certificate); it may be restarted some times.
	servingAtOnce = 10
	servingEvery  = time.Minute
)

// serving is how many more serving certificates a host may have now. The lock is held.
func (v *approving) serving(host string) *rate.Limiter {
	if v.served[host] == nil {
		v.served[host] = rate.NewLimiter(rate.Every(servingEvery), servingAtOnce)
	}
	return v.served[host]
}

// mayServe says whether a host may have another.
func (v *approving) mayServe(host string) bool {
	v.seen.Lock()
	defer v.seen.Unlock()
	may := v.serving(host).Tokens() >= 1
	if !may {
		v.often = time.Now()
		v.update(func(s *ApprovalState) { s.Beyond = v.beyond() })
	}
	return may
}

// compareKeys of the bootstrap CSRs that wait for a host, and of those that were approved in its DPU's life.
func (v *approving) compareKeys(host string, d csr.DPU, f csr.Facts) {
	keys := f.Keys(host, d)
	if len(keys) == 0 {
		return
	}
	for _, p := range v.approved.hosts[host] {
		if p.DPU == d.UID || p.DPU == "" && p.Created.After(d.Created) {
			keys[p.Key] = true
		}
	}
	if len(keys) == 1 {
		return
	}
	asking := slices.DeleteFunc(slices.Clone(v.queue.hosts[host]), func(w *waiting) bool { return w.asked.Kind != csr.Bootstrap })
	newest := slices.MinFunc(asking, newestFirst).asked.Name
	v.warn(Notice{Name: newest, Host: host, Reason: KeysDiffer, Message: fmt.Sprintf(
		"bootstrap requests for DPU %s carry %d different keys: if the DPU was not installed anew, somebody else has the token in its Ignition; find out which request is the DPU's, and delete the others", d, len(keys))})
}

// refuseAgain says that a Node asks for a bootstrap that the bridge does not want; refused is the CSR, if there is one.
func (v *approving) refuseAgain(host, refused string) {
	if refused == "" {
		return
	}
	v.warn(Notice{Name: refused, Host: host, Reason: RebootstrapRefused, Message: fmt.Sprintf(
		"certificate request %s is not approved: Node %s exists, and the bridge has rebootstrap: Never; if the DPU was installed anew, delete every request that is not its own, then its Node, in the hosted cluster", refused, host)})
}

// againOf is the warning about an approval for a Node that exists.
func againOf(name string, d csr.Decision) []Notice {
	if !d.Rejoins {
		return nil
	}
	return []Notice{{Name: name, Kind: csr.Bootstrap, Host: d.Host, Warning: true, Reason: NodeBootstrapsAgain, Message: fmt.Sprintf(
		"certificate request %s is approved for Node %s, which exists and is not Ready: if the DPU was not installed anew, somebody else has the token in its Ignition; rebootstrap: Never refuses such requests", name, d.Host)}}
}
