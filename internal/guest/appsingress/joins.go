package appsingress

import (
	"context"
	"net/netip"
	"slices"
	"time"

	"github.com/cldmnky/oooi/internal/boot"
	"github.com/cldmnky/oooi/internal/guest/pace"
)

// seeNodes watches Nodes. The caller may have the agent's lock.
func (v *visit) seeNodes(ctx context.Context) {
	if v.boots != nil {
		v.boots.Follows(v.infra)
		v.group.Go(func() error { return v.tellJoined(ctx) })
	}
	see(ctx, v, nodes, v.haveNodes)
}

// haveNodes compares with what was seen before, also on an earlier visit. The caller has the agent's lock.
func (v *visit) haveNodes(all []node) {
	now, before := time.Now(), v.noticed
	v.seen.Nodes, v.noticed = nil, map[string]time.Time{}
	for _, n := range all {
		v.seen.Nodes = append(v.seen.Nodes, n.GuestNode)
		was := before[n.Name].Equal(n.created) && now.Sub(n.created) <= boot.Longest
		if !was && (v.boots == nil || !v.isNew(n, now)) {
			continue
		}
		if v.noticed[n.Name] = n.created; !was {
			v.joins(n, now)
		}
	}
}

// isNew says whether we have watched the whole life of a Node, which is none that began too long ago to be counted.
func (a *agent) isNew(n node, now time.Time) bool {
	return n.Ready && n.created.After(a.began) && now.Sub(n.created) <= boot.Longest
}

func (a *agent) joins(n node, now time.Time) {
	i := slices.IndexFunc(n.Addresses, netip.Addr.Is4)
	if i < 0 || len(a.joining) >= mostJoining {
		return
	}
	a.joining = append(a.joining, Joined{n.Addresses[i], n.created, n.ready, now})
	pace.Poke(a.joined)
}

func (v *visit) tellJoined(ctx context.Context) error {
	for {
		n, any := v.nextJoined()
		if !any {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-v.joined:
			}
			continue
		}
		v.boots.Joined(ctx, v.infra, n)
		if err := v.turns.Wait(ctx); err != nil {
			return err
		}
	}
}

func (a *agent) nextJoined() (n Joined, any bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.joining) == 0 {
		return n, false
	}
	n, a.joining = a.joining[0], a.joining[1:]
	return n, true
}
