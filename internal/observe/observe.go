// Package observe reads what is planned by: one call, one consistent picture, staged so that nothing is read where nothing may be. It writes
// nothing. Whoever writes reads what he is about to write himself (internal/apply, internal/status), and what is in hosted clusters
// internal/guest reads.
package observe

import (
	"context"
	"fmt"
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
	// Settings are handed on to every plan; networks that they leave out are read.
	Settings input.Settings
	// Kinds that a cluster may lack.
	Kinds *Kinds
	// Listeners to control-plane namespaces.
	Listeners *Listeners
	// Now tells whether a pause is over.
	Now func() time.Time
}

// get reads one object; nil when it is not there, or its kind is not.
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
		return nil, fmt.Errorf("reading %T %s: %w", object, key, err)
	}
	return object, nil
}

// namespaces reads those of a list that are there.
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

// exists looks for a UID among all objects of a kind, when asked: only after a restore anybody asks. Where that cannot be
// told, it counts as living: what it owns is not ours.
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
