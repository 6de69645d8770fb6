package approve

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"golang.org/x/time/rate"

	"github.com/cldmnky/oooi/internal/csr"
)

// warn has a warning told, but not more often than each warnAgain.
func (v *approving) warn(warning Notice) {
	at := standing{warning.Reason, warning.Host}
	if now := time.Now(); now.Sub(v.warned[at]) > warnAgain {
		v.warned[at] = now
		warning.Kind, warning.Warning = csr.Bootstrap, true
		v.notices = append(v.notices, warning)
	}
}

// forgetWarnings removes what is recorded about hosts that are no longer DPUs.
func (v *approving) forgetWarnings(isDPU map[string]bool) {
	maps.DeleteFunc(v.warned, func(at standing, _ time.Time) bool { return !isDPU[at.host] })
	maps.DeleteFunc(v.served, func(host string, _ *rate.Limiter) bool { return !isDPU[host] })
	v.mu.Lock()
	defer v.mu.Unlock()
	maps.DeleteFunc(v.rejoined, func(host string, _ time.Time) bool { return !isDPU[host] })
}

// noted are the notices to tell, each once.
func (v *approving) noted() []Notice {
	v.seen.Lock()
	defer v.seen.Unlock()
	all := v.notices
	v.notices = nil
	return all
}

// compareKeys warns if bootstrap CSRs of a host, waiting or approved in its DPU's life, have different keys.
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

// refuseAgain warns that an existing Node wants to bootstrap again, which the bridge refuses; refused is its CSR, or empty.
func (v *approving) refuseAgain(host, refused string) {
	if refused == "" {
		return
	}
	v.warn(Notice{Name: refused, Host: host, Reason: RebootstrapRefused, Message: fmt.Sprintf(
		"certificate request %s is not approved: Node %s exists, and the bridge has rebootstrap: Never; if the DPU was installed anew, delete every request that is not its own, then its Node, in the hosted cluster", refused, host)})
}

// againOf is the warning about an approval for an existing Node.
func againOf(name string, d csr.Decision) []Notice {
	if !d.Rejoins {
		return nil
	}
	return []Notice{{Name: name, Kind: csr.Bootstrap, Host: d.Host, Warning: true, Reason: NodeRebootstrapped, Message: fmt.Sprintf(
		"certificate request %s is approved for Node %s, which exists and is not Ready: if the DPU was not installed anew, somebody else has the token in its Ignition; rebootstrap: Never refuses such requests", name, d.Host)}}
}
