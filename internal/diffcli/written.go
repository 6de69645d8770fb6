package diffcli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/change"
	"github.com/cldmnky/oooi/internal/component"
	"github.com/cldmnky/oooi/internal/nad"
)

// judged are the kinds whose changes are foretold.
func judged() []schema.GroupKind {
	all := []schema.GroupKind{
		{Group: v1alpha1.GroupVersion.Group, Kind: "Infra"}, {Group: nad.GroupVersion.Group, Kind: "NetworkAttachmentDefinition"},
		{Group: hyperv1.GroupVersion.Group, Kind: "HostedCluster"}, {Group: hyperv1.GroupVersion.Group, Kind: "NodePool"},
		{Group: corev1.GroupName, Kind: "Namespace"},
	}
	for _, c := range component.All {
		all = append(all, c.GVK().GroupKind())
	}
	return all
}

// written is an object of a file before and after it is applied. Before is nil if it does not exist.
type written struct {
	kind          string
	before, after client.Object
}

// apply has the API server say what kubectl apply would make of an object, without storing it. If the caller may not do that, the values that
// the API server would fill in are missing.
func (c *cluster) apply(ctx context.Context, m Manifest) (w written, err error) {
	w.kind = m.GetKind()
	current := &unstructured.Unstructured{}
	current.SetGroupVersionKind(m.GroupVersionKind())
	err = c.api.Get(ctx, client.ObjectKeyFromObject(m), current)
	if apierrors.IsForbidden(err) {
		c.cannot("get", m.GroupVersionKind(), m.GetNamespace())
	}
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		w.after, err = c.create(ctx, m)
		return w, err
	}
	if err != nil {
		return w, fmt.Errorf("%s: reading %s %s: %w", m.File, m.GetKind(), m.GetName(), err)
	}
	if w.before, err = c.typed(current); err != nil {
		return w, err
	}
	w.after, err = c.patch(ctx, m, current)
	return w, err
}

func (c *cluster) create(ctx context.Context, m Manifest) (client.Object, error) {
	next := m.DeepCopy()
	err := c.api.Create(ctx, next, client.DryRunAll, client.FieldValidation("Strict"))
	if apierrors.IsForbidden(err) {
		c.cannot("create", m.GroupVersionKind(), m.GetNamespace())
		next, err = m.DeepCopy(), nil
	}
	if err != nil {
		return nil, m.refused(err)
	}
	next.SetUID("") // that of a dry run is nobody's
	return c.typed(next)
}

func (c *cluster) patch(ctx context.Context, m Manifest, current *unstructured.Unstructured) (client.Object, error) {
	modified, err := m.applied()
	if err != nil {
		return nil, err
	}
	now, err := json.Marshal(current.Object)
	if err != nil {
		return nil, err
	}
	patch, err := jsonmergepatch.CreateThreeWayJSONMergePatch([]byte(current.GetAnnotations()[corev1.LastAppliedConfigAnnotation]), modified, now)
	if err != nil {
		return nil, fmt.Errorf("%s: comparing %s %s: %w", m.File, m.GetKind(), m.GetName(), err)
	}
	next := current.DeepCopy()
	err = c.api.Patch(ctx, next, client.RawPatch(types.MergePatchType, patch), client.DryRunAll, client.FieldValidation("Strict"))
	if apierrors.IsForbidden(err) {
		c.cannot("patch", m.GroupVersionKind(), m.GetNamespace())
		return c.patchedHere(m.GroupVersionKind(), now, patch)
	}
	if err != nil {
		return nil, m.refused(err)
	}
	return c.typed(next)
}

// applied is the object as kubectl applies it: with itself in an annotation (kubectl, pkg/util/apply.go, GetModifiedConfiguration).
func (m Manifest) applied() ([]byte, error) {
	text, err := json.Marshal(m.Object)
	if err != nil {
		return nil, err
	}
	with := m.DeepCopy()
	annotations := with.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[corev1.LastAppliedConfigAnnotation] = string(text)
	with.SetAnnotations(annotations)
	return json.Marshal(with.Object)
}

func (c *cluster) patchedHere(gvk schema.GroupVersionKind, now, patch []byte) (client.Object, error) {
	text, err := jsonpatch.MergePatch(now, patch)
	if err != nil {
		return nil, err
	}
	next := &unstructured.Unstructured{}
	next.SetGroupVersionKind(gvk)
	if err := json.Unmarshal(text, &next.Object); err != nil {
		return nil, err
	}
	return c.typed(next)
}

func (m Manifest) refused(err error) error {
	return fmt.Errorf("%s: the API server would refuse %s %s: %w", m.File, m.GetKind(), m.GetName(), err)
}

// typed is an object as planning reads it.
func (c *cluster) typed(u *unstructured.Unstructured) (client.Object, error) {
	made, err := c.api.Scheme().New(u.GroupVersionKind())
	if err != nil {
		return nil, err
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, made); err != nil {
		return nil, fmt.Errorf("reading %s %s: %w", u.GetKind(), u.GetName(), err)
	}
	return made.(client.Object), nil
}

// writes are what becomes of all objects of files. What is not foretold is told; a namespace is added where it is missing, as kubectl does.
func (c *cluster) writes(ctx context.Context, manifests []Manifest, namespace string) (all []written, passedOver []string, err error) {
	for _, m := range manifests {
		if !slices.Contains(judged(), m.GroupVersionKind().GroupKind()) {
			passedOver = append(passedOver, fmt.Sprintf("%s %s (%s)", m.GetKind(), m.GetName(), m.File))
			continue
		}
		mapping, err := c.api.RESTMapper().RESTMapping(m.GroupVersionKind().GroupKind(), m.GroupVersionKind().Version)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: the cluster does not know %s: %w", m.File, m.GroupVersionKind(), err)
		}
		if m.GetNamespace() == "" && mapping.Scope.Name() == "namespace" {
			m.SetNamespace(namespace)
		}
		w, err := c.apply(ctx, m)
		if err != nil {
			return nil, nil, err
		}
		all = append(all, w)
	}
	return all, passedOver, nil
}

// objects are those that change, except Infras, which have their own part of the report.
func (w written) objects() []change.Object {
	if _, own := w.after.(*v1alpha1.Infra); own {
		return nil
	}
	return change.Written(w.kind, w.before, w.after)
}
