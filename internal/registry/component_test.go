package registry_test

import (
	"archive/tar"
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/cldmnky/oooi/internal/plan/bridge"
)

const ovn = "quay.io/openshift-release-dev/ocp-v4.0-art-dev@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// releases pushes a release with a list of images in its last layer, above a layer of the operating system.
func (s *server) releases(tag, list string) (base v1.Layer) {
	var text bytes.Buffer
	files := tar.NewWriter(&text)
	for _, f := range [][2]string{{"release-manifests/0000_00_cluster-version.yaml", "kind: CustomResourceDefinition"}, {"release-manifests/image-references", list}} {
		s.Expect(files.WriteHeader(&tar.Header{Name: f[0], Mode: 0o644, Size: int64(len(f[1]))})).To(Succeed())
		_, err := io.WriteString(files, f[1])
		s.Expect(err).NotTo(HaveOccurred())
	}
	s.Expect(files.Close()).To(Succeed())
	manifests, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text.Bytes())), nil })
	s.Expect(err).NotTo(HaveOccurred())
	base, err = random.Layer(1<<20, types.DockerLayer)
	s.Expect(err).NotTo(HaveOccurred())
	image, err := mutate.AppendLayers(empty.Image, base, manifests)
	s.Expect(err).NotTo(HaveOccurred())
	ref, err := name.ParseReference(s.repository("ocp/release") + ":" + tag)
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(remote.Write(ref, image, remote.WithTransport(s.transport()))).To(Succeed())
	return base
}

func list(component, image string) string {
	return `{"kind": "ImageStream", "apiVersion": "image.openshift.io/v1", "spec": {"tags": [{"name": "cli", "from": {"kind": "DockerImage", "name": "example.com/cli@sha256:1"}},
		{"name": "` + component + `", "from": {"kind": "DockerImage", "name": "` + image + `"}}]}}`
}

func TestTheImageOfAComponentIsInItsRelease(t *testing.T) {
	s := serves(t)
	c := asks(t, s.transport())
	of := func(tag string) bridge.Lookup {
		return bridge.Lookup{Component: "ovn-kubernetes", Version: tag, Releases: []bridge.Place{s.place("ocp/release")}}
	}
	s.answers(to("me", "secret"))
	c.hears(of("4.22.7-aarch64"), failed(bridge.RegistryUnauthorized, "not allowed (401)"))
	s.answers(nil)
	c.hears(of("4.22.7-aarch64"), failed(bridge.ImageNotFound, s.repository("ocp/release")+":4.22.7-aarch64: does not exist"))

	base := s.releases("4.22.7-aarch64", list("ovn-kubernetes", ovn))
	digest, err := base.Digest()
	s.Expect(err).NotTo(HaveOccurred())
	s.answers(func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, digest.String()) {
			return false
		}
		w.WriteHeader(http.StatusTeapot)
		return true
	})
	c.hears(of("4.22.7-aarch64"), Equal(bridge.Answer{Image: ovn})) // what is below is not read

	s.answers(nil)
	s.releases("unlisted", list("cluster-network-operator", ovn))
	s.releases("by-tag", list("ovn-kubernetes", "quay.io/ovn:latest"))
	s.releases("broken", "{")
	s.pushes("ocp/release", "none", nil)
	for tag, says := range map[string]string{
		"unlisted": "lists no image of ovn-kubernetes by its digest", "by-tag": "lists no image of ovn-kubernetes by its digest",
		"broken": "has a file release-manifests/image-references that cannot be read", "none": "has no file release-manifests/image-references",
	} {
		c.hears(of(tag), failed(bridge.InvalidReleaseImage, s.repository("ocp/release")+":"+tag+": "+says))
	}
}
