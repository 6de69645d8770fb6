package appsingress

import (
	"context"
	"slices"

	operatorv1 "github.com/openshift/api/operator/v1"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/guest/bounded"
	"github.com/cldmnky/oooi/internal/guest/kubeconfig"
	"github.com/cldmnky/oooi/internal/guest/pace"
	"github.com/cldmnky/oooi/internal/guest/visits"
	"github.com/cldmnky/oooi/internal/plan/input"
)

func (a *agent) link(secrets visits.SecretSource) *visits.Link {
	return &visits.Link{
		Secret: a.want.Secret, Server: a.want.Server, Secrets: secrets, Visit: a.visit, Trouble: a.trouble, Seldom: a.seldom,
		Granting: finding.Granting(a.want.Secret.Namespace, "apps-ingress", "appsIngress.namespaces"),
	}
}

// visit runs until something fails, and says whether everything was read by then.
func (a *agent) visit(ctx context.Context, access kubeconfig.Access) (settled bool, err error) {
	api, err := bounded.Open(ctx, a.want.Server, access, a.dial)
	if err != nil {
		return false, err
	}
	defer api.Close()
	group, ctx := errgroup.WithContext(ctx)
	v := &visit{agent: a, api: api, group: group}
	v.left.Add(1) // for visit itself, until all watches are begun
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
	group.Go(func() error { return v.followSlowed(ctx) })
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

// seeIngress watches the routers too once they use HostNetwork, if the mode is not decided. A deleted IngressController is recreated
// (HyperShift, controllers/resources/ingress): until then its last state stands.
func (v *visit) seeIngress(ctx context.Context) {
	looking := v.want.Mode != "" // guarded by the agent's lock
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
	var ofController, ofSpeaker []input.GuestWorkload // guarded by the agent's lock
	see(ctx, v, ownersOf(v.want.Service), func(owners []types.NamespacedName) {
		v.seen.Foreign = len(owners) > 0 && owners[0] != v.infra
		pace.Poke(v.Due)
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
	pace.Poke(v.Due)
}
