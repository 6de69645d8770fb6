package diffcli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

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

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/change"
	"github.com/cldmnky/oooi/internal/component"
	"github.com/cldmnky/oooi/internal/dpf"
	"github.com/cldmnky/oooi/internal/nad"
)

// judged are the kinds whose changes are foretold.
func judged() []schema.GroupKind {
	all := []schema.GroupKind{
		{Group: v1alpha1.GroupVersion.Group, Kind: "Infra"}, {Group: nad.GroupVersion.Group, Kind: "NetworkAttachmentDefinition"},
		{Group: hyperv1.GroupVersion.Group, Kind: "HostedCluster"}, {Group: hyperv1.GroupVersion.Group, Kind: "NodePool"},
		{Group: corev1.GroupName, Kind: "Namespace"}, {Group: dpuv1.GroupVersion.Group, Kind: "DPUHCPBridge"},
	}
	for _, c := range component.All {
		all = append(all, c.GVK().GroupKind())
	}
	return append(all, ofDPF...)
}

// ofDPF are the kinds that bridges are planned from.
var ofDPF = []schema.GroupKind{
	{Group: dpf.GroupVersion.Group, Kind: "DPUCluster"}, {Group: dpf.GroupVersion.Group, Kind: "DPU"}, {Group: dpf.GroupVersion.Group, Kind: "DPUFlavor"},
	{Group: dpf.GroupVersion.Group, Kind: "BFB"}, {Group: dpf.ServiceGroupVersion.Group, Kind: "DPUDeployment"}, {Group: dpf.OperatorGroupVersion.Group, Kind: "DPFOperatorConfig"},
}

// written is an object of a file before and after it is applied, with all its fields. Before is nil if it does not exist.
type written struct {
	before, after *unstructured.Unstructured
	// planned is what it will be, as planning reads it.
	planned client.Object
	// unread says why it is not known whether it exists; empty if it is.
	unread string
}

// apply has the API server say what kubectl apply would make of an object, without storing it. If the caller may not do that, the values that
// the API server would fill in are missing.
func (c *cluster) apply(ctx context.Context, m Manifest) (w written, err error) {
	current := &unstructured.Unstructured{}
	current.SetGroupVersionKind(m.GroupVersionKind())
	switch err = c.api.Get(ctx, client.ObjectKeyFromObject(m), current); {
	case apierrors.IsForbidden(err):
		w.unread = fmt.Sprintf("%s: whether %s %s exists, and what becomes of it, is not known: you may not %s", m.File, m.GetKind(), m.GetName(), c.right("get", m.GroupVersionKind(), m.GetNamespace()))
		return w, nil
	case apierrors.IsNotFound(err):
		w.after, err = c.create(ctx, m)
	case err != nil:
		return w, fmt.Errorf("%s: reading %s %s: %w", m.File, m.GetKind(), m.GetName(), err)
	default:
		w.before = current
		w.after, err = c.patch(ctx, m, current)
	}
	if err != nil {
		return w, err
	}
	w.planned, err = c.typed(w.after)
	return w, err
}

func (c *cluster) create(ctx context.Context, m Manifest) (*unstructured.Unstructured, error) {
	next := m.DeepCopy()
	err := c.api.Create(ctx, next, client.DryRunAll, client.FieldValidation("Strict"))
	if apierrors.IsForbidden(err) {
		c.cannot("create", m.GroupVersionKind(), m.GetNamespace())
		next, err = m.DeepCopy(), nil
	}
	if err != nil {
		return nil, m.refused(err)
	}
	next.SetUID(c.newUID())
	return next, nil
}

// newUID is in place of one that a dry run gave: it tells new objects apart, and of two of the same second the first one comes first.
func (c *cluster) newUID() types.UID {
	c.news++
	return types.UID(fmt.Sprintf("new-%06d", c.news))
}

func (c *cluster) patch(ctx context.Context, m Manifest, current *unstructured.Unstructured) (*unstructured.Unstructured, error) {
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
		return patchedHere(m.GroupVersionKind(), now, patch)
	}
	if err != nil {
		return nil, m.refused(err)
	}
	return next, nil
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

func patchedHere(gvk schema.GroupVersionKind, now, patch []byte) (*unstructured.Unstructured, error) {
	text, err := jsonpatch.MergePatch(now, patch)
	if err != nil {
		return nil, err
	}
	next := &unstructured.Unstructured{}
	next.SetGroupVersionKind(gvk)
	return next, json.Unmarshal(text, &next.Object)
}

// refused says why. Of a field that its kind does not have, the API server repeats the whole object before it says which (k8s.io/apiserver,
// pkg/endpoints/handlers/patch.go, applyPatchToCurrentObject).
func (m Manifest) refused(err error) error {
	if _, strict, is := strings.Cut(err.Error(), "strict decoding error: "); is {
		return fmt.Errorf("%s: the API server would refuse %s %s: %s", m.File, m.GetKind(), m.GetName(), strict)
	}
	return fmt.Errorf("%s: the API server would refuse %s %s: %w", m.File, m.GetKind(), m.GetName(), err)
}

// typed is an object as planning reads it: as the operator's cache keeps it.
func (c *cluster) typed(u *unstructured.Unstructured) (client.Object, error) {
	made, err := c.api.Scheme().New(u.GroupVersionKind())
	if err != nil {
		return nil, err
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, made); err != nil {
		return nil, fmt.Errorf("reading %s %s: %w", u.GetKind(), u.GetName(), err)
	}
	trimmed, err := c.options.DefaultTransform(made)
	if err != nil {
		return nil, err
	}
	return trimmed.(client.Object), nil
}

// writes are what becomes of all objects of files. The report has those of which it is not foretold; a namespace is added where it is missing, as
// kubectl does.
func (c *cluster) writes(ctx context.Context, manifests []Manifest, namespace string, r *Report) (all []written, err error) {
	for _, m := range manifests {
		if !slices.Contains(judged(), m.GroupVersionKind().GroupKind()) {
			r.PassedOver = append(r.PassedOver, fmt.Sprintf("%s %s (%s)", m.GetKind(), m.GetName(), m.File))
			continue
		}
		mapping, err := c.api.RESTMapper().RESTMapping(m.GroupVersionKind().GroupKind(), m.GroupVersionKind().Version)
		if err != nil {
			return nil, fmt.Errorf("%s: the cluster does not know %s: %w", m.File, m.GroupVersionKind(), err)
		}
		if m.GetNamespace() == "" && mapping.Scope.Name() == "namespace" {
			m.SetNamespace(namespace)
		}
		w, err := c.apply(ctx, m)
		switch {
		case err != nil:
			return nil, err
		case w.unread != "":
			r.Unread = append(r.Unread, w.unread)
		default:
			all = append(all, w)
		}
	}
	return all, nil
}

// objects are those that change, except Infras and bridges, which have their own parts of the report.
func (w written) objects() []change.Object {
	switch w.planned.(type) {
	case *v1alpha1.Infra, *dpuv1.DPUHCPBridge:
		return nil
	}
	if w.before == nil {
		return change.Written(w.after.GetKind(), nil, w.after)
	}
	return change.Written(w.after.GetKind(), w.before, w.after)
}
