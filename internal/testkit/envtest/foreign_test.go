package envtest_test

import (
	"reflect"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/cldmnky/oooi/internal/clusterapi"
	"github.com/cldmnky/oooi/internal/dpf"
	"github.com/cldmnky/oooi/internal/metallb"
	"github.com/cldmnky/oooi/internal/testkit/envtest"
)

func TestWhatIsReadOfForeignKindsIsThere(t *testing.T) {
	g := NewWithT(t)
	crds, err := envtest.Foreign()
	g.Expect(err).NotTo(HaveOccurred())
	for kind, of := range map[string]any{
		"DPUCluster": dpf.DPUCluster{}, "DPU": dpf.DPU{}, "BFB": dpf.BFB{}, "DPUFlavor": dpf.DPUFlavor{}, "DPUNode": dpf.DPUNode{}, "DPFOperatorConfig": dpf.DPFOperatorConfig{},
		"DPUDeployment": dpf.DPUDeployment{}, "DPUServiceTemplate": dpf.DPUServiceTemplate{}, "DPUServiceConfiguration": dpf.DPUServiceConfiguration{},
		"IPAddressPool": metallb.IPAddressPool{}, "L2Advertisement": metallb.L2Advertisement{},
		"Machine": clusterapi.Machine{},
	} {
		g.Expect(absent(reflect.TypeOf(of), schemaOf(crds, kind), kind)).To(BeEmpty())
	}
}

func TestAForeignFieldThatIsNotThereIsFound(t *testing.T) {
	g := NewWithT(t)
	schema := apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"is": {Type: "string"}}}
	g.Expect(absent(reflect.TypeOf(struct {
		Is  string   `json:"is"`
		Not []string `json:"not"`
	}{}), schema, "K")).To(Equal([]string{"K.not"}))
}

// schemaOf is the schema of a kind's storage version.
func schemaOf(crds []*apiextensionsv1.CustomResourceDefinition, kind string) apiextensionsv1.JSONSchemaProps {
	for _, crd := range crds {
		for _, v := range crd.Spec.Versions {
			if crd.Spec.Names.Kind == kind && v.Storage {
				return *v.Schema.OpenAPIV3Schema
			}
		}
	}
	return apiextensionsv1.JSONSchemaProps{}
}

// absent are the paths of a Go type that a schema lacks, or has with another type.
func absent(of reflect.Type, schema apiextensionsv1.JSONSchemaProps, path string) (all []string) {
	switch {
	case of.Kind() == reflect.Pointer:
		return absent(of.Elem(), schema, path)
	case of.Kind() == reflect.Slice && schema.Type == "array":
		return absent(of.Elem(), *schema.Items.Schema, path+"[]")
	case of.Kind() == reflect.String && schema.Type == "string", of.Kind() == reflect.Bool && schema.Type == "boolean", of.Kind() == reflect.Int64 && schema.Type == "integer", of.Kind() == reflect.Int && schema.Type == "integer":
		return nil
	case of.Kind() == reflect.Struct && schema.Type == "string": // a time
		return nil
	case of.Kind() == reflect.Map && schema.AdditionalProperties != nil:
		return nil
	case of.Kind() != reflect.Struct || schema.Type != "object":
		return []string{path}
	}
	for field := range of.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" || name == "-" || name == "metadata" {
			continue
		}
		all = append(all, absent(field.Type, schema.Properties[name], path+"."+name)...)
	}
	return all
}
