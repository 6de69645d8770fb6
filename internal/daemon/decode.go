package daemon

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/yaml"

	"github.com/cldmnky/oooi/internal/yamldoc"
)

// strict reports an unknown field with its full path.
var strict = json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme, scheme, json.SerializerOptions{Yaml: true, Strict: true})

// Decode reads the one object of a file. Without a kind, it is taken for the expected kind.
func Decode(content []byte, into client.Object) error {
	expected, err := apiutil.GVKForObject(into, scheme)
	if err != nil {
		return err
	}
	objects, err := documents(content)
	if err != nil {
		return err
	}
	if len(objects) != 1 {
		return fmt.Errorf("it holds %d objects; expected one %s", len(objects), expected.Kind)
	}
	_, found, err := strict.Decode(objects[0], nil, into)
	if found != nil && *found != expected {
		return fmt.Errorf("it holds a %s of %s; expected a %s of %s", found.Kind, found.GroupVersion(), expected.Kind, expected.GroupVersion())
	}
	if err != nil {
		return fmt.Errorf("%w; docs/reference/api.md has the fields of a %s", err, expected.Kind)
	}
	return nil
}

// documents are the non-empty documents of a YAML file.
func documents(content []byte) (all [][]byte, err error) {
	err = yamldoc.Each(content, func(_ int, doc []byte) error {
		var anything any
		if yaml.Unmarshal(doc, &anything) != nil || anything != nil { // Decode reports what is not YAML
			all = append(all, doc)
		}
		return nil
	})
	return all, err
}
