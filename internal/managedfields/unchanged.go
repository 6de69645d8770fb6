// Package managedfields reads from an object's managedFields which fields we own, so that an intent that was applied already is not written
// again, and fields that others add can be removed.
package managedfields

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/cldmnky/oooi/internal/names"
)

// Intent returns a desired object in the form in which it is sent, with a digest of itself.
func Intent(desired runtime.ApplyConfiguration) (*unstructured.Unstructured, error) {
	text, err := json.Marshal(desired)
	if err != nil {
		return nil, fmt.Errorf("encoding %T: %w", desired, err)
	}
	want := &unstructured.Unstructured{}
	if err := json.Unmarshal(text, &want.Object); err != nil {
		return nil, fmt.Errorf("decoding %T: %w", desired, err)
	}
	sum := sha256.Sum256(text)
	annotations := want.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[names.AnnotationApplied] = hex.EncodeToString(sum[:8])
	want.SetAnnotations(annotations)
	return want, nil
}

// Unchanged says, without asking the API server, whether applying would change nothing: this intent was applied last, and nobody has changed or
// added a field since. The first is seen in our digest, the second in managedFields: a field that another manager changes moves out of our
// entry.
func Unchanged(live metav1.Object, want *unstructured.Unstructured) bool {
	return !slices.ContainsFunc(live.GetManagedFields(), Adds) && Whole(live, want)
}

// Whole is Unchanged for an object to which others may add fields.
func Whole(live metav1.Object, want *unstructured.Unstructured) bool {
	return was(live, want) && All(live, want)
}

// was says whether this intent was applied last, even if others changed the object since.
func was(live metav1.Object, want *unstructured.Unstructured) bool {
	return live.GetAnnotations()[names.AnnotationApplied] == want.GetAnnotations()[names.AnnotationApplied]
}

// Drifted says whether somebody else changed what was last applied with this intent: TakeOver may have been the last to write.
func Drifted(live metav1.Object, want *unstructured.Unstructured) bool {
	applied, is := live.GetAnnotations()[names.AnnotationApplied]
	return was(live, want) || is && applied == ""
}

// All says whether we own every field of an object that was applied.
func All(live metav1.Object, want *unstructured.Unstructured) bool {
	for _, entry := range live.GetManagedFields() {
		if entry.Manager == names.ManagerFieldOwner && entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == "" {
			var fields map[string]any
			return json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields) == nil && coversObject(fields, want.Object)
		}
	}
	return false
}

// coversObject says whether we own every field of an object except its type and identity, which no manager owns.
func coversObject(fields, object map[string]any) bool {
	for name, value := range object {
		switch name {
		case "apiVersion", "kind":
			continue
		case "metadata":
			value = withoutIdentity(value.(map[string]any))
		}
		if !covers(fields["f:"+name], value) {
			return false
		}
	}
	return true
}

func withoutIdentity(metadata map[string]any) map[string]any {
	rest := map[string]any{}
	for name, value := range metadata {
		if name != "name" && name != "namespace" {
			rest[name] = value
		}
	}
	return rest
}

// covers says whether a set of fields, in the form of FieldsV1 (meta/v1), contains a whole value: f:<name> is a field, k:<keys> an element of a
// list by its keys, v:<value> an element by its value; an empty set is owned as a whole.
func covers(owned, value any) bool {
	fields, ok := owned.(map[string]any)
	if !ok || len(fields) == 0 {
		return ok
	}
	switch v := value.(type) {
	case map[string]any:
		for name, inner := range v {
			if !covers(fields["f:"+name], inner) {
				return false
			}
		}
	case []any:
		for _, element := range v {
			if !coversElement(fields, element) {
				return false
			}
		}
	}
	return true
}

func coversElement(fields map[string]any, element any) bool {
	for path, inner := range fields {
		kind, text, _ := strings.Cut(path, ":")
		var key any
		if json.Unmarshal([]byte(text), &key) != nil {
			continue
		}
		if kind == "v" && reflect.DeepEqual(key, element) || kind == "k" && hasKeys(element, key) && covers(inner, element) {
			return true
		}
	}
	return false
}

// hasKeys says whether a list element has the keys of an entry. A key that the element leaves out has its default in the entry.
func hasKeys(element, keys any) bool {
	e, isMap := element.(map[string]any)
	k, isKeys := keys.(map[string]any)
	if !isMap || !isKeys {
		return false
	}
	for name, want := range k {
		if have, set := e[name]; set && !reflect.DeepEqual(have, want) {
			return false
		}
	}
	return true
}
