package apply

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/internal/managedfields"
	"github.com/cldmnky/oooi/internal/names"
)

// takeOver makes us the owner of fields that others added. The cache only tells that there are some; the API server tells which.
func (w *Writer) takeOver(ctx context.Context, live client.Object, want *unstructured.Unstructured) error {
	if live == nil || !slices.ContainsFunc(live.GetManagedFields(), managedfields.Adds) {
		return nil
	}
	now := &metav1.PartialObjectMetadata{}
	now.SetGroupVersionKind(want.GroupVersionKind())
	if err := w.Live.Get(ctx, client.ObjectKeyFromObject(want), now); err != nil || !slices.ContainsFunc(now.ManagedFields, managedfields.Adds) {
		return client.IgnoreNotFound(err)
	}
	patch, err := managedfields.TakeOver(now)
	if err != nil {
		return err
	}
	return w.Client.Patch(ctx, now, client.RawPatch(types.JSONPatchType, patch), client.FieldOwner(names.ManagerFieldOwner))
}
