// Package ignition downloads the ignition of bridges' NodePools as a node does, from the control plane's own server (hypershift v0.1.60,
// ignition-server/cmd/start.go). It never blocks a reconciler, which says what to download and gets what was downloaded last.
package ignition

import (
	"context"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/cldmnky/oooi/internal/guest/bounded"
	"github.com/cldmnky/oooi/internal/guest/visits"
	"github.com/cldmnky/oooi/internal/plan/bridge"
	"github.com/cldmnky/oooi/internal/unroutable"
)

const (
	// lookEvery is how often a token's Secret is read, and refreshEvery how old content may be: ignition follows Secrets of the hosted
	// cluster that no event tells us of. HyperShift replaces a token every 5.5 hours, and accepts the one before as long again.
	lookEvery    = 30 * time.Second
	refreshEvery = 5 * time.Minute
	// atOnce is how many are downloaded at a time, each of up to most octets.
	atOnce = 4
	most   = 4 << 20
	// within is how long one download may take, as in Ignition itself.
	within = 30 * time.Second
)

// Downloads are followed NodePools, one for each bridge.
type Downloads struct {
	// Dial opens connections to ignition servers; New sets unroutable.DialRoutable.
	Dial bounded.Dial

	secrets                 visits.SecretSource
	changed                 func(bridge types.NamespacedName)
	lookEvery, refreshEvery time.Duration
	turns                   chan struct{}

	sessions visits.Sessions[*follower]
}

// New follows nothing yet. It calls changed when what Follow returns for a bridge changes, from that bridge's own goroutine.
func New(secrets visits.SecretSource, changed func(bridge types.NamespacedName)) *Downloads {
	return &Downloads{
		Dial: unroutable.DialRoutable, secrets: secrets, changed: changed,
		lookEvery: lookEvery, refreshEvery: refreshEvery, turns: make(chan struct{}, atOnce),
	}
}

// Follow starts to download for a bridge, or continues, and returns at once what is known. Nobody may change the content.
func (d *Downloads) Follow(by types.NamespacedName, want bridge.Download) bridge.Payload {
	one, found := d.sessions.Current(by, func(f *follower) bool { return reflect.DeepEqual(f.want, want) }, func() (*follower, func(context.Context)) {
		f := &follower{Session: visits.NewSession(), downloads: d, want: want}
		return f, f.run
	}, d.changed)
	if !found {
		return bridge.Payload{}
	}
	return one.sees()
}

// Start waits for the context's end, and then ends every download. It implements manager.Runnable.
func (d *Downloads) Start(ctx context.Context) error { return d.sessions.Start(ctx) }

// Forget stops downloading for a bridge.
func (d *Downloads) Forget(by types.NamespacedName) { d.sessions.Forget(by) }
