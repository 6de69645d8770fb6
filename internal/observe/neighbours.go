package observe

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/nad"
	"github.com/cldmnky/oooi/internal/plan"
)

// layer2 remembers what a configuration's segment is called: every Infra is compared with every other.
var layer2 sync.Map

func layer2Of(n *nad.NetworkAttachmentDefinition) string {
	if n == nil {
		return ""
	}
	if known, ok := layer2.Load(n.Spec.Config); ok {
		return known.(string)
	}
	config, err := nad.Parse(n.Spec.Config)
	if err != nil {
		return ""
	}
	layer2.Store(n.Spec.Config, config.Layer2())
	return config.Layer2()
}

// neighbours reads the other Infras of the same layer 2.
func (o *Observer) neighbours(ctx context.Context, seen *Infra) error {
	all, err := o.infras(ctx)
	if err != nil {
		return err
	}
	segment := layer2Of(seen.NAD)
	for i := range all {
		other := &all[i]
		if segment == "" || other.UID == seen.Input.Infra.UID || other.DeletionTimestamp != nil {
			continue
		}
		n := plan.Neighbour{Infra: other}
		if n.NAD, err = o.sharedNAD(ctx, plan.Refs(other).NAD); err != nil {
			return err
		}
		if layer2Of(n.NAD) != segment {
			continue
		}
		if n.Children, err = o.children(ctx, other); err != nil {
			return err
		}
		seen.Neighbours = append(seen.Neighbours, n)
	}
	return nil
}

// infras are all Infras, shared with the cache: a plan does not change its input, and copying each for each would cost
// the square of their number.
func (o *Observer) infras(ctx context.Context) ([]v1alpha1.Infra, error) {
	all := &v1alpha1.InfraList{}
	if err := o.Reader.List(ctx, all, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing Infras: %w", err)
	}
	return all.Items, nil
}

// sharedNAD is a NetworkAttachmentDefinition shared with the cache, for the same reason.
func (o *Observer) sharedNAD(ctx context.Context, key types.NamespacedName) (*nad.NetworkAttachmentDefinition, error) {
	n := &nad.NetworkAttachmentDefinition{}
	if !o.Kinds.Served(n) {
		return nil, nil
	}
	err := o.Reader.Get(ctx, key, n, client.UnsafeDisableDeepCopy)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading NetworkAttachmentDefinition %s: %w", key, err)
	}
	if err != nil {
		return nil, nil
	}
	return n, nil
}

// OnSameLayer2 names the other Infras that a change of one may concern.
func (o *Observer) OnSameLayer2(ctx context.Context, infra *v1alpha1.Infra) ([]types.NamespacedName, error) {
	ours, err := o.sharedNAD(ctx, plan.Refs(infra).NAD)
	if err != nil {
		return nil, err
	}
	all, err := o.OnLayer2Of(ctx, ours)
	return slices.DeleteFunc(all, func(key types.NamespacedName) bool { return key == client.ObjectKeyFromObject(infra) }), err
}

// OnLayer2Of names the Infras on the layer 2 that a NetworkAttachmentDefinition leads to.
func (o *Observer) OnLayer2Of(ctx context.Context, n *nad.NetworkAttachmentDefinition) ([]types.NamespacedName, error) {
	segment := layer2Of(n)
	if segment == "" {
		return nil, nil
	}
	all, err := o.infras(ctx)
	if err != nil {
		return nil, err
	}
	var there []types.NamespacedName
	for i := range all {
		theirs, err := o.sharedNAD(ctx, plan.Refs(&all[i]).NAD)
		if err != nil {
			return nil, err
		}
		if layer2Of(theirs) == segment {
			there = append(there, client.ObjectKeyFromObject(&all[i]))
		}
	}
	return there, nil
}
