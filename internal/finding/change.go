package finding

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// Object names one object of the API.
type Object struct{ APIVersion, Kind, Namespace, Name string }

// String is kind namespace/name.
func (o Object) String() string {
	if o.Namespace == "" {
		return o.Kind + " " + o.Name
	}
	return o.Kind + " " + o.Namespace + "/" + o.Name
}

func (o Object) or(fallback Object) Object {
	if o == (Object{}) {
		return fallback
	}
	return o
}

// Values are fields by path, e.g. spec.networkConfig.mtu; nil removes the field.
type Values map[string]any

// Change is what to write into one object.
type Change struct {
	Of     Object
	Values Values
}

// YAML is the change as a JSON merge patch (RFC 7386) that names its object: `kubectl patch --type merge -f X --patch-file X` takes it as it
// is, and so does `kubectl apply -f X` if it removes nothing and the object does not exist yet.
func (c Change) YAML() string {
	metadata := map[string]any{"name": c.Of.Name}
	if c.Of.Namespace != "" {
		metadata["namespace"] = c.Of.Namespace
	}
	patch := map[string]any{"apiVersion": c.Of.APIVersion, "kind": c.Of.Kind, "metadata": metadata}
	for _, path := range slices.Sorted(maps.Keys(c.Values)) {
		put(patch, strings.Split(path, "."), c.Values[path])
	}
	text, err := yaml.Marshal(patch)
	if err != nil {
		panic(fmt.Sprintf("%v is no YAML: %v", patch, err)) // planning makes values of plain types only
	}
	return string(text)
}

func put(in map[string]any, path []string, value any) {
	if len(path) == 1 {
		in[path[0]] = value
		return
	}
	below, _ := in[path[0]].(map[string]any)
	if below == nil {
		below = map[string]any{}
		in[path[0]] = below
	}
	put(below, path[1:], value)
}

// YAML has all changes that mend what a finding is about, one document for each object; empty if there is not exactly one way to.
func (f Finding) YAML() string {
	var documents []string
	for _, c := range f.Changes {
		documents = append(documents, c.YAML())
	}
	return strings.Join(documents, "---\n")
}
