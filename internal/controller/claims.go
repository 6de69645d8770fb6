package controller

import (
	"slices"
	"sync"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/internal/plan/bridge"
)

// claims let the bridges that want one thing, a DPUCluster, a namespace or an address, have their turns one after the other: apply ends when the
// cache shows what one has made, so that the next sees it. Who finds it taken comes back.
type claims struct {
	mu    sync.Mutex
	taken map[any]bool // users make what they want up: what nobody is at is forgotten
}

// wants of a bridge, of which another may want one too.
func wants(b *dpuv1.DPUHCPBridge, s bridge.Settings) []any {
	all := []any{bridge.ClusterKey(b), bridge.ControlPlane(b)}
	if vip := bridge.VirtualIP(b); s.Announces(vip) {
		all = append(all, vip)
	}
	return all
}

// take all of it, or nothing: nobody waits for another here, for a hundred bridges that want one thing would keep every worker.
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
