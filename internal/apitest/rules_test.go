// Package apitest holds the API's schema against a real API server.
package apitest

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/cldmnky/oooi/internal/testkit/envtest"
)

// rule is one rule of the schema by example.
type rule struct {
	Kind, Says string
	// Only this is said: no other rule speaks, and none fails to be evaluated.
	Only               bool
	Update             bool
	Accepted, Rejected map[string]any
}

var (
	admin *rest.Config
	api   client.Client
)

func TestMain(m *testing.M) {
	envtest.Main(m, true, func(cluster *envtest.Cluster) (err error) {
		admin = cluster.Admin
		api, err = client.New(admin, client.Options{})
		return err
	})
}

// saidByKubernetes are the bounds of numbers, enums and keys of lists, whose words the schema cannot choose; each tells what would do.
var saidByKubernetes = regexp.MustCompile(`should be (less|greater) than or equal to|supported values:|Duplicate value`)

func TestEachRuleAcceptsAndRejects(t *testing.T) {
	base := read[map[string]map[string]any](t, "testdata/base.yaml")
	for _, r := range read[[]rule](t, "testdata/rules.yaml") {
		t.Run(r.Kind+"/"+strings.ReplaceAll(r.Says, "/", "∕"), func(t *testing.T) {
			g := NewWithT(t)
			send := func(patch map[string]any) error {
				return api.Create(t.Context(), object(merged(base[r.Kind], patch)), client.DryRunAll)
			}
			if r.Update {
				there := object(merged(base[r.Kind], nil))
				g.Expect(api.Create(t.Context(), there)).To(Succeed())
				t.Cleanup(func() { NewWithT(t).Expect(api.Delete(context.Background(), there)).To(Succeed()) })
				send = func(patch map[string]any) error {
					return api.Update(t.Context(), object(merged(there.Object, patch)), client.DryRunAll)
				}
			}
			g.Expect(send(r.Accepted)).To(Succeed())
			err := send(r.Rejected)
			g.Expect(err).To(MatchError(ContainSubstring(r.Says)))
			if r.Only {
				g.Expect(err.(apierrors.APIStatus).Status().Details.Causes).To(HaveLen(1), "%v", err)
			}
			if !saidByKubernetes.MatchString(err.Error()) {
				g.Expect(err).To(MatchError(ContainSubstring("e.g. ")), "a value that would do")
			}
		})
	}
}

// Every rule in the CRDs has its examples: a new one without fails here.
func TestEveryRuleHasExamples(t *testing.T) {
	files, err := filepath.Glob("../../config/crd/bases/*.yaml")
	g := NewWithT(t)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(files).NotTo(BeEmpty())
	rules := read[[]rule](t, "testdata/rules.yaml")
	for _, file := range files {
		crd := read[apiextensionsv1.CustomResourceDefinition](t, file)
		for _, message := range messages(*crd.Spec.Versions[0].Schema.OpenAPIV3Schema) {
			g.Expect(slices.ContainsFunc(rules, func(r rule) bool { return strings.Contains(message, r.Says) })).
				To(BeTrue(), "no example of %s rejects with %q", crd.Spec.Names.Kind, message)
			g.Expect(message).To(ContainSubstring("e.g. "), crd.Spec.Names.Kind)
		}
	}
}

// messages are those of all CEL rules below a schema.
func messages(s apiextensionsv1.JSONSchemaProps) []string {
	var all []string
	for _, v := range s.XValidations {
		all = append(all, v.Message)
	}
	for _, p := range s.Properties {
		all = append(all, messages(p)...)
	}
	if s.Items != nil && s.Items.Schema != nil {
		all = append(all, messages(*s.Items.Schema)...)
	}
	return all
}

// unbounded are what is not ours to bound, by the end of its path.
var unbounded = map[string]string{
	".apiVersion": "the API server's", ".kind": "the API server's",
	".leaseTime": "a metav1.Duration takes no maxLength; its rule bounds it", ".cacheTTL": "likewise",
	".vmRef.uid":         "a types.UID takes no maxLength; only DHCP daemons write it",
	".nodeSelector{}":    "a label's value: no node has one of more than 63 characters",
	".tolerations[].key": "corev1", ".tolerations[].value": "corev1", ".tolerations[].operator": "corev1", ".tolerations[].effect": "corev1",
	".resources.claims": "corev1", ".resources.claims[].name": "corev1", ".resources.claims[].request": "corev1",
	".resources.limits": "corev1", ".resources.requests": "corev1",
}

func TestEveryStringListAndMapHasAMaximum(t *testing.T) {
	files, err := filepath.Glob("../../config/crd/bases/*.yaml")
	g := NewWithT(t)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(files).NotTo(BeEmpty())
	for _, file := range files {
		crd := read[apiextensionsv1.CustomResourceDefinition](t, file)
		for _, path := range withoutMaximum(*crd.Spec.Versions[0].Schema.OpenAPIV3Schema, "") {
			known := func(end string) bool { return strings.HasSuffix(path, end) }
			g.Expect(slices.ContainsFunc(slices.Collect(maps.Keys(unbounded)), known)).To(BeTrue(), "%s%s has no maximum", crd.Spec.Names.Kind, path)
		}
	}
}

func withoutMaximum(s apiextensionsv1.JSONSchemaProps, path string) []string {
	var all []string
	switch {
	case s.Type == "string" && s.MaxLength == nil && s.Enum == nil && s.Format != "date-time",
		s.Type == "array" && s.MaxItems == nil,
		s.AdditionalProperties != nil && s.MaxProperties == nil:
		all = append(all, path)
	}
	for name, p := range s.Properties {
		all = append(all, withoutMaximum(p, path+"."+name)...)
	}
	if s.Items != nil && s.Items.Schema != nil {
		all = append(all, withoutMaximum(*s.Items.Schema, path+"[]")...)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		all = append(all, withoutMaximum(*s.AdditionalProperties.Schema, path+"{}")...)
	}
	return all
}

func TestSamplesAreAccepted(t *testing.T) {
	files, err := filepath.Glob("../../config/samples/*.yaml")
	g := NewWithT(t)
	g.Expect(err).NotTo(HaveOccurred())
	sent := 0
	for _, file := range files {
		o := read[map[string]any](t, file)
		if o["apiVersion"] == nil { // kustomization.yaml
			continue
		}
		sample := object(o)
		sample.SetNamespace("default")
		g.Expect(api.Create(t.Context(), sample, client.DryRunAll, client.FieldValidation("Strict"))).To(Succeed(), file)
		sent++
	}
	g.Expect(sent).To(BeNumerically(">=", 2))
}

func object(fields map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: runtime.DeepCopyJSON(fields)}
}

// merged is a JSON merge patch (RFC 7396).
func merged(base, patch map[string]any) map[string]any {
	out := maps.Clone(base)
	for name, value := range patch {
		inner, isObject := value.(map[string]any)
		below, _ := out[name].(map[string]any)
		switch {
		case value == nil:
			delete(out, name)
		case isObject:
			if below == nil {
				below = map[string]any{}
			}
			out[name] = merged(below, inner)
		default:
			out[name] = value
		}
	}
	return out
}

func read[T any](t *testing.T, file string) T {
	t.Helper()
	var into T
	text, err := os.ReadFile(file)
	if err == nil {
		err = yaml.UnmarshalStrict(text, &into)
	}
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return into
}
