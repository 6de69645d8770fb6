package approve

import (
	"context"
	"reflect"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/guest/bounded"
	"github.com/cldmnky/oooi/internal/guest/kubeconfig"
	"github.com/cldmnky/oooi/internal/guest/pace"
	"github.com/cldmnky/oooi/internal/guest/visits"
)

func (a *approver) link(secrets visits.SecretSource) *visits.Link {
	return &visits.Link{
		Secret: a.want.Secret, Server: a.want.Server, Secrets: secrets, Visit: a.visit, Trouble: a.trouble, Seldom: visits.LookEvery,
		Granting: finding.Granting(a.want.Secret.Namespace, "dpu-bridge", "bridge.namespaces"),
	}
}

func (a *approver) visit(ctx context.Context, access kubeconfig.Access) (settled bool, err error) {
	api, err := bounded.Open(ctx, a.want.Server, access, a.dial)
	if err != nil {
		return false, err
	}
	defer api.Close()
	group, ctx := errgroup.WithContext(ctx)
	v := &approving{
		approver: a, access: access, api: api, group: group, all: true,
		leases: map[string]time.Time{}, queue: newQueue(), stuck: map[string]bool{}, fresh: map[string]bool{}, warned: a.warned, untold: map[string][]Notice{},
	}
	v.queue.isDPU = a.isDPU
	v.dpus = &reading{read: v.readDPUs}
	v.left.Add(1) // for visit itself, until all watches are begun
	lookAt(ctx, v, hosts, v.around.haveNodes)
	lookAt(ctx, v, takenByServices, v.around.haveServices)
	lookAt(ctx, v, apiEndpoints, v.around.haveEndpoints)
	v.left.Add(1)
	listed := sync.OnceFunc(v.arrived)
	group.Go(func() error {
		return bounded.Collection[struct{}]{Path: requests}.Stream(ctx, api, v.take, func() { listed(); pace.Poke(v.Due) })
	})
	group.Go(func() error { return v.decide(ctx) })
	group.Go(func() error { return v.keepPrivileged(ctx) })
	group.Go(func() error { return v.tellRequests(ctx) })
	v.arrived()
	err = group.Wait()
	return v.left.Load() == 0, err
}

// lookAt watches a collection, and has everything decided again after a change.
func lookAt[T any](ctx context.Context, v *approving, c bounded.Collection[T], have func([]T)) {
	v.left.Add(1)
	arrived := sync.OnceFunc(v.arrived)
	var before []T
	v.group.Go(func() error {
		return bounded.Follow(ctx, v.api, c, func(all []T) {
			if before == nil || !reflect.DeepEqual(before, all) {
				before = all
				v.seen.Lock()
				have(all)
				v.turned = true
				v.update(func(s *State) { s.Beyond = v.beyond() })
				v.seen.Unlock()
				pace.Poke(v.Due)
			}
			arrived()
		})
	})
}
