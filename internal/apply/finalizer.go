package apply

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/kept"
	"github.com/cldmnky/oooi/internal/names"
)

// AddFinalizer adds our finalizer to an object before anything is made for it that only the finalizer can remove.
func (w *Writer) AddFinalizer(ctx context.Context, object client.Object, finalizer string) error {
	return w.finalizer(ctx, object, finalizer, controllerutil.AddFinalizer)
}

// RemoveFinalizer removes our finalizer, when nothing of the object is left elsewhere.
func (w *Writer) RemoveFinalizer(ctx context.Context, object client.Object, finalizer string) error {
	return w.finalizer(ctx, object, finalizer, controllerutil.RemoveFinalizer)
}

// finalizer patches rather than applies: after a restore another manager owns the entry, and an apply without it would leave it there for
// ever.
func (w *Writer) finalizer(ctx context.Context, object client.Object, finalizer string, change func(client.Object, string) bool) error {
	gvk, err := apiutil.GVKForObject(object, w.Client.Scheme())
	if err != nil {
		return err
	}
	if _, inPart := kept.InPart(object); inPart { // the patch would remove everybody else's finalizers
		if object, err = w.metadata(ctx, object, gvk); err != nil || object == nil {
			return err
		}
	}
	changed := object.DeepCopyObject().(client.Object)
	if !change(changed, finalizer) {
		return nil
	}
	err = w.Client.Patch(ctx, changed, client.MergeFromWithOptions(object, client.MergeFromWithOptimisticLock{}), client.FieldOwner(names.ManagerFieldOwner))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("changing the finalizer of %s %s: %w", gvk.Kind, client.ObjectKeyFromObject(object), err)
	}
	written(ctx, "patch", gvk.Kind, object)
	return nil
}

// metadata of an object as the API server has it; nil if it is gone. It lists, because the manager may not get a single Infra.
func (w *Writer) metadata(ctx context.Context, object client.Object, gvk schema.GroupVersionKind) (client.Object, error) {
	all := &metav1.PartialObjectMetadataList{}
	all.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	err := w.Live.List(ctx, all, client.InNamespace(object.GetNamespace()), client.MatchingFields{"metadata.name": object.GetName()})
	if err != nil || len(all.Items) == 0 || all.Items[0].UID != object.GetUID() {
		return nil, err
	}
	all.Items[0].SetGroupVersionKind(gvk)
	return &all.Items[0], nil
}

// End removes all that an Infra made except its leases, and says whether its DHCPServer is still there. A running DHCP pod holds its
// leases: deleted in the foreground, the DHCPServer stays until its pods have ended. Everything else goes at once.
func (w *Writer) End(ctx context.Context, infra *v1alpha1.Infra, owner Owner) (left bool, err error) {
	dhcp, err := w.dhcpServer(ctx, infra, owner)
	if err != nil {
		return true, err
	}
	if dhcp != nil && (dhcp.DeletionTimestamp == nil || !controllerutil.ContainsFinalizer(dhcp, metav1.FinalizerDeleteDependents)) {
		err = w.deleteServer(ctx, dhcp, metav1.DeletePropagationForeground)
	}
	others := func(o client.Object) bool { return o.GetObjectKind().GroupVersionKind().Kind != "DHCPServer" }
	return dhcp != nil, errors.Join(err, w.prune(ctx, owner, others, &Applied{}))
}

// Forget removes the leases of an Infra, and its DHCPServer where that is still there: its pods are not waited for any longer.
func (w *Writer) Forget(ctx context.Context, infra *v1alpha1.Infra, owner Owner) error {
	if err := w.forgetLeases(ctx, infra); err != nil {
		return err
	}
	dhcp, err := w.dhcpServer(ctx, infra, owner)
	if err != nil || dhcp == nil {
		return err
	}
	return w.deleteServer(ctx, dhcp, metav1.DeletePropagationBackground)
}

// dhcpServer of an Infra, as the API server has it; nil if it has none.
func (w *Writer) dhcpServer(ctx context.Context, infra *v1alpha1.Infra, owner Owner) (*v1alpha1.DHCPServer, error) {
	dhcp := &v1alpha1.DHCPServer{}
	err := w.Live.Get(ctx, client.ObjectKey{Namespace: infra.Namespace, Name: names.DHCPServer(infra.Name)}, dhcp)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading the DHCPServer of Infra %s/%s: %w", infra.Namespace, infra.Name, err)
	case !owner.owns(dhcp):
		return nil, nil
	}
	return dhcp, nil
}

func (w *Writer) deleteServer(ctx context.Context, dhcp *v1alpha1.DHCPServer, how metav1.DeletionPropagation) error {
	if err := w.Client.Delete(ctx, dhcp, client.PropagationPolicy(how)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting DHCPServer %s/%s: %w", dhcp.Namespace, dhcp.Name, err)
	}
	written(ctx, "delete", "DHCPServer", dhcp)
	return nil
}

// forgetLeases removes every lease labelled with the Infra; no other Infra can have its name and namespace.
func (w *Writer) forgetLeases(ctx context.Context, infra *v1alpha1.Infra) error {
	ours := client.MatchingLabelsSelector{Selector: labels.SelectorFromSet(labels.Set{names.LabelInfra: infra.Name, names.LabelInfraNamespace: infra.Namespace})}
	if err := w.Client.DeleteAllOf(ctx, &v1alpha1.DHCPLease{}, client.InNamespace(infra.Namespace), ours); err != nil {
		return fmt.Errorf("deleting the leases of Infra %s/%s: %w", infra.Namespace, infra.Name, err)
	}
	written(ctx, "delete", "DHCPLease", infra)
	return nil
}
