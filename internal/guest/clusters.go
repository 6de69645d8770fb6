// Package guest connects to hosted clusters with kubeconfigs that nobody vouches for, watches there what *.apps needs, and
// keeps one Service of ours there. It never blocks a reconciler: what is to be done is told, what was seen is asked for.
package guest

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	accore "k8s.io/client-go/applyconfigurations/core/v1"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/local"
	"github.com/cldmnky/oooi/internal/plan/input"
)

// SecretSource reads Secrets of the management cluster, one by one, where that is granted.
type SecretSource = typedcore.SecretsGetter

// Want is what an Infra wants to know of its hosted cluster.
type Want struct {
	// Secret with the kubeconfig: HostedCluster.status.kubeconfig, in the HostedCluster's namespace. Without a name, there is
	// none yet.
	Secret types.NamespacedName
	// Server that is dialled, https://HOST:PORT. The kubeconfig's own never is.
	Server string
	// Service of ours in the hosted cluster.
	Service types.NamespacedName
	// Mode decides what is watched; empty: how the hosted cluster publishes its routers does.
	Mode v1alpha1.AppsIngressMode
}

// Clusters are the hosted clusters that are looked into, one for each Infra.
type Clusters struct {
	// Dial opens connections to hosted clusters; local.Dial, unless it is set.
	Dial Dial
	// Patience is how long a hosted cluster that does not answer, or does not let our Service go, is waited for before what is in it is
	// left there (dns-proxy-rules.md#guest-left).
	Patience time.Duration
	// LookEvery is how long a kubeconfig that changes again waits to be looked at.
	LookEvery time.Duration

	secrets SecretSource
	changed func(types.NamespacedName)

	lives[*agent]
}

// NewClusters looks into none yet. What changed is called when something else is seen of an Infra's hosted cluster, from a
// goroutine of that Infra's own.
func NewClusters(secrets SecretSource, changed func(infra types.NamespacedName)) *Clusters {
	return &Clusters{
		Dial: local.Dial, Patience: 10 * time.Minute, LookEvery: lookEvery, secrets: secrets, changed: changed, lives: lives[*agent]{of: map[types.NamespacedName]*agent{}},
	}
}

// See begins to look into an Infra's hosted cluster, or goes on, and tells at once what is seen; nil when nothing is known
// yet. What it returns is shared: nobody may change it.
func (c *Clusters) See(infra types.NamespacedName, w Want) *input.Guest {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := c.of[infra]
	if (a == nil || a.want != w) && !c.ended {
		a = &agent{life: newLife(), infra: infra, want: w, dial: c.Dial, seldom: c.LookEvery}
		c.begin(infra, a, a.link(c.secrets), c.changed)
	}
	if a == nil {
		return nil
	}
	return a.sees()
}

// Apply says what our Service in the hosted cluster should be; nil is none. It is made so in the background, kept so, and tried
// again for as long as it fails. An Infra that See was never called for has nobody to do it.
func (c *Clusters) Apply(infra types.NamespacedName, s *accore.ServiceApplyConfiguration) error {
	wanted, err := wishFor(s)
	if a := c.agent(infra); a != nil && err == nil {
		a.wishes(wanted)
	}
	return err
}

// Hold leaves our Service as it is, whatever becomes of it, until the next word. What is seen is told as before.
func (c *Clusters) Hold(infra types.NamespacedName) {
	if a := c.agent(infra); a != nil {
		a.holds()
	}
}

// End removes our Service, in whatever namespace, and says whether it is gone, and else for how long that has been asked, or the
// hosted cluster been away. See comes first: without it nobody looks, and nothing is done.
func (c *Clusters) End(infra types.NamespacedName) (done bool, waited time.Duration) {
	a := c.agent(infra)
	if a == nil {
		return false, 0
	}
	return a.ends()
}

func (c *Clusters) agent(infra types.NamespacedName) *agent {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.of[infra]
}
