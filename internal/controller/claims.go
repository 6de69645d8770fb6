package controller

import (
	"slices"
	"sync"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/internal/plan/bridge"
)

// claims serialise the bridges that want the same DPUCluster, namespace or address: apply returns when the cache shows what one has made, so
// that the next sees it. A bridge that finds its claim taken retries.
type claims struct {
	mu    sync.Mutex
	taken map[any]bool // only claims in use are kept: users choose the names
}

// wants are what a bridge claims because another bridge may want it too.
func wants(b *dpuv1.DPUHCPBridge, s bridge.Settings) []any {
	all := []any{bridge.ClusterKey(b), bridge.ControlPlane(b)}
	if vip := bridge.VirtualIP(b); s.Announces(vip) {
		all = append(all, vip)
	}
	return all
}

// take claims everything or nothing. It never blocks: a hundred bridges that want one thing would occupy every worker.
func (c *claims) take(all ...any) (release func(), taken bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if slices.ContainsFunc(all, func(thing any) bool { return c.taken[thing] }) {
		return nil, false
	}
	for _, thing := range all {
		c.taken[thing] = true
	}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, thing := range all {
			delete(c.taken, thing)
		}
	}, true
}
