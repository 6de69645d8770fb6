package guest

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	operatorv1 "github.com/openshift/api/operator/v1"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/plan/input"
)

// visit is one connection to a hosted cluster, with all that is watched there. The first thing that fails ends all of it: the
// next begins with lists.
type visit struct {
	*agent
	api   *api
	group *errgroup.Group
	left  atomic.Int32 // of what is watched, how much was not read yet
}

// visit lasts until something fails, and says whether everything was read before.
func (a *agent) visit(ctx context.Context, access Access) (settled bool, err error) {
	api, err := open(ctx, a.want.Server, access, a.dial)
	if err != nil {
		return false, err
	}
	defer api.close()
	group, ctx := errgroup.WithContext(ctx)
	v := &visit{agent: a, api: api, group: group}
	v.left.Add(1) // ours, until all is begun
	see(ctx, v, servicesOf(a.infra), v.haveServices)
	switch a.want.Mode {
	case v1alpha1.AppsNodePort:
		v.seeRouter(ctx)
	case v1alpha1.AppsHostNetwork:
		v.seeRouters(ctx)
	default:
		v.seeMetalLB(ctx)
	}
	v.seeIngress(ctx)
	group.Go(func() error { return v.keepService(ctx, access) })
	v.arrived()
	err = group.Wait()
	a.mu.Lock()
	defer a.mu.Unlock()
	settled, a.settled = a.settled, false
	return settled, err
}

func (v *visit) seeRouter(ctx context.Context) {
	see(ctx, v, portsOf(input.RouterNodePort), func(found []*corev1.Service) {
		v.seen.Router = nil
		if len(found) > 0 {
			v.seen.Router = found[0]
		}
	})
	see(ctx, v, nodes, func(all []input.GuestNode) { v.seen.Nodes = all })
}

func (v *visit) seeRouters(ctx context.Context) {
	see(ctx, v, routers, func(all []input.GuestRouter) { v.seen.Routers = all })
	see(ctx, v, nodes, func(all []input.GuestNode) { v.seen.Nodes = all })
}

// seeIngress looks at the routers, too, once they are published on their workers, where nobody has decided the mode. An
// IngressController that goes is made anew (HyperShift, controllers/resources/ingress): until then it is as it was.
func (v *visit) seeIngress(ctx context.Context) {
	looking := v.want.Mode != "" // under the agent's lock
	seeLate(ctx, v, "ingresscontrollers.operator.openshift.io", ingress, func(found []*operatorv1.EndpointPublishingStrategy) {
		if len(found) == 0 {
			return
		}
		v.seen.Ingress = found[0]
		if !looking && found[0] != nil && found[0].Type == operatorv1.HostNetworkStrategyType {
			looking = true
			v.seeRouters(ctx)
		}
	})
}

func (v *visit) seeMetalLB(ctx context.Context) {
	var ofController, ofSpeaker []input.GuestWorkload // under the agent's lock
	see(ctx, v, ownersOf(v.want.Service), func(owners []types.NamespacedName) {
		v.seen.Foreign = len(owners) > 0 && owners[0] != v.infra
		poke(v.due)
	})
	have := func(part *[]input.GuestWorkload) func([]input.GuestWorkload) {
		return func(all []input.GuestWorkload) {
			*part = all
			v.seen.MetalLB.Workloads = slices.Concat(ofController, ofSpeaker)
		}
	}
	see(ctx, v, controllers, have(&ofController))
	see(ctx, v, speakers, have(&ofSpeaker))
	seeLate(ctx, v, "metallbs.metallb.io", metalLBs, func(all []input.GuestMetalLBObject) { v.seen.MetalLB.Objects = all })
	seeLate(ctx, v, "l2advertisements.metallb.io", advertisements, func(all []string) { v.seen.MetalLB.Advertisements = all })
}

func (v *visit) haveServices(ours []*corev1.Service) {
	v.ours, v.seen.Service = ours, nil
	for _, s := range ours {
		if s.UID == v.made {
			v.made = ""
		}
		if s.Namespace == v.want.Service.Namespace && s.Name == v.want.Service.Name {
			v.seen.Service = s
		}
	}
	poke(v.due)
}

// see watches a collection.
func see[T any](ctx context.Context, v *visit, c collection[T], have func([]T)) {
	have = awaited(v, have)
	v.group.Go(func() error { return follow(ctx, v.api, c, have) })
}

// awaited has a visit wait for the first reading of a collection, and takes the agent's lock for each.
func awaited[T any](v *visit, have func([]T)) func([]T) {
	v.left.Add(1)
	first := true
	return func(all []T) {
		v.update(func() { have(all) })
		if first {
			first = false
			v.arrived()
		}
	}
}

// arrived counts what has been read. With the last, the hosted cluster is seen.
func (v *visit) arrived() {
	if v.left.Add(-1) > 0 {
		return
	}
	v.update(func() {
		v.seen.Problem, v.known = nil, true
		if !v.settled { // what a settled visit begins to look at later shows nothing of what it made
			v.settled, v.made = true, ""
		}
	})
	poke(v.due)
}

// servedSoon is how often a kind is asked for whose definition is there: its version may be one that we do not know.
const servedSoon = 7

// seeLate watches a kind that a hosted cluster may lack, from the moment that its definition is there. Nothing is asked
// again in between but what a definition that is just made does not serve yet.
func seeLate[T any](ctx context.Context, v *visit, crd string, c collection[T], have func([]T)) {
	have = awaited(v, have)
	var there atomic.Bool
	news := make(chan struct{}, 1)
	v.group.Go(func() error {
		return follow(ctx, v.api, definition(crd), func(found []struct{}) {
			there.Store(len(found) > 0)
			poke(news)
		})
	})
	v.group.Go(func() error {
		for tries := 0; ; tries++ {
			var again <-chan time.Time
			if there.Load() && tries < servedSoon {
				again = time.After(backoff(tries))
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-news:
				tries = 0
			case <-again:
			}
			if there.Load() {
				err := follow(ctx, v.api, c, have)
				if tries < servedSoon && isUnsettled(err) {
					continue
				}
				if !apierrors.IsNotFound(err) {
					return err
				}
			}
			have(nil)
		}
	})
}

// isUnsettled says whether an API server may mean that a kind has just come, or is about to go: the cache of such a kind is not filled
// yet ("storage is (re)initializing"), or its watch begins before it. What was seen of it stays until it is asked again.
func isUnsettled(err error) bool {
	return apierrors.IsTooManyRequests(err) || apierrors.IsResourceExpired(err)
}
