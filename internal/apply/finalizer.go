package apply

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/names"
)

// Hold puts our finalizer on an object before anything is made for it that only the finalizer can remove.
func (w *Writer) Hold(ctx context.Context, object client.Object, finalizer string) error {
	return w.finalizer(ctx, object, finalizer, controllerutil.AddFinalizer)
}

// Release takes our finalizer off: nothing of the object is left elsewhere.
func (w *Writer) Release(ctx context.Context, object client.Object, finalizer string) error {
	return w.finalizer(ctx, object, finalizer, controllerutil.RemoveFinalizer)
}

// finalizer patches instead of applying: after a restore another manager owns the entry, and applying without it would
// leave it there for ever.
func (w *Writer) finalizer(ctx context.Context, object client.Object, finalizer string, change func(client.Object, string) bool) error {
	gvk, err := apiutil.GVKForObject(object, w.Client.Scheme())
	if err != nil {
		return err
	}
	changed := object.DeepCopyObject().(client.Object)
	if !change(changed, finalizer) {
		return nil
	}
	err = w.Client.Patch(ctx, changed, client.MergeFromWithOptions(object, client.MergeFromWithOptimisticLock{}), client.FieldOwner(names.ManagerFieldOwner))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("changing the finalizer of %s %s: %w", gvk.Kind, client.ObjectKeyFromObject(object), err)
	}
	written("patch", gvk.Kind)
	return nil
}

// End takes away everything of an Infra that is being deleted, and says whether that is done. The order matters: while a
// DHCP pod runs it keeps its leases, so the pods end first. Deleting in the foreground keeps the DHCPServer until then.
func (w *Writer) End(ctx context.Context, infra *v1alpha1.Infra, owner Owner) (done bool, err error) {
	dhcp := &v1alpha1.DHCPServer{}
	err = w.Live.Get(ctx, client.ObjectKey{Namespace: infra.Namespace, Name: names.DHCPServer(infra.Name)}, dhcp)
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		return false, fmt.Errorf("reading the DHCPServer of Infra %s/%s: %w", infra.Namespace, infra.Name, err)
	case owner.owns(dhcp):
		return false, w.deleteInForeground(ctx, dhcp)
	}
	if err := w.forgetLeases(ctx, infra); err != nil {
		return false, err
	}
	_, err = w.To(ctx, owner, nil)
	return err == nil, err
}

func (w *Writer) deleteInForeground(ctx context.Context, dhcp *v1alpha1.DHCPServer) error {
	if dhcp.DeletionTimestamp != nil && controllerutil.ContainsFinalizer(dhcp, metav1.FinalizerDeleteDependents) {
		return nil
	}
	if err := w.Client.Delete(ctx, dhcp, client.PropagationPolicy(metav1.DeletePropagationForeground)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting DHCPServer %s/%s: %w", dhcp.Namespace, dhcp.Name, err)
	}
	written("delete", "DHCPServer")
	return nil
}

// forgetLeases removes every lease that names the Infra; no other Infra can have its name and namespace.
func (w *Writer) forgetLeases(ctx context.Context, infra *v1alpha1.Infra) error {
	ours := client.MatchingLabelsSelector{Selector: labels.SelectorFromSet(labels.Set{names.LabelInfra: infra.Name, names.LabelInfraNamespace: infra.Namespace})}
	if err := w.Client.DeleteAllOf(ctx, &v1alpha1.DHCPLease{}, client.InNamespace(infra.Namespace), ours); err != nil {
		return fmt.Errorf("deleting the leases of Infra %s/%s: %w", infra.Namespace, infra.Name, err)
	}
	written("delete", "DHCPLease")
	return nil
}
