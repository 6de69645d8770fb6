package controller_test

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
)

// imageRegistry is one in memory, over TLS, that is as it is told to be.
type imageRegistry struct {
	dpuWorld
	host  string
	mu    sync.Mutex
	is    string
	paths []string
}

// States of a registry: in all others it serves.
const (
	refuses = "it refuses everybody"
	silent  = "it never answers"
	missing = "it has no such image"
)

func (w dpuWorld) keepsImages() *imageRegistry {
	w.t.Helper()
	r := &imageRegistry{dpuWorld: w}
	working := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	server := httptest.NewTLSServer(http.HandlerFunc(func(a http.ResponseWriter, q *http.Request) {
		r.mu.Lock()
		r.paths = append(r.paths, q.URL.Path)
		is := r.is
		r.mu.Unlock()
		switch is {
		case refuses:
			a.Header().Set("WWW-Authenticate", `Basic realm="test"`)
			a.WriteHeader(http.StatusUnauthorized)
		case silent:
			<-q.Context().Done()
		default:
			working.ServeHTTP(a, q)
		}
	}))
	w.t.Cleanup(server.Close)
	r.host = strings.TrimPrefix(server.URL, "https://")
	return r
}

func (r *imageRegistry) becomes(state string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.is, r.paths = state, nil
}

// asked says whether anybody has asked for a path since it became as it is.
func (r *imageRegistry) asked(path string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.paths, func(p string) bool { return strings.Contains(p, path) })
}

// pushes an image that says that it is a version of OpenShift, and returns its digest.
func (r *imageRegistry) pushes(path, tag, version string) string {
	r.t.Helper()
	image, err := mutate.Config(empty.Image, v1.Config{Labels: map[string]string{"io.openshift.release": version}})
	r.Expect(err).NotTo(HaveOccurred())
	ref, err := name.ParseReference(r.host + "/" + path + ":" + tag)
	r.Expect(err).NotTo(HaveOccurred())
	r.Expect(remote.Write(ref, image, remote.WithTransport(trusting()))).To(Succeed())
	digest, err := image.Digest()
	r.Expect(err).NotTo(HaveOccurred())
	return digest.String()
}

// looksIn has bridges' images looked up in a repository.
func (w dpuWorld) looksIn(repository string) {
	w.t.Helper()
	mapping := named(&corev1.ConfigMap{}, "oooi-system", w.ns+"-images")
	w.changes(mapping, func() { mapping.Data = map[string]string{"repository": repository} })
}

// finds waits until the bridge's image is one.
func (w dpuWorld) finds(image string) {
	w.t.Helper()
	w.Eventually(func() string {
		return w.saysOf("b1", dpuv1.ConditionBlueFieldContainerImageAvailable, metav1.ConditionTrue, "Found")
	}).Should(Equal(image))
}

// misses waits until the bridge says, word for word, why there is no image.
func (w dpuWorld) misses(reason, message string) {
	w.t.Helper()
	w.Eventually(func() string {
		return w.saysOf("b1", dpuv1.ConditionBlueFieldContainerImageAvailable, metav1.ConditionFalse, reason)
	}).Should(HavePrefix(message))
}

// The image of a bridge is looked for in the mirrors of an ImageTagMirrorSet first, and in its own repository, whatever is wrong with them; but not
// there if the set forbids that.
func TestABridgesImageIsFoundThroughMirrors(t *testing.T) {
	w := newDPUWorld(t)
	source, mirror := w.keepsImages(), w.keepsImages()
	set := &configv1.ImageTagMirrorSet{ObjectMeta: metav1.ObjectMeta{Name: w.ns}, Spec: configv1.ImageTagMirrorSetSpec{ImageTagMirrors: []configv1.ImageTagMirrors{{
		Source: source.host, Mirrors: []configv1.ImageMirror{configv1.ImageMirror(mirror.host + "/of")},
	}}}}
	w.configures(set)
	w.bridged()
	for state, path := range map[string]string{missing: "a", refuses: "b", silent: "c"} {
		mirror.pushes("of/"+path+"/layers", "4.20.4", "")
		source.becomes(state)
		w.looksIn(source.host + "/" + path + "/layers")
		w.finds(source.host + "/" + path + "/layers:4.20.4")
		w.Expect(source.asked("/")).To(BeFalse(), "the mirror has it: %s", state)
		source.becomes("")
	}
	for state, path := range map[string]string{missing: "d", refuses: "e", silent: "f"} {
		source.pushes(path+"/layers", "4.20.4", "")
		mirror.becomes(state)
		w.looksIn(source.host + "/" + path + "/layers")
		w.finds(source.host + "/" + path + "/layers:4.20.4")
		w.Expect(mirror.asked("/")).To(BeTrue(), "first")
		mirror.becomes("")
	}

	mirror.becomes(refuses)
	w.looksIn(source.host + "/g/layers")
	nor := source.host + "/g/layers:4.20.4: does not exist"
	w.misses("RegistryUnauthorized", mirror.host+"/of/g/layers:4.20.4: not allowed (401); "+nor)
	mirror.becomes("")
	w.misses("ImageNotFound", mirror.host+"/of/g/layers:4.20.4: does not exist; "+nor)

	source.pushes("h/layers", "4.20.4", "")
	source.becomes("")
	w.changes(set, func() { set.Spec.ImageTagMirrors[0].MirrorSourcePolicy = configv1.NeverContactSource })
	w.misses("ImageNotFound", mirror.host+"/of/g/layers:4.20.4: does not exist: push it")
	w.looksIn(source.host + "/h/layers")
	w.misses("ImageNotFound", mirror.host+"/of/h/layers:4.20.4: does not exist: push it")
	mirror.becomes(refuses)
	w.misses("RegistryUnauthorized", mirror.host+"/of/h/layers:4.20.4: not allowed (401): add a login")
	mirror.becomes("")
	mirror.pushes("of/h/layers", "4.20.4", "")
	w.finds(source.host + "/h/layers:4.20.4")
	w.Expect(source.asked("/h/")).To(BeFalse(), "never, though it has the image")
}

// What version a release is that is given by its digest says the release itself, in the mirrors of an ImageDigestMirrorSet; and in its own registry
// only if an administrator has named that, and no set forbids it.
func TestABridgesReleaseIsReadThroughMirrors(t *testing.T) {
	w := newDPUWorld(t)
	source, mirror, vendor := w.keepsImages(), w.keepsImages(), w.keepsImages()
	source.pushes("layers", "4.20.4", "")
	source.pushes("layers", "4.20.5", "")
	w.looksIn(source.host + "/layers")
	digest := vendor.pushes("ocp/release", "any", "4.20.4")
	vendor.becomes("")
	b := w.bridge()
	b.Spec.OCPReleaseImage = dpuv1.ReleaseImage(vendor.host + "/ocp/release@" + digest)
	w.grants()
	w.creates(w.dpuCluster("d1", "example.com/hosted"), b)
	w.misses("InvalidReleaseImage", "the version of "+vendor.host+"/ocp/release@"+digest+" is not known")

	set := &configv1.ImageDigestMirrorSet{ObjectMeta: metav1.ObjectMeta{Name: w.ns}, Spec: configv1.ImageDigestMirrorSetSpec{ImageDigestMirrors: []configv1.ImageDigestMirrors{{
		Source: vendor.host + "/ocp", Mirrors: []configv1.ImageMirror{configv1.ImageMirror(mirror.host + "/of")},
	}}}}
	w.configures(set)
	at := mirror.host + "/of/release@" + digest
	w.misses("ImageNotFound", at+": does not exist: push it")
	mirror.becomes(refuses)
	w.misses("RegistryUnauthorized", at+": not allowed (401): add a login")
	mirror.becomes("")
	w.Expect(mirror.pushes("of/release", "any", "4.20.4")).To(Equal(digest))
	w.finds(source.host + "/layers:4.20.4")
	w.Expect(vendor.asked("/")).To(BeFalse(), "the bridge's author has chosen it")

	// A release beside the layers, in a registry that an administrator has named.
	next := source.pushes("ocp/release", "next", "4.20.5")
	source.becomes("")
	w.changes(set, func() {
		set.Spec.ImageDigestMirrors[0].Source, set.Spec.ImageDigestMirrors[0].MirrorSourcePolicy = source.host+"/ocp", configv1.NeverContactSource
	})
	w.misses("InvalidReleaseImage", "the version of "+vendor.host)
	w.changes(b, func() { b.Spec.OCPReleaseImage = dpuv1.ReleaseImage(source.host + "/ocp/release@" + next) })
	w.misses("ImageNotFound", mirror.host+"/of/release@"+next+": does not exist: push it")
	mirror.becomes(refuses)
	w.misses("RegistryUnauthorized", mirror.host+"/of/release@"+next+": not allowed (401): add a login")
	w.Expect(source.asked("/ocp/")).To(BeFalse(), "never, though it has the release")
	w.changes(set, func() { set.Spec.ImageDigestMirrors[0].MirrorSourcePolicy = configv1.AllowContactingSource })
	w.finds(source.host + "/layers:4.20.5")
}
