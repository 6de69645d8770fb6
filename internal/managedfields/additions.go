package managedfields

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cldmnky/oooi/internal/names"
)

// If others add to an object of ours an element of a keyed list, or a field that we leave out, it stays when we apply: server-side apply removes
// only what the applier owned before. So we first become its owner, as client-go's csaupgrade does for what kubectl owned; the next apply then
// removes it.

// Adds says whether an entry is another manager's and has fields that are ours to write.
func Adds(e metav1.ManagedFieldsEntry) bool {
	return e.Manager != names.ManagerFieldOwner && e.Subresource == "" && len(divide(fieldsOf(e)).ours) > 0
}

// Addition stands in the cache for all entries that add fields.
var Addition = metav1.ManagedFieldsEntry{Manager: "another", Operation: metav1.ManagedFieldsOperationUpdate, FieldsV1: metav1.NewFieldsV1(`{"f:spec":{}}`)}

// othersToo are fields that others may write: labels and annotations, also of a pod template (kubectl rollout restart), status, and what
// OpenShift adds to every ServiceAccount.
var othersToo = map[string]bool{"f:metadata": true, "f:status": true, "f:secrets": true, "f:imagePullSecrets": true}

type divided struct{ ours, theirs map[string]any }

// divide splits a set of fields, in the form of FieldsV1, into those that are ours to write and the others.
func divide(fields map[string]any) divided {
	d := divided{map[string]any{}, map[string]any{}}
	for path, inner := range fields {
		below, _ := inner.(map[string]any)
		if othersToo[path] {
			d.theirs[path] = inner
			continue
		}
		if len(below) == 0 {
			d.ours[path] = inner
			continue
		}
		parts := divide(below)
		if len(parts.ours) > 0 {
			d.ours[path] = parts.ours
		}
		if len(parts.theirs) > 0 {
			d.theirs[path] = parts.theirs
		}
	}
	return d
}

// TakeOver returns the JSON patch that makes us the owner of the fields that others added; nil if there are none.
func TakeOver(now metav1.Object) ([]byte, error) {
	if !slices.ContainsFunc(now.GetManagedFields(), Adds) {
		return nil, nil
	}
	patch := []map[string]any{
		{"op": "replace", "path": "/metadata/managedFields", "value": joined(now.GetManagedFields())},
		{"op": "replace", "path": "/metadata/resourceVersion", "value": now.GetResourceVersion()},
	}
	if _, applied := now.GetAnnotations()[names.AnnotationApplied]; applied { // if the apply fails, the changed digest has it repeated
		patch = append(patch, map[string]any{"op": "replace", "path": "/metadata/annotations/" + strings.ReplaceAll(names.AnnotationApplied, "/", "~1"), "value": ""})
	}
	text, err := json.Marshal(patch)
	if err != nil {
		return nil, fmt.Errorf("encoding managedFields: %w", err)
	}
	return text, nil
}

// joined moves the fields that are ours to write from the entries of others to ours.
func joined(all []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
	var ours *metav1.ManagedFieldsEntry
	taken := map[string]any{}
	var rest []metav1.ManagedFieldsEntry
	for _, e := range all {
		switch {
		case e.Manager == names.ManagerFieldOwner && e.Operation == metav1.ManagedFieldsOperationApply && e.Subresource == "":
			ours = &e
			continue
		case Adds(e):
			parts := divide(fieldsOf(e))
			join(taken, parts.ours)
			if e.FieldsV1 = fieldsV1(parts.theirs); len(parts.theirs) == 0 {
				continue
			}
		}
		rest = append(rest, e)
	}
	if ours == nil { // a restored object: who restored it owns its fields
		ours = &metav1.ManagedFieldsEntry{Manager: names.ManagerFieldOwner, Operation: metav1.ManagedFieldsOperationApply, APIVersion: all[0].APIVersion, FieldsType: "FieldsV1", Time: all[0].Time}
	}
	join(taken, fieldsOf(*ours))
	ours.FieldsV1 = fieldsV1(taken)
	return append(rest, *ours)
}

// join adds a set of fields to another.
func join(to, more map[string]any) {
	for path, inner := range more {
		below, _ := inner.(map[string]any)
		has, _ := to[path].(map[string]any)
		if has == nil {
			has = map[string]any{}
			to[path] = has
		}
		join(has, below)
	}
}

func fieldsOf(e metav1.ManagedFieldsEntry) map[string]any {
	var fields map[string]any
	if e.FieldsV1 == nil || json.Unmarshal(e.FieldsV1.GetRawBytes(), &fields) != nil {
		return nil
	}
	return fields
}

func fieldsV1(fields map[string]any) *metav1.FieldsV1 {
	text, err := json.Marshal(fields)
	if err != nil {
		panic(err) // it was JSON before
	}
	return metav1.NewFieldsV1(string(text))
}
