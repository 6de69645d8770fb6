// Package approve approves certificates of kubelets in a bridge's hosted cluster by the rules of internal/csr, and explains decisions. An
// approval cannot be revoked, so the facts for it are read again before it. By the way it keeps the ClusterRoleBinding there that the DPUs'
// pods need.
package approve

import (
	"context"
	"reflect"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cldmnky/oooi/internal/dpf"
	"github.com/cldmnky/oooi/internal/guest/bounded"
	"github.com/cldmnky/oooi/internal/guest/visits"
	"github.com/cldmnky/oooi/internal/plan/bridge"
	"github.com/cldmnky/oooi/internal/unroutable"
)

// Approvals approve certificates of kubelets in hosted clusters, one approver for each bridge.
type Approvals struct {
	// Dial opens connections to hosted clusters; NewApprovals sets unroutable.DialRoutable.
	Dial bounded.Dial

	secrets visits.SecretSource
	facts   FactSource
	told    func(bridge types.NamespacedName, n Notice)
	changed func(bridge types.NamespacedName)

	sessions visits.Sessions[*approver]
}

// NewApprovals approves nothing yet. It calls told for warnings and for approvals, if there are not too many, and changed when a bridge's
// State changes, both from that bridge's own goroutines.
func NewApprovals(secrets visits.SecretSource, facts FactSource, told func(bridge types.NamespacedName, n Notice), changed func(bridge types.NamespacedName)) *Approvals {
	return &Approvals{
		Dial: unroutable.DialRoutable, secrets: secrets, facts: facts, told: told, changed: changed,
	}
}

// See starts to approve for a bridge, or continues, and returns the state at once. dpus come from a cache: a change has waiting CSRs
// decided again, but nothing is approved by the cache alone.
func (a *Approvals) See(by types.NamespacedName, w bridge.Approval, dpus []dpf.DPU) State {
	one, found := a.sessions.Current(by, func(one *approver) bool { return reflect.DeepEqual(one.want, w) }, func() (*approver, func(context.Context)) {
		one := a.approver(by, w, func(what Notice) {
			if a.told != nil {
				a.told(by, what)
			}
		})
		return one, one.link(a.secrets).Run
	}, a.changed)
	if !found {
		return State{}
	}
	return one.sees(DPUs(dpus))
}

// Start waits for the context's end, and then disconnects from every hosted cluster. It implements manager.Runnable.
func (a *Approvals) Start(ctx context.Context) error { return a.sessions.Start(ctx) }

// Forget stops approving for a bridge. When it returns, no approval is in progress; until then nothing else approves for the bridge.
func (a *Approvals) Forget(by types.NamespacedName) { a.sessions.Forget(by) }

func (a *Approvals) approver(by types.NamespacedName, w bridge.Approval, told func(Notice)) *approver {
	return &approver{
		Session: visits.NewSession(), by: by, want: w, dial: a.Dial, facts: a.facts, told: told,
		warned: map[standing]time.Time{}, served: map[string]*rate.Limiter{}, rejoined: map[string]time.Time{}, events: rate.NewLimiter(rate.Every(eventEvery), eventsAtOnce),
		tells: rate.NewLimiter(rate.Every(tellEvery), tellsAtOnce),
	}
}
