// Package foresee reads an Infra with an Observer, and plans it as it is, or as it would be if other objects were written.
package foresee

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/change"
	"github.com/cldmnky/oooi/internal/component"
	"github.com/cldmnky/oooi/internal/nad"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/observe"
	"github.com/cldmnky/oooi/internal/plan"
	"github.com/cldmnky/oooi/internal/plan/desired"
	"github.com/cldmnky/oooi/internal/plan/input"
	"github.com/cldmnky/oooi/internal/plan/provision"
	"github.com/cldmnky/oooi/internal/plan/workload"
)

// Planner plans what was read of an Infra.
type Planner func(context.Context, input.Input) (plan.InfraPlan, error)

// Now is the picture of an Infra as it is; without an Infra, if there is none.
func Now(ctx context.Context, o *observe.Observer, planner Planner, key types.NamespacedName) (change.Picture, error) {
	p, err := planned(ctx, o, planner, key)
	if err != nil || p.Infra == nil {
		return p, err
	}
	for _, c := range component.All {
		if err := read(ctx, o, &p, c); err != nil {
			return p, err
		}
	}
	return p, nil
}

// Then is the picture of an Infra for an Observer of the objects as they would be: its children become what is planned. Before is its picture
// as it is.
func Then(ctx context.Context, o *observe.Observer, planner Planner, key types.NamespacedName, before change.Picture) (change.Picture, error) {
	p, err := planned(ctx, o, planner, key)
	if err != nil || p.Infra == nil {
		return p, err
	}
	was := before.Plan.Objects
	if before.Paused != "" { // it was not written
		was = nil
	}
	written, err := applied(ctx, o, was, p.Plan.Objects)
	if err != nil {
		return p, err
	}
	o = o.Over(written...)
	for _, object := range p.Plan.Objects {
		if c, is := component.Applied(object); is {
			if err := read(ctx, o, &p, c); err != nil {
				return p, err
			}
		}
	}
	return p, nil
}

func planned(ctx context.Context, o *observe.Observer, planner Planner, key types.NamespacedName) (change.Picture, error) {
	seen, err := o.Infra(ctx, key)
	if err != nil || seen.Gone() || seen.Input.Infra.DeletionTimestamp != nil {
		return change.Picture{}, err
	}
	p := change.Picture{Infra: seen.Input.Infra, Paused: seen.Pause.Reason, Children: map[component.Name]workload.Child[component.Server]{}}
	p.Plan, err = planner(ctx, seen.Input)
	return p, err
}

// read adds the Infra's child of a component, if it has one.
func read(ctx context.Context, o *observe.Observer, p *change.Picture, c component.Component) error {
	child, err := o.Child(ctx, c, types.NamespacedName{Namespace: p.Infra.Namespace, Name: names.Child(p.Infra.Name, string(c.Name))})
	if err == nil && child.Found && metav1.IsControlledBy(child.Server, p.Infra) {
		p.Children[c.Name] = child.Child
	}
	return err
}

// applied are the children and networks of a plan as server-side apply leaves them: what others have written to them stays, and what was
// planned before and no longer is goes.
func applied(ctx context.Context, o *observe.Observer, before, after []runtime.ApplyConfiguration) (all []client.Object, err error) {
	for _, object := range after {
		live := empty(object)
		if live == nil {
			continue
		}
		id := identity(object)
		if err := o.Reader.Get(ctx, id, live); client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("reading %s %s: %w", observe.KindOf(live), id, err)
		} else if apierrors.IsNotFound(err) {
			live = empty(object)
		}
		text, err := merged(encodedTwin(before, object), desired.Encoded(object), desired.Encoded(live))
		if err != nil {
			return nil, err
		}
		next := empty(object)
		if err := json.Unmarshal(text, next); err != nil {
			return nil, fmt.Errorf("merging %s %s: %w", observe.KindOf(live), id, err)
		}
		all = append(all, next)
	}
	return all, nil
}

// empty is an object of the kind, if workloads are planned from that.
func empty(object runtime.ApplyConfiguration) client.Object {
	if c, is := component.Applied(object); is {
		return c.New()
	}
	if _, is := object.(*nad.ApplyConfiguration); is {
		return &nad.NetworkAttachmentDefinition{}
	}
	return nil
}

// identity is the namespace and name of an apply configuration.
func identity(object runtime.ApplyConfiguration) types.NamespacedName {
	var o metav1.PartialObjectMetadata
	if err := json.Unmarshal(desired.Encoded(object), &o); err != nil {
		panic(err) // it was encoded just now
	}
	return client.ObjectKeyFromObject(&o)
}

// encodedTwin is the object of the same kind and name in another plan; empty if that has none.
func encodedTwin(all []runtime.ApplyConfiguration, of runtime.ApplyConfiguration) []byte {
	for _, o := range all {
		if fmt.Sprintf("%T", o) == fmt.Sprintf("%T", of) && identity(o) == identity(of) {
			return desired.Encoded(o)
		}
	}
	return nil
}

// Provisioned is the Infra that a HostedCluster asks for, as it will be; nil if it asks for none, or may not have it.
func Provisioned(ctx context.Context, before, after *observe.Observer, key types.NamespacedName) (*v1alpha1.Infra, error) {
	was, err := before.Provisioning(ctx, key)
	if err != nil {
		return nil, err
	}
	is, err := after.Provisioning(ctx, key)
	if err != nil || is.Gone() || is.Pause.Active() {
		return nil, err
	}
	wanted := provision.Of(is.Input).Infra
	if wanted == nil || is.Input.Infra != nil && !metav1.IsControlledBy(is.Input.Infra, is.HostedCluster) {
		return nil, nil
	}
	var planned []byte
	if !was.Gone() {
		if p := provision.Of(was.Input).Infra; p != nil {
			planned = desired.Encoded(p)
		}
	}
	live := &v1alpha1.Infra{}
	if is.Input.Infra != nil {
		live = is.Input.Infra
	}
	text, err := merged(planned, desired.Encoded(wanted), desired.Encoded(live))
	if err != nil {
		return nil, err
	}
	next := &v1alpha1.Infra{}
	return next, json.Unmarshal(text, next)
}
