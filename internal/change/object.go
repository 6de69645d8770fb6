package change

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/cldmnky/oooi/internal/component"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/plan/desired"
)

// What becomes of an object or a pod.
const (
	Create  = "create"
	Update  = "update"
	Replace = "replace"
	Delete  = "delete"
)

// Object is one that is written.
type Object struct {
	Verb      string  `json:"verb"`
	Kind      string  `json:"kind"`
	Namespace string  `json:"namespace,omitempty"`
	Name      string  `json:"name"`
	Fields    []Field `json:"fields,omitempty"`
}

// Field of an object that is updated. From is empty if it is new, To if it goes.
type Field struct {
	Path string `json:"path"`
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
}

// flat is an object as paths and values.
type flat struct {
	Object
	values map[string]string
}

// remembered are the annotations in which the operator keeps what it decided from: other fields say that in other words.
var remembered = []string{names.AnnotationTemplate, names.AnnotationSeal, names.AnnotationServed, names.AnnotationRules, names.AnnotationInputs, names.AnnotationFormerInputs}

func flattened(object any) flat {
	var is struct {
		Kind     string
		Metadata struct{ Name, Namespace string }
	}
	var all map[string]any
	for _, into := range []any{&is, &all} {
		if err := json.Unmarshal(desired.Encoded(object), into); err != nil {
			panic(err) // it was encoded just now
		}
	}
	delete(all, "status")
	f := flat{Object{Kind: is.Kind, Namespace: is.Metadata.Namespace, Name: is.Metadata.Name}, map[string]string{}}
	f.take("", all)
	return f
}

func (f flat) take(path string, value any) {
	switch v := value.(type) {
	case map[string]any:
		for name, inner := range v {
			if path == "metadata.annotations" && slices.Contains(remembered, name) {
				continue
			}
			f.take(within(path, name), inner)
		}
	case []any:
		for i, inner := range v {
			f.take(path+"["+entry(v, i)+"]", inner)
		}
	case nil: // as left out
	case string:
		f.values[path] = v
	default:
		f.values[path] = string(desired.Encoded(v))
	}
}

func within(path, name string) string {
	switch {
	case path == "":
		return name
	case strings.ContainsAny(name, "./"):
		return path + "[" + name + "]"
	}
	return path + "." + name
}

// entry names an entry of a list: by its name, as in Kubernetes' lists of containers, ports and volumes, or else by its number.
func entry(list []any, i int) string {
	object, _ := list[i].(map[string]any)
	name, named := object["name"].(string)
	again := slices.ContainsFunc(list[:i], func(other any) bool {
		o, _ := other.(map[string]any)
		return named && o["name"] == name
	})
	if !named || again {
		return fmt.Sprint(i)
	}
	return name
}

// between are the fields that differ.
func (f flat) between(to flat) (all []Field) {
	paths := maps.Clone(f.values)
	maps.Copy(paths, to.values)
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		from, was := f.values[path]
		next, is := to.values[path]
		if was != is || from != next {
			all = append(all, Field{Path: path, From: from, To: next})
		}
	}
	return all
}

func (f flat) same(as flat) bool {
	return f.Kind == as.Kind && f.Namespace == as.Namespace && f.Name == as.Name
}

// objects are those that differ between two plans.
func objects(before, after []runtime.ApplyConfiguration) (all []Object) {
	var had []flat
	for _, o := range before {
		had = append(had, flattened(o))
	}
	for _, o := range after {
		is := flattened(o)
		i := slices.IndexFunc(had, is.same)
		switch {
		case i < 0:
			is.Verb = Create
			all = append(all, is.Object)
			continue
		case string(desired.Encoded(before[i])) != string(desired.Encoded(o)):
			if is.Verb, is.Fields = Update, had[i].between(is); len(is.Fields) == 0 {
				is.Fields = []Field{{Path: "metadata.annotations", To: "what the operator decided from"}}
			}
			all = append(all, is.Object)
		}
		before, had = slices.Delete(slices.Clone(before), i, i+1), slices.Delete(had, i, i+1)
	}
	for _, gone := range had {
		gone.Verb = Delete
		all = append(all, gone.Object)
	}
	return all
}

// Written compares what is written of an object: its labels, annotations and what it specifies. Nil is an object that does not exist.
func Written(kind string, before, after component.Server) []Object {
	switch {
	case before == nil && after == nil:
		return nil
	case after == nil:
		from := written(kind, before)
		from.Verb = Delete
		return []Object{from.Object}
	}
	to := written(kind, after)
	if to.Verb = Create; before == nil {
		return []Object{to.Object}
	}
	if to.Verb, to.Fields = Update, written(kind, before).between(to); len(to.Fields) == 0 {
		return nil
	}
	return []Object{to.Object}
}

func written(kind string, o component.Server) flat {
	all := map[string]any{}
	if err := json.Unmarshal(desired.Encoded(o), &all); err != nil {
		panic(err) // it was encoded just now
	}
	annotations := maps.Clone(o.GetAnnotations())
	delete(annotations, corev1.LastAppliedConfigAnnotation) // its spec says the same
	delete(annotations, names.AnnotationGiven)
	all["kind"], all["metadata"] = kind, map[string]any{"namespace": o.GetNamespace(), "name": o.GetName(), "labels": o.GetLabels(), "annotations": annotations}
	delete(all, "apiVersion")
	return flattened(all)
}
