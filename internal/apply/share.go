package apply

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/kept"
	"github.com/cldmnky/oooi/internal/managedfields"
	"github.com/cldmnky/oooi/internal/names"
)

// An Infra that is made from a HostedCluster is its users' too: a field that somebody set wins over a derived one
// (operator-rules.md#fields-that-users-set). The API server knows who set what, and reports those fields as conflicts when we apply without
// force.

// Share applies an object that its users write too, and never changes a field that they set: a finding names each. It leaves alone an
// object that is not the owner's, with a finding, or that is being deleted, without one. It removes nothing.
func (w *Writer) Share(ctx context.Context, owner Owner, desired runtime.ApplyConfiguration) (Applied, error) {
	want, err := managedfields.Intent(desired)
	if err != nil {
		return Applied{}, err
	}
	id := identityOf(want)
	live, err := w.live(ctx, want)
	if err != nil {
		return Applied{}, fmt.Errorf("reading %s: %w", id, err)
	}
	switch {
	case live != nil && (live.GetDeletionTimestamp() != nil || owner.succeeds(live)):
		return Applied{}, nil // it is being deleted, and is made again once it is gone
	case live != nil && !owner.owns(live):
		return Applied{Findings: []finding.Finding{finding.Refuse(finding.Provisioned, "InfraExists").
			Say("%s exists and was not created from this HostedCluster; the operator does not change it: remove annotation %s, or delete the Infra to have it recreated", id, names.AnnotationInfra)}}, nil
	case live != nil && settled(live, want):
		return Applied{}, nil
	}
	return w.yielding(ctx, want)
}

// succeeds says whether an object belongs to an earlier owner of our name: the garbage collector removes it.
func (o Owner) succeeds(object client.Object) bool {
	ref := metav1.GetControllerOf(object)
	return o.inherits(object) && NameOf(strings.ToLower(ref.Kind), object.GetNamespace(), ref.Name) == o.Names
}

// yielding applies without force, and omits from the spec what others have set, as the API server says.
func (w *Writer) yielding(ctx context.Context, want *unstructured.Unstructured) (applied Applied, err error) {
	id := identityOf(want)
	err = w.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(want), client.FieldOwner(names.ManagerFieldOwner))
	if apierrors.IsConflict(err) {
		for _, field := range conflicts(err) {
			unstructured.RemoveNestedField(want.Object, field...)
			applied.Findings = append(applied.Findings, finding.Warn(finding.Provisioned, "FieldSetByHand").
				Say("%s has its own %s, which wins over what follows from this HostedCluster; change it there", id, strings.Join(field, ".")))
		}
		err = w.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(want), client.FieldOwner(names.ManagerFieldOwner), client.ForceOwnership)
	}
	if apierrors.IsInvalid(err) || apierrors.IsForbidden(err) {
		applied.Findings = append(applied.Findings, finding.Refuse(finding.Provisioned, "Rejected").Say("the API server rejects %s: %s", id, err))
	}
	if err != nil {
		return applied, fmt.Errorf("applying %s: %w", id, err)
	}
	written(ctx, "apply", id.Kind, want)
	applied.Wrote = true
	w.awaitCache(ctx, []*unstructured.Unstructured{want})
	return applied, nil
}

// tooLarge is the finding for an object of which the cache has only a part; it is left alone, because nobody can tell whether it changed.
func tooLarge(live client.Object) *finding.Finding {
	for _, f := range kept.Judge(v1alpha1.ConditionReady, live) {
		return &f
	}
	return nil
}

// conflicts are the fields of a spec that an apply without force may not set. Fields that mark an object as ours are not given up.
func conflicts(err error) (fields [][]string) {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return nil
	}
	for _, cause := range status.Status().Details.Causes {
		path := strings.Split(strings.TrimPrefix(cause.Field, "."), ".")
		if cause.Type == metav1.CauseTypeFieldManagerConflict && path[0] == "spec" {
			fields = append(fields, path)
		}
	}
	return fields
}

// settled says, without asking the API server, that applying would change nothing: the same intent was applied last, the marks of the
// object are still ours, and every field of the spec is set, by us or by whoever changed it.
func settled(live client.Object, want *unstructured.Unstructured) bool {
	if live.GetAnnotations()[names.AnnotationApplied] != want.GetAnnotations()[names.AnnotationApplied] {
		return false
	}
	marks := &unstructured.Unstructured{Object: map[string]any{"metadata": want.Object["metadata"]}}
	is, err := runtime.DefaultUnstructuredConverter.ToUnstructured(live)
	return err == nil && managedfields.All(live, marks) && sets(is["spec"], want.Object["spec"])
}

// sets says whether a value has every field of another, with any value.
func sets(has, want any) bool {
	w, isMap := want.(map[string]any)
	if !isMap {
		return has != nil
	}
	h, _ := has.(map[string]any)
	for name, value := range w {
		if !sets(h[name], value) {
			return false
		}
	}
	return true
}

// Disown removes our ownerReference from an Infra and nothing else: nothing is torn down, and its labels still say what it was made from.
func (w *Writer) Disown(ctx context.Context, infra *v1alpha1.Infra, owner Owner) error {
	changed := infra.DeepCopy()
	changed.OwnerReferences = nil
	for _, ref := range infra.OwnerReferences {
		if ref.UID != owner.UID {
			changed.OwnerReferences = append(changed.OwnerReferences, ref)
		}
	}
	err := w.Client.Patch(ctx, changed, client.MergeFromWithOptions(infra, client.MergeFromWithOptimisticLock{}), client.FieldOwner(names.ManagerFieldOwner))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("releasing Infra %s/%s: %w", infra.Namespace, infra.Name, err)
	}
	written(ctx, "patch", "Infra", infra)
	return nil
}
