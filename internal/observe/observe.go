// Package observe reads what plans are made from: one call gives one consistent picture, read in stages, so that nothing is read without
// permission. It writes nothing. Packages that write (internal/apply, internal/status) read what they are about to write themselves, and
// internal/guest reads hosted clusters.
package observe

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/internal/plan/input"
)

// Observer reads for the manager.
type Observer struct {
	// Reader is the cache.
	Reader client.Reader
	// Live asks the API server itself.
	Live client.Reader
	// Settings are passed to every plan; networks that they leave out are read from the cluster.
	Settings input.Settings
	// Kinds that a cluster may lack.
	Kinds *Kinds
	// Listeners to control-plane namespaces.
	Listeners *Listeners
	// Eventless reads no Events, which are asked of the API server, and only explain why a pod does not start.
	Eventless bool
	// Now is the clock, for pauses and for the age of pods.
	Now func() time.Time
}

// KindOf names an object's kind to a person; a list's ends in List.
func KindOf(object runtime.Object) string {
	return cmp.Or(object.GetObjectKind().GroupVersionKind().Kind, reflect.TypeOf(object).Elem().Name())
}

// get reads one object; nil if the object or its kind does not exist.
func get[T any, P interface {
	*T
	client.Object
}](ctx context.Context, o *Observer, key types.NamespacedName, more ...client.GetOption) (P, error) {
	object := P(new(T))
	if !o.Kinds.Served(object) || key.Name == "" {
		return nil, nil
	}
	err := o.Reader.Get(ctx, key, object, more...)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s %s: %w", KindOf(object), key, err)
	}
	return object, nil
}

func (o *Observer) namespaces(ctx context.Context, all []string) ([]corev1.Namespace, error) {
	var found []corev1.Namespace
	for _, name := range all {
		n, err := get[corev1.Namespace](ctx, o, types.NamespacedName{Name: name})
		if err != nil {
			return nil, err
		}
		if n != nil {
			found = append(found, *n)
		}
	}
	return found, nil
}

// exists looks for a UID among all objects of a kind, when called, which happens only after a restore. If the list fails, the UID counts as
// existing: what it owns is not ours.
func (o *Observer) exists(ctx context.Context, all client.ObjectList) func(types.UID) bool {
	return func(uid types.UID) bool {
		found := false
		err := o.Reader.List(ctx, all, client.UnsafeDisableDeepCopy)
		if err == nil {
			err = meta.EachListItem(all, func(object runtime.Object) error {
				found = found || object.(client.Object).GetUID() == uid
				return nil
			})
		}
		return err != nil || found
	}
}
