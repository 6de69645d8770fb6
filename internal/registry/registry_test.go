package registry_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cldmnky/oooi/internal/plan/bridge"
)

func TestAnImageIsFoundByItsTag(t *testing.T) {
	s := serves(t)
	s.pushes("layers", "4.20.4", nil)
	asked := make(chan string, 10)
	s.answers(func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.Contains(r.URL.Path, "/manifests/") {
			asked <- r.Method
		}
		return false
	})
	c := asks(t, s.transport())
	want := lookFor("4.20.4", s.place("layers"))
	c.Expect(c.Follow(by, &want)).To(Equal(bridge.Answer{}), "nobody waits")
	c.Expect(next(c, c.news)).To(Equal(by))
	c.Expect(c.Follow(by, &want)).To(Equal(bridge.Answer{Image: s.repository("layers") + ":4.20.4"}))
	c.ends()
	c.Expect(next(c, asked)).To(Equal(http.MethodHead), "nothing is pulled")
	c.Expect(asked).To(BeEmpty(), "once")
}

func TestAnImageThatIsPushedLaterIsFound(t *testing.T) {
	s := serves(t)
	c := asks(t, s.transport())
	want := lookFor("4.20.4", s.place("layers"))
	c.hears(want, failed(bridge.ImageNotFound, s.repository("layers")+":4.20.4: does not exist"))
	for range 3 {
		next(c, c.tried)
	}
	s.pushes("layers", "4.20.4", nil)
	c.hears(want, HaveField("Image", s.repository("layers")+":4.20.4"))
}

func TestALoginThatIsRefusedIsTriedAgain(t *testing.T) {
	s := serves(t)
	s.pushes("layers", "4.20.4", nil)
	c := asks(t, s.transport())
	anonymous, wrong, right := s.place("layers"), s.place("layers"), s.place("layers")
	wrong.Login, right.Login = login("me", "old"), login("me", "new")
	s.answers(to("me", "new"))
	c.hears(lookFor("4.20.4", anonymous), failed(bridge.RegistryUnauthorized, "not allowed (401)"))
	c.hears(lookFor("4.20.4", wrong), failed(bridge.RegistryUnauthorized, "not allowed (401)"))
	c.hears(lookFor("4.20.4", bridge.Place{Repository: anonymous.Repository, Login: `{"auth": "!"}`}), failed(bridge.RegistryUnauthorized, "cannot be read"))
	c.hears(lookFor("4.20.4", right), HaveField("Image", Not(BeEmpty())))

	c.hears(lookFor("4.20.4", wrong), failed(bridge.RegistryUnauthorized))
	s.answers(to("me", "old")) // it is allowed there, and nothing changes here
	c.hears(lookFor("4.20.4", wrong), HaveField("Image", Not(BeEmpty())))
}

func TestAMirrorIsAskedFirst(t *testing.T) {
	mirror, source := serves(t), serves(t)
	c := asks(t, source.transport()) // both have httptest's certificate
	want := lookFor("4.20.4", mirror.place("mirror/layers"), source.place("layers"))
	found := HaveField("Image", source.repository("layers")+":4.20.4")

	source.answers(func(w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(http.StatusServiceUnavailable)
		return true
	})
	c.hears(want, failed(bridge.ImageNotFound, mirror.repository("mirror/layers")+":4.20.4: does not exist; ", source.repository("layers")+":4.20.4: the registry answers 503 Service Unavailable"))
	mirror.pushes("mirror/layers", "4.20.4", nil)
	c.hears(want, found)

	mirror.Close()
	source.answers(nil)
	source.pushes("layers", "4.20.4", nil)
	c.Follow(by, nil)
	c.hears(want, found)
}

func TestASlowRegistryDelaysNobody(t *testing.T) {
	s := serves(t)
	s.pushes("layers", "4.20.4", nil)
	asked, proceed := make(chan string, 10), make(chan struct{})
	s.answers(func(_ http.ResponseWriter, r *http.Request) bool {
		asked <- r.URL.Path
		select {
		case <-proceed:
		case <-r.Context().Done():
		}
		return false
	})
	c := asks(t, s.transport())
	want := lookFor("4.20.4", s.place("layers"))
	other := lookFor("4.20.5", s.place("layers"))
	c.Expect(c.Follow(by, &want)).To(Equal(bridge.Answer{}))
	next(c, asked)
	c.Expect(c.Follow(by, &want)).To(Equal(bridge.Answer{}), "it is asked once")
	c.Expect(c.Follow(by, &other)).To(Equal(bridge.Answer{}))
	next(c, asked)
	c.Expect(c.Follow(by, nil)).To(Equal(bridge.Answer{}))
	c.ends()
	c.Expect(asked).To(BeEmpty())
	c.Expect(c.news).To(BeEmpty(), "what was given up says nothing")
	close(proceed)
}

func TestOfOneNamespaceTwoAskAtOnce(t *testing.T) {
	s := serves(t)
	asked, proceed := make(chan string, 10), make(chan struct{})
	s.answers(func(_ http.ResponseWriter, r *http.Request) bool {
		asked <- r.URL.Path
		select {
		case <-proceed:
		case <-r.Context().Done():
		}
		return false
	})
	c := asks(t, s.transport())
	want := lookFor("4.20.4", s.place("layers"))
	for _, name := range []string{"b1", "b2", "b3", "b4"} {
		c.Follow(types.NamespacedName{Namespace: "crowd", Name: name}, &want)
	}
	next(c, asked)
	next(c, asked)
	c.Follow(types.NamespacedName{Namespace: "alone", Name: "b1"}, &want)
	next(c, asked)
	c.Consistently(asked, "200ms").ShouldNot(Receive())
	close(proceed)
}

func TestARegistryThatFlapsAnswersAtLast(t *testing.T) {
	s := serves(t)
	s.pushes("layers", "4.20.4", nil)
	var requests atomic.Int32
	s.answers(func(w http.ResponseWriter, _ *http.Request) bool {
		switch requests.Add(1) {
		case 1:
			w.WriteHeader(http.StatusTooManyRequests)
		case 2: // it is cut
			conn, _, err := w.(http.Hijacker).Hijack()
			s.Expect(err).NotTo(HaveOccurred())
			conn.Close()
		case 4: // after /v2/
			w.WriteHeader(http.StatusInternalServerError)
		default:
			return false
		}
		return true
	})
	transport := s.transport()
	transport.ForceAttemptHTTP2 = false
	c := asks(t, transport)
	c.hears(lookFor("4.20.4", s.place("layers")), HaveField("Image", Not(BeEmpty())))
	c.Expect(requests.Load()).To(BeNumerically(">=", 6))
}

// A condition whose message changed at each try would be written at each.
func TestARegistryThatIsDownIsToldOnce(t *testing.T) {
	c := asks(t, nil)
	want := lookFor("4.20.4", bridge.Place{Repository: nobody(c) + "/layers"})
	c.Follow(by, &want)
	for tries := range 5 {
		c.Expect(next(c, c.tried)).To(Equal(tries))
	}
	c.Expect(c.news).To(HaveLen(1))
	c.Expect(c.Follow(by, &want)).To(failed(bridge.RegistryUnreachable, "connection refused"))
}

func TestACertificateThatIsNotTrustedIsNamed(t *testing.T) {
	s := serves(t)
	c := asks(t, nil)
	c.hears(lookFor("4.20.4", s.place("layers")), failed(bridge.RegistryUnreachable, "signed by no CA that the operator trusts"))
}

func TestARegistryIsAskedThroughTheProxyOfTheEnvironment(t *testing.T) {
	c := asks(t, nil)
	want := lookFor("4.20.4", bridge.Place{Repository: "registry.example/layers"})
	c.Follow(by, &want)
	c.Expect(next(c, through)).To(Equal("CONNECT registry.example:443"))
}

// Go's client of registries tries plain HTTP at private addresses.
func TestNobodyIsAskedByPlainHTTP(t *testing.T) {
	var asked atomic.Int32
	plain := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	t.Cleanup(plain.Close)
	c := asks(t, nil)
	place := bridge.Place{Repository: strings.TrimPrefix(plain.URL, "http://") + "/layers", Login: login("me", "secret")}
	c.hears(lookFor("4.20.4", place), failed(bridge.RegistryUnreachable))
	c.Expect(asked.Load()).To(BeZero())
}

func TestAReleaseByItsDigestSaysItsVersion(t *testing.T) {
	s := serves(t)
	version := map[string]string{"io.openshift.release": "4.20.4"}
	single := s.pushes("release", "single", version)
	none := s.pushes("release", "none", nil)
	odd := s.pushes("release", "odd", map[string]string{"io.openshift.release": "../../other@sha256:0"})
	s.pushes("layers", "4.20.4", nil)
	arches := func(tag string, all ...string) string {
		index := v1.ImageIndex(empty.Index)
		for i, arch := range all {
			image := labelled(s, map[string]string{"io.openshift.release": "4.20.4-multi", "n": string(rune('a' + i))})
			index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}}})
		}
		ref, err := name.ParseReference(s.repository("release") + ":" + tag)
		s.Expect(err).NotTo(HaveOccurred())
		s.Expect(remote.WriteIndex(ref, index, remote.WithTransport(s.transport()))).To(Succeed())
		digest, err := index.Digest()
		s.Expect(err).NotTo(HaveOccurred())
		return digest.String()
	}
	multi, amd := arches("multi", "amd64", "arm64"), arches("amd", "amd64")
	c := asks(t, s.transport())
	of := func(digest string) bridge.Lookup {
		return bridge.Lookup{Repository: s.repository("layers"), Digest: digest, Releases: []bridge.Place{s.place("release")}, Images: []bridge.Place{s.place("layers")}}
	}
	found := HaveField("Image", s.repository("layers")+":4.20.4")
	c.hears(of(single), found)
	c.hears(of(multi), found)
	c.hears(of(none), failed(bridge.InvalidReleaseImage, s.repository("release")+"@"+none+": has no version in its label io.openshift.release"))
	c.hears(of(odd), failed(bridge.InvalidReleaseImage, "has no version in its label"))
	c.hears(of(amd), failed(bridge.InvalidReleaseImage, "has no image for arm64"))
	absent := "sha256:" + strings.Repeat("0", 64)
	c.hears(of(absent), failed(bridge.ImageNotFound, s.repository("release")+"@"+absent))
}

func TestAnAnswerWithoutEndIsNotReadToItsEnd(t *testing.T) {
	s := serves(t)
	digest := s.pushes("release", "v", map[string]string{"io.openshift.release": "4.20.4"})
	var sent atomic.Int64
	s.answers(func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.Contains(r.URL.Path, "/manifests/") {
			return false
		}
		for {
			n, err := w.Write(make([]byte, 1<<20))
			if sent.Add(int64(n)); err != nil {
				return true
			}
		}
	})
	c := asks(t, s.transport())
	want := bridge.Lookup{Repository: s.repository("layers"), Digest: digest, Releases: []bridge.Place{s.place("release")}, Images: []bridge.Place{s.place("layers")}}
	c.hears(want, failed(bridge.RegistryUnreachable, "does not answer as a registry does"))
	c.ends()
	c.Expect(sent.Load()).To(BeNumerically("<", 64<<20), "the library itself would read 100 MiB")
}
