// Package bundle makes an OLM bundle (registry+v1) of the manifests in config/.
package bundle

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	_ "embed"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

const (
	packageName = "oooi"
	channel     = "candidate"
	// since is the first OpenShift with Kubernetes 1.30, which the CRDs need.
	since = "v4.17"
)

var (
	//go:embed csv.yaml
	base []byte
	//go:embed icon.svg
	icon []byte

	byDigest = regexp.MustCompile(`^[^/@]+(/[^/@]+)+@sha256:[0-9a-f]{64}$`)
)

// Bundle is what a bundle's image has, by path.
type Bundle map[string][]byte

// Of makes a bundle of a release (v1.2.3) from its rendered manifests, with examples for the console.
func Of(release string, manifests, examples []*unstructured.Unstructured) (Bundle, error) {
	csv := &v1alpha1.ClusterServiceVersion{}
	if err := yaml.UnmarshalStrict(base, csv); err != nil {
		return nil, fmt.Errorf("csv.yaml: %w", err)
	}
	number := strings.TrimPrefix(release, "v")
	if err := (&csv.Spec.Version).UnmarshalJSON([]byte(`"` + number + `"`)); err != nil || csv.Spec.Version.String() != number {
		return nil, fmt.Errorf("%q is no release: write one like v0.1.0", release)
	}
	csv.Name = packageName + ".v" + number
	csv.Annotations["olm.skipRange"] = "<" + number // each release takes over from any before it
	csv.Spec.Icon = []v1alpha1.Icon{{Data: base64.StdEncoding.EncodeToString(icon), MediaType: "image/svg+xml"}}
	text, err := json.MarshalIndent(examples, "", "  ")
	if err != nil {
		return nil, err
	}
	csv.Annotations["alm-examples"] = string(text)
	kept, err := fill(csv, manifests)
	if err != nil {
		return nil, err
	}
	return written(csv, kept)
}

func written(csv *v1alpha1.ClusterServiceVersion, kept []*unstructured.Unstructured) (Bundle, error) {
	b := Bundle{}
	if err := b.add("manifests/oooi.clusterserviceversion.yaml", csv); err != nil {
		return nil, err
	}
	for _, o := range kept {
		name := fmt.Sprintf("manifests/%s_%s.yaml", strings.ToLower(o.GetKind()), o.GetName())
		if err := b.add(name, o); err != nil {
			return nil, err
		}
	}
	return b, b.add("metadata/annotations.yaml", map[string]any{"annotations": Labels()})
}

// Labels are a bundle's annotations, which its image has as labels.
func Labels() map[string]string {
	const of = "operators.operatorframework.io.bundle."
	return map[string]string{
		of + "mediatype.v1": "registry+v1", of + "manifests.v1": "manifests/", of + "metadata.v1": "metadata/",
		of + "package.v1": packageName, of + "channels.v1": channel, of + "channel.default.v1": channel,
		"com.redhat.openshift.versions": since,
	}
}

// add writes an object without the status that Go's types always have.
func (b Bundle) add(path string, object any) error {
	text, err := json.Marshal(object)
	if err != nil {
		return err
	}
	var fields map[string]any
	if err := json.Unmarshal(text, &fields); err != nil {
		return err
	}
	delete(fields, "status")
	b[path], err = yaml.Marshal(fields)
	return err
}

// Write replaces what is in a directory by the bundle.
func (b Bundle) Write(dir string) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	for _, path := range slices.Sorted(maps.Keys(b)) {
		file := filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil { //nolint:gosec // a bundle is for everybody to read
			return err
		}
		if err := os.WriteFile(file, b[path], 0o644); err != nil { //nolint:gosec // likewise
			return err
		}
	}
	return nil
}
