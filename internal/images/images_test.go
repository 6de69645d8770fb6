package images_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	"sigs.k8s.io/yaml"

	"github.com/cldmnky/oooi/internal/images"
)

const (
	digest = "sha256:0000000000000000000000000000000000000000000000000000000000000001"
	mirror = "registry.example.com:5000/oooi"
)

func written(t *testing.T, format, mirror string, references ...string) string {
	t.Helper()
	list, err := images.Of(mirror, references...)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return list.Write(format)
}

func TestImagesAreWrittenForEachTool(t *testing.T) {
	for _, c := range []struct{ format, image, want string }{
		{"list", "envoyproxy/envoy:v1", "docker.io/envoyproxy/envoy:v1\n"},
		{"list", "quay.example.com/a/oooi:v1@" + digest, "quay.example.com/a/oooi@" + digest + "\n"},
		{"mapping", "envoyproxy/envoy:v1", "docker.io/envoyproxy/envoy:v1=" + mirror + "/envoyproxy/envoy:v1\n"},
		{"mapping", "quay.example.com/a/oooi@" + digest, "quay.example.com/a/oooi@" + digest + "=" + mirror + "/a/oooi\n"},
		{"imageset", "envoyproxy/envoy:v1", "apiVersion: mirror.openshift.io/v2alpha1\nkind: ImageSetConfiguration\nmirror:\n  additionalImages:\n  - name: docker.io/envoyproxy/envoy:v1\n"},
		{"mapping", mirror + "/envoyproxy/envoy:v1", ""},
		{"mirrorset", mirror + "/envoyproxy/envoy:v1", ""},
		{"mapping", mirror + "-of-others/envoy:v1", mirror + "-of-others/envoy:v1=" + mirror + "/oooi-of-others/envoy:v1\n"},
	} {
		NewWithT(t).Expect(written(t, c.format, mirror, c.image)).To(Equal(c.want), "%s of %s", c.format, c.image)
	}
}

// Nodes look in an ImageDigestMirrorSet for digests only, and in an ImageTagMirrorSet for tags only.
func TestTagsAndDigestsHaveTheirOwnMirrorSets(t *testing.T) {
	g := NewWithT(t)
	text := written(t, "mirrorset", mirror, "quay.example.com/a/oooi@"+digest, "envoyproxy/envoy:v1")
	first, second, both := strings.Cut(text, "---\n")
	g.Expect(both).To(BeTrue(), text)
	var byDigest configv1.ImageDigestMirrorSet
	g.Expect(yaml.UnmarshalStrict([]byte(first), &byDigest)).To(Succeed())
	g.Expect(byDigest.Kind).To(Equal("ImageDigestMirrorSet"))
	g.Expect(byDigest.Spec.ImageDigestMirrors).To(ConsistOf(configv1.ImageDigestMirrors{Source: "quay.example.com/a/oooi", Mirrors: []configv1.ImageMirror{mirror + "/a/oooi"}}))
	var byTag configv1.ImageTagMirrorSet
	g.Expect(yaml.UnmarshalStrict([]byte(second), &byTag)).To(Succeed())
	g.Expect(byTag.Kind).To(Equal("ImageTagMirrorSet"))
	g.Expect(byTag.Spec.ImageTagMirrors).To(ConsistOf(configv1.ImageTagMirrors{Source: "docker.io/envoyproxy/envoy", Mirrors: []configv1.ImageMirror{mirror + "/envoyproxy/envoy"}}))
	g.Expect(written(t, "mirrorset", mirror, "a/oooi@"+digest, "a/envoy@"+digest)).NotTo(ContainSubstring("Tag"))
}

// An image that is in no registry cannot be mirrored from one: whoever reads the list is told what to do.
func TestAnUnpublishedImageIsSaid(t *testing.T) {
	for format := range images.Formats {
		text := written(t, format, mirror, "oooi:v1", "envoyproxy/envoy:v1")
		NewWithT(t).Expect(text).To(And(HavePrefix("# oooi:v1 is in no registry: push it"), Not(ContainSubstring("library/oooi")), ContainSubstring("docker.io/envoyproxy/envoy")), format)
	}
}

func TestAPlaceOrAnImageCanBeInvalid(t *testing.T) {
	for _, place := range []string{"https://registry.example.com/oooi", "mirror", "mirror/oooi", "registry.example.com/oooi/", "registry.example.com/oooi:v1", "registry.example.com/Oooi"} {
		_, err := images.Of(place, "envoyproxy/envoy:v1")
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("is no place in a registry")), place)
	}
	for _, place := range []string{"registry.example.com", "localhost:5000", "registry.example.com:5000/a/b-c"} {
		_, err := images.Of(place, "envoyproxy/envoy:v1")
		NewWithT(t).Expect(err).NotTo(HaveOccurred(), place)
	}
	_, err := images.Of("", "example.com/oooi:")
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("write HOST/NAME:TAG")))
}

func TestAnImageWithoutARegistryIsNamedWithItsFlag(t *testing.T) {
	g := NewWithT(t)
	g.Expect(written(t, "list", "", "oooi:v1", "envoy:v1")).To(And(ContainSubstring("# oooi:v1 is in no registry: push it to yours, and name it with --image ("),
		ContainSubstring("# envoy:v1 is in no registry: push it to yours, and name it with --envoy-image (")))
	_, err := images.Of("", "oooi:v1", "envoy@sha256:abc")
	g.Expect(err).To(MatchError(HavePrefix("the image \"envoy@sha256:abc\": ")))
}
