// Package appsingress watches in an Infra's hosted cluster what *.apps needs, and keeps one Service of ours there. It never blocks a
// reconciler: what is to be done is told, what was seen is asked for.
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

// Clusters are the hosted clusters that are looked into, one for each Infra.
type Clusters struct {
	// Dial opens connections to hosted clusters; unroutable.DialRoutable, unless it is set.
	Dial bounded.Dial
	// Patience is how long a hosted cluster that does not answer, or does not let our Service go, is waited for before what is in it is
	// left there (dns-proxy-rules.md#guest-left).
	Patience time.Duration
	// LookEvery is how long a kubeconfig that changes again waits to be looked at.
	LookEvery time.Duration

	secrets visits.SecretSource
	changed func(types.NamespacedName)

	sessions visits.Sessions[*agent]
}

// NewClusters looks into none yet. What changed is called when something else is seen of an Infra's hosted cluster, from a
// goroutine of that Infra's own.
func NewClusters(secrets visits.SecretSource, changed func(infra types.NamespacedName)) *Clusters {
	return &Clusters{
		Dial: unroutable.DialRoutable, Patience: 10 * time.Minute, LookEvery: visits.LookEvery, secrets: secrets, changed: changed,
	}
}

// See begins to look into an Infra's hosted cluster, or goes on, and tells at once what is seen; nil when nothing is known
// yet. What it returns is shared: nobody may change it.
func (c *Clusters) See(infra types.NamespacedName, w apps.Access) *input.Guest {
	a, found := c.sessions.Current(infra, func(a *agent) bool { return a.want == w }, func() (*agent, *visits.Link) {
		a := &agent{Session: visits.NewSession(), infra: infra, want: w, dial: c.Dial, seldom: c.LookEvery}
		return a, a.link(c.secrets)
	}, c.changed)
	if !found {
		return nil
	}
	return a.sees()
}

// Start waits for the end and then leaves every hosted cluster: it makes a Runnable of the manager.
func (c *Clusters) Start(ctx context.Context) error { return c.sessions.Start(ctx) }

// Forget leaves an Infra's hosted cluster, and all in it as it is. When it returns, nothing of ours is done there any more; until then nobody
// else begins to.
func (c *Clusters) Forget(infra types.NamespacedName) { c.sessions.Forget(infra) }

// Apply says what our Service in the hosted cluster should be; nil is none. It is made so in the background, kept so, and tried
// again for as long as it fails. An Infra that See was never called for has nobody to do it.
func (c *Clusters) Apply(infra types.NamespacedName, s *accore.ServiceApplyConfiguration) error {
	wanted, err := wishFor(s)
	if a, found := c.sessions.Get(infra); found && err == nil {
		a.wishes(wanted)
	}
	return err
}

// Freeze leaves our Service as it is, whatever becomes of it, until the next word. What is seen is told as before.
func (c *Clusters) Freeze(infra types.NamespacedName) {
	if a, found := c.sessions.Get(infra); found {
		a.holds()
	}
}

// End removes our Service, in whatever namespace, and says whether it is gone, and else for how long that has been asked, or the
// hosted cluster been away. See comes first: without it nobody looks, and nothing is done.
func (c *Clusters) End(infra types.NamespacedName) (done bool, waited time.Duration) {
	a, found := c.sessions.Get(infra)
	if !found {
		return false, 0
	}
	return a.ends()
}
