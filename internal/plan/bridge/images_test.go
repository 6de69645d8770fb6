package bridge_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/cldmnky/oooi/internal/plan/bridge"
)

const (
	digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	image  = "quay.io/bluefield/bfb:4.20.4"
)

func TestABlueFieldImageIsFoundByVersionOrDigest(t *testing.T) {
	byVersion, byDigest := map[string]string{"4.20.4": image}, map[string]string{strings.Replace(digest, ":", "-", 1): image}
	for name, c := range map[string]struct {
		mapping map[string]string
		release string
		found   bool
	}{
		"the version itself":                    {byVersion, "quay.io/ocp/release:4.20.4", true},
		"for all architectures":                 {byVersion, "quay.io/ocp/release:4.20.4-multi", true},
		"for one":                               {byVersion, "quay.io/ocp/release:4.20.4-aarch64", true},
		"for one of all":                        {byVersion, "quay.io/ocp/release:4.20.4-multi-arm64", true},
		"of a registry with a port":             {byVersion, "mirror:5000/ocp/release:4.20.4-multi", true},
		"of a candidate":                        {map[string]string{"4.21.0-ec.3": image}, "quay.io/ocp/release:4.21.0-ec.3-multi", true},
		"by its digest":                         {byDigest, "quay.io/ocp/release@" + digest, true},
		"by its digest, though it has a tag":    {byDigest, "quay.io/ocp/release:4.99.0@" + digest, true},
		"by its tag, though it has a digest":    {byVersion, "quay.io/ocp/release:4.20.4-multi@" + digest, true},
		"with a line's end behind it":           {map[string]string{"4.20.4": image + "\n"}, "quay.io/ocp/release:4.20.4", true},
		"not for another version":               {byVersion, "quay.io/ocp/release:4.20.5-multi", false},
		"not for one that begins alike":         {byVersion, "quay.io/ocp/release:4.20.40-multi", false},
		"not under the tag":                     {map[string]string{"4.20.4-multi": image}, "quay.io/ocp/release:4.20.4-multi", false},
		"not by a registry's port":              {map[string]string{"5000/ocp/release": image, "5000": image}, "mirror:5000/ocp/release", false},
		"not where there is no mapping":         {nil, "quay.io/ocp/release:4.20.4", false},
		"not an image without a tag":            {map[string]string{"4.20.4": "quay.io/bluefield/bfb"}, "quay.io/ocp/release:4.20.4", false},
		"not what is no image":                  {map[string]string{"4.20.4": "to be built"}, "quay.io/ocp/release:4.20.4", false},
		"not by an architecture that is no end": {map[string]string{"": image}, "quay.io/ocp/release:-multi", false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			got, found := bridge.ImageOf(c.mapping, c.release)
			g.Expect(found).To(Equal(c.found))
			if found {
				g.Expect(got).To(Equal(image))
			}
		})
	}
}

func TestADigestWinsOverAVersion(t *testing.T) {
	got, _ := bridge.ImageOf(map[string]string{"4.20.4": "quay.io/bluefield/other:1", strings.Replace(digest, ":", "-", 1): image}, "quay.io/ocp/release:4.20.4-multi@"+digest)
	NewWithT(t).Expect(got).To(Equal(image))
}

// A key that a message requests must be valid in a ConfigMap.
func FuzzImageKeys(f *testing.F) {
	for _, seed := range []string{"quay.io/ocp/release:4.20.4-multi", "quay.io/ocp/release@" + digest, "a:1@b@c", ":", "-multi", "a/b:-multi-multi"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, release string) {
		keys := bridge.ImageKeys(release)
		if asImage, accepted := bridge.ImageOf(map[string]string{"v": release}, "a/b:v"); !accepted || asImage != release {
			return // the API accepts only images that a mapping may have
		}
		if len(keys) == 0 {
			t.Errorf("%q has no key", release)
		}
		for _, key := range keys {
			if problems := validation.IsConfigMapKey(key); len(problems) > 0 {
				t.Errorf("%q has the key %q: %v", release, key, problems)
			}
		}
	})
}
