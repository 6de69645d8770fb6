// Package render plans from files what the operator would plan from a cluster, with the same code.
package render

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	routev1 "github.com/openshift/api/route/v1"
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/dpf"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/nad"
	"github.com/cldmnky/oooi/internal/yamldoc"
)

// Objects are what the files hold.
type Objects []runtime.Object

var (
	// strict refuses unknown fields of our kinds; lenient allows them, because others' kinds may be newer than we are.
	strict, lenient = decoders()
)

func decoders() (ours, others runtime.Decoder) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientscheme.AddToScheme, v1alpha1.AddToScheme, hyperv1.AddToScheme, configv1.Install, routev1.AddToScheme, nad.AddToScheme, dpuv1.AddToScheme, dpf.AddToScheme} {
		if err := add(scheme); err != nil {
			panic(err) // two kinds of one name: an error in this list
		}
	}
	return serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer(), serializer.NewCodecFactory(scheme).UniversalDeserializer()
}

// Read returns the objects of YAML documents, lists included, and the networks that a cluster would make from them. It skips kinds that
// planning does not read.
func Read(from io.Reader) (Objects, error) {
	text, err := io.ReadAll(from)
	if err != nil {
		return nil, err
	}
	all, err := documents(text)
	if err != nil {
		return nil, err
	}
	all, _ = all.withNetworks()
	return all, nil
}

func documents(text []byte) (all Objects, err error) {
	err = yamldoc.Each(text, func(number int, doc []byte) error {
		more, err := decode(doc)
		if err != nil {
			return fmt.Errorf("document %d: %w", number, err)
		}
		all = append(all, more...)
		return nil
	})
	return all, err
}

func decode(doc []byte) (Objects, error) {
	kind, err := kindOf(doc)
	if err != nil || kind.Empty() {
		return nil, err
	}
	if element, is := strings.CutSuffix(kind.Kind, "List"); is {
		return items(doc, kind.GroupVersion().WithKind(element))
	}
	if read, err := reads(kind); err != nil || !read {
		return nil, err
	}
	if kind == clusterNetworkKind || kind == userNetworkKind || kind == operatorNetworkKind {
		return sourceOf(doc, kind)
	}
	if slices.Contains(passedOn, kind) {
		return passed(doc)
	}
	decoder := lenient
	if kind.GroupVersion() == v1alpha1.GroupVersion || kind.GroupVersion() == dpuv1.GroupVersion {
		decoder = strict
	}
	object, _, err := decoder.Decode(doc, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", kind.Kind, inYAML(err))
	}
	if o, ok := object.(metav1.Object); ok && o.GetName() == "" && slices.Contains(decisive, kind) {
		return nil, fmt.Errorf("%s: it has no metadata.name; give it one", kind.Kind)
	}
	return Objects{placed(defaulted(object))}, nil
}

func passed(doc []byte) (Objects, error) {
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(doc, &u.Object); err != nil {
		return nil, err
	}
	return Objects{u}, nil
}

// defaulted is an object as HyperShift's webhook leaves it (hypershift: nodepool_webhook.go); nothing else that it fills in matters to
// planning.
func defaulted(object runtime.Object) runtime.Object {
	if pool, is := object.(*hyperv1.NodePool); is && pool.Spec.Platform.Type == hyperv1.KubevirtPlatform && pool.Spec.Platform.Kubevirt == nil {
		pool.Spec.Platform.Kubevirt = &hyperv1.KubevirtNodePoolPlatform{}
	}
	return object
}

// inYAML reports a value of the wrong type without naming Go types.
func inYAML(err error) error {
	var mistyped *json.UnmarshalTypeError
	if errors.As(err, &mistyped) {
		return finding.Mistyped(mistyped.Field, mistyped.Value, mistyped.Type)
	}
	return err
}

// placed gives an object without a namespace the one that kubectl would; of the kinds that are read, only two are cluster-scoped.
func placed(object runtime.Object) runtime.Object {
	switch object.(type) {
	case *corev1.Namespace, *configv1.Network:
		return object
	}
	if o, ok := object.(metav1.Object); ok && o.GetNamespace() == "" {
		o.SetNamespace(metav1.NamespaceDefault)
	}
	return object
}

var errNoObject = errors.New("not a Kubernetes object: it must start with apiVersion and kind, e.g. apiVersion: v1, kind: Service")

// kindOf is empty for a document of comments alone.
func kindOf(doc []byte) (schema.GroupVersionKind, error) {
	var text any
	if err := yaml.Unmarshal(doc, &text); err != nil {
		return schema.GroupVersionKind{}, yamldoc.NotYAML(doc, err)
	}
	if text == nil {
		return schema.GroupVersionKind{}, nil
	}
	var of metav1.TypeMeta
	if err := yaml.Unmarshal(doc, &of); err != nil || of.Kind == "" || of.APIVersion == "" {
		return schema.GroupVersionKind{}, errNoObject
	}
	return of.GroupVersionKind(), nil
}

// items reads `kind: List`, and lists of one kind, whose items may omit it.
func items(doc []byte, element schema.GroupVersionKind) (Objects, error) {
	if element.Kind != "" {
		if read, err := reads(element); err != nil || !read {
			return nil, err
		}
	}
	var list struct {
		Items []json.RawMessage `json:"items"`
	}
	if err := yaml.Unmarshal(doc, &list); err != nil {
		return nil, err
	}
	var all Objects
	for i, item := range list.Items {
		more, err := decode(ofKind(item, element))
		if err != nil {
			return nil, fmt.Errorf("item %d: %w", i+1, err)
		}
		all = append(all, more...)
	}
	return all, nil
}

// ofKind writes the kind into an item that omits it.
func ofKind(item json.RawMessage, element schema.GroupVersionKind) []byte {
	var fields map[string]json.RawMessage
	if json.Unmarshal(item, &fields) != nil || fields == nil || fields["kind"] != nil || element.Kind == "" {
		return item
	}
	fields["apiVersion"], fields["kind"] = quoted(element.GroupVersion().String()), quoted(element.Kind)
	text, err := json.Marshal(fields)
	if err != nil {
		panic(err) // it was JSON
	}
	return text
}

func quoted(text string) json.RawMessage { return json.RawMessage(strconv.Quote(text)) }
