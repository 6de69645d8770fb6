// Package appsingress watches in an Infra's hosted cluster what *.apps needs, and maintains one Service of ours there. It never blocks a
// reconciler, which says what to do and gets what was read last.
package appsingress

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	accore "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/cldmnky/oooi/internal/guest/bounded"
	"github.com/cldmnky/oooi/internal/guest/visits"
	"github.com/cldmnky/oooi/internal/plan/apps"
	"github.com/cldmnky/oooi/internal/plan/input"
	"github.com/cldmnky/oooi/internal/unroutable"
)

// Clusters are the hosted clusters that are watched, one for each Infra.
type Clusters struct {
	// Dial opens connections to hosted clusters; NewClusters sets unroutable.DialRoutable.
	Dial bounded.Dial
	// Patience is how long to wait for a hosted cluster that does not answer, or does not delete our Service, before the Service is left
	// there (dns-proxy-rules.md#guest-left).
	Patience time.Duration
	// LookEvery is the shortest time between two reads of a kubeconfig.
	LookEvery time.Duration

	secrets visits.SecretSource
	changed func(types.NamespacedName)

	sessions visits.Sessions[*agent]
}

// NewClusters watches none yet. It calls changed when what See returns for an Infra changes, from that Infra's own goroutine.
func NewClusters(secrets visits.SecretSource, changed func(infra types.NamespacedName)) *Clusters {
	return &Clusters{
		Dial: unroutable.DialRoutable, Patience: 10 * time.Minute, LookEvery: visits.LookEvery, secrets: secrets, changed: changed,
	}
}

// See starts to watch an Infra's hosted cluster, or continues, and returns at once what is known; nil if nothing is yet. The result is
// shared: nobody may change it.
func (c *Clusters) See(infra types.NamespacedName, w apps.Access) *input.Guest {
	a, found := c.sessions.Current(infra, func(a *agent) bool { return a.want == w }, func() (*agent, func(context.Context)) {
		a := &agent{Session: visits.NewSession(), infra: infra, want: w, dial: c.Dial, seldom: c.LookEvery}
		return a, a.link(c.secrets).Run
	}, c.changed)
	if !found {
		return nil
	}
	return a.sees()
}

// Start waits for the context's end, and then disconnects from every hosted cluster. It implements manager.Runnable.
func (c *Clusters) Start(ctx context.Context) error { return c.sessions.Start(ctx) }

// Forget disconnects from an Infra's hosted cluster without changing it. When it returns, nothing of ours runs there; until then nothing
// else starts.
func (c *Clusters) Forget(infra types.NamespacedName) { c.sessions.Forget(infra) }

// Apply says what our Service in the hosted cluster should be; nil means none. It is applied in the background, kept as applied, and
// retried as long as that fails. Without an earlier See for the Infra, Apply does nothing.
func (c *Clusters) Apply(infra types.NamespacedName, s *accore.ServiceApplyConfiguration) error {
	wanted, err := wishFor(s)
	if a, found := c.sessions.Get(infra); found && err == nil {
		a.wishes(wanted)
	}
	return err
}

// Freeze leaves our Service alone, whatever happens to it, until the next Apply or End. See works as before.
func (c *Clusters) Freeze(infra types.NamespacedName) {
	if a, found := c.sessions.Get(infra); found {
		a.holds()
	}
}

// End removes our Service, in whatever namespace, and says whether it is gone; if not, how long End has waited for that, or for the hosted
// cluster to answer. Without an earlier See, End does nothing.
func (c *Clusters) End(infra types.NamespacedName) (done bool, waited time.Duration) {
	a, found := c.sessions.Get(infra)
	if !found {
		return false, 0
	}
	return a.ends()
}
