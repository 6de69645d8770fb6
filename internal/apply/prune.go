package apply

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// prune removes what the owner owns and no longer wants: the plan of a disabled component is empty.
func (w *Writer) prune(ctx context.Context, owner Owner, undesired func(client.Object) bool, applied *Applied) error {
	owned, err := w.inventory(ctx, owner)
	errs := []error{err}
	for _, o := range owned {
		if !undesired(o) || o.GetDeletionTimestamp() != nil {
			continue
		}
		err := w.Client.Delete(ctx, o, client.Preconditions{UID: new(o.GetUID())}, client.PropagationPolicy("Background"))
		if client.IgnoreNotFound(err) != nil {
			errs = append(errs, fmt.Errorf("removing %s: %w", identityOf(o), err))
			continue
		}
		written(ctx, "delete", o.GetObjectKind().GroupVersionKind().Kind, o)
		applied.Wrote = true
	}
	return errors.Join(errs...)
}

// inventory is everything that the owner owns, in any namespace.
func (w *Writer) inventory(ctx context.Context, owner Owner) ([]client.Object, error) {
	atHome, err := w.owned(ctx, owner, owner.Namespace, owner.Kinds)
	if err != nil {
		return nil, err
	}
	elsewhere, err := w.owned(ctx, owner, "", owner.Anywhere)
	if err != nil {
		return nil, err
	}
	return append(atHome, elsewhere...), nil
}

// owned are the owner's objects of these kinds, in one namespace or (empty) in all. A kind that the cluster does not know has no objects.
func (w *Writer) owned(ctx context.Context, owner Owner, namespace string, kinds []schema.GroupVersionKind) ([]client.Object, error) {
	var all []client.Object
	for _, kind := range kinds {
		made, err := w.Client.Scheme().New(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if err != nil {
			return nil, err
		}
		list := made.(client.ObjectList)
		err = w.Client.List(ctx, list, client.MatchingFields{IndexNames: owner.Names}, client.InNamespace(namespace), client.UnsafeDisableDeepCopy)
		if meta.IsNoMatchError(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("listing what %s owns of %s: %w", owner.UID, kind.Kind, err)
		}
		err = meta.EachListItem(list, func(o runtime.Object) error {
			if object := o.(client.Object); owner.owns(object) {
				object.GetObjectKind().SetGroupVersionKind(kind)
				all = append(all, object)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}
