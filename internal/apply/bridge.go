package apply

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/cldmnky/oooi/internal/dpf"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/plan/bridge"
)

// Key makes the key with which etcd is encrypted. It only creates: an existing key is never overwritten.
func (w *Writer) Key(ctx context.Context, s *corev1.Secret) error {
	key := make([]byte, bridge.KeyLength)
	_, _ = rand.Read(key) // it never fails
	made := s.DeepCopy()
	made.Data = map[string][]byte{hyperv1.AESCBCKeySecretKey: key}
	if err := w.Client.Create(ctx, made, client.FieldOwner(names.ManagerFieldOwner)); err != nil {
		return fmt.Errorf("making the encryption key in Secret %s: %w", client.ObjectKeyFromObject(s), err)
	}
	written(ctx, "create", "Secret", s)
	return nil
}

// Adopt labels an object as a bridge's, if it is as it was read.
func (w *Writer) Adopt(ctx context.Context, o client.Object, labels map[string]string) error {
	changed := o.DeepCopyObject().(client.Object)
	all := maps.Clone(labels)
	for key, value := range o.GetLabels() {
		if _, ours := all[key]; !ours {
			all[key] = value
		}
	}
	changed.SetLabels(all)
	gvk, err := apiutil.GVKForObject(o, w.Client.Scheme())
	if err != nil {
		return err
	}
	if err := w.Client.Patch(ctx, changed, client.MergeFromWithOptions(o, client.MergeFromWithOptimisticLock{}), client.FieldOwner(names.ManagerFieldOwner)); err != nil {
		return fmt.Errorf("labelling %s %s: %w", gvk.Kind, client.ObjectKeyFromObject(o), err)
	}
	written(ctx, "patch", gvk.Kind, o)
	return nil
}

// Keep removes those of the owner's Secrets whose names are not in keep.
func (w *Writer) Keep(ctx context.Context, owner Owner, all []corev1.Secret, keep ...string) (wrote bool, err error) {
	for i := range all {
		if s := &all[i]; !slices.Contains(keep, s.Name) && owner.owns(s) {
			err = errors.Join(err, w.Remove(ctx, s))
			wrote = true
		}
	}
	return wrote, err
}

// Remove deletes an object that was read, and no other with its name.
func (w *Writer) Remove(ctx context.Context, o client.Object) error {
	if o.GetDeletionTimestamp() != nil {
		return nil
	}
	gvk, err := apiutil.GVKForObject(o, w.Client.Scheme())
	if err != nil {
		return err
	}
	err = w.Client.Delete(ctx, o, client.Preconditions{UID: new(o.GetUID())}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting %s %s: %w", gvk.Kind, client.ObjectKeyFromObject(o), err)
	}
	written(ctx, "delete", gvk.Kind, o)
	return nil
}

// Refer sets the name of the Secret with a DPUCluster's kubeconfig, if it is still empty as it was when read.
func (w *Writer) Refer(ctx context.Context, cluster *dpf.DPUCluster, secret string) error {
	changed := cluster.DeepCopy()
	changed.Spec.Kubeconfig = secret
	err := w.Client.Patch(ctx, changed, client.MergeFromWithOptions(cluster, client.MergeFromWithOptimisticLock{}), client.FieldOwner(names.ManagerFieldOwner))
	if err != nil {
		return fmt.Errorf("setting spec.kubeconfig of DPUCluster %s: %w", client.ObjectKeyFromObject(cluster), err)
	}
	written(ctx, "patch", "DPUCluster", cluster)
	return nil
}

// Unrefer removes that name again, if it is still there. DPF refuses to change it, but allows its removal (dpucluster_types.go).
func (w *Writer) Unrefer(ctx context.Context, cluster *dpf.DPUCluster, secret string) error {
	const path = "/spec/kubeconfig"
	patch, err := json.Marshal([]map[string]any{{"op": "test", "path": path, "value": secret}, {"op": "remove", "path": path}})
	if err != nil {
		return err
	}
	err = w.Client.Patch(ctx, cluster.DeepCopy(), client.RawPatch(types.JSONPatchType, patch), client.FieldOwner(names.ManagerFieldOwner))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("removing spec.kubeconfig of DPUCluster %s: %w", client.ObjectKeyFromObject(cluster), err)
	}
	written(ctx, "patch", "DPUCluster", cluster)
	return nil
}

// Created sets the condition that DPF waits for. DPF's schema gives the list no keys, so it is written as a whole, and only if it is as
// read.
func (w *Writer) Created(ctx context.Context, cluster *dpf.DPUCluster, now metav1.Time) error {
	live := &dpf.DPUCluster{}
	if err := w.Live.Get(ctx, client.ObjectKeyFromObject(cluster), live); err != nil {
		return fmt.Errorf("reading DPUCluster %s: %w", client.ObjectKeyFromObject(cluster), err)
	}
	changed := live.DeepCopy()
	if !meta.SetStatusCondition(&changed.Status.Conditions, metav1.Condition{
		Type: dpf.ConditionCreated, Status: metav1.ConditionTrue, Reason: "HostedClusterCreated", LastTransitionTime: now,
		Message: "a DPUHCPBridge made its control plane", ObservedGeneration: live.Generation,
	}) {
		return nil // the cache is behind
	}
	err := w.Client.Status().Patch(ctx, changed, client.MergeFromWithOptions(live, client.MergeFromWithOptimisticLock{}), client.FieldOwner(names.ManagerFieldOwner))
	if err != nil {
		return fmt.Errorf("setting condition %s of DPUCluster %s: %w", dpf.ConditionCreated, client.ObjectKeyFromObject(cluster), err)
	}
	written(ctx, "patch", "DPUCluster", cluster)
	return nil
}
