package registry_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cldmnky/oooi/internal/plan/bridge"
)

const octets = 1 << 20 // of each layer

// layered pushes an image with layers for a BlueField, in an index with another one.
func (s *server) layered(path, tag string, layers int) v1.Image {
	ours, err := random.Image(octets, int64(layers))
	s.Expect(err).NotTo(HaveOccurred())
	other, err := random.Image(octets, 1)
	s.Expect(err).NotTo(HaveOccurred())
	add := func(image v1.Image, architecture string) mutate.IndexAddendum {
		return mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: architecture}}}
	}
	ref, err := name.ParseReference(s.repository(path) + ":" + tag)
	s.Expect(err).NotTo(HaveOccurred())
	index := mutate.AppendManifests(empty.Index, add(other, "amd64"), add(ours, "arm64"))
	s.Expect(remote.WriteIndex(ref, index, remote.WithTransport(s.transport()))).To(Succeed())
	return ours
}

// copies is a registry with an image, one to copy it to, and who copies.
type copies struct {
	client
	from, to *server
	image    v1.Image
	want     bridge.Lookup
}

func copiesTo(t *testing.T) copies {
	t.Helper()
	from := serves(t)
	return copiesOf(t, from, from.layered("layers", "4.20.4", 3))
}

// copiesOf is one of an image that is there.
func copiesOf(t *testing.T, from *server, image v1.Image) copies {
	t.Helper()
	c := copies{client: asks(t, nil), from: from, to: serves(t), image: image}
	c.Transport = from.transport().Clone() // all have httptest's certificate
	c.Token = func(context.Context, types.NamespacedName) (string, error) { return "secret", nil }
	c.want = lookFor("4.20.4", c.from.place("layers"))
	c.want.Cache = &bridge.Cache{Push: c.to.place("images/layers"), Pull: c.to.place("images/layers"), Account: types.NamespacedName{Namespace: "images", Name: "oooi-image-cache"}}
	return c
}

// there says whether the copy is there, and whole.
func (c copies) there() bool {
	ref, err := name.ParseReference(c.want.Cache.Pushed("4.20.4"))
	c.Expect(err).NotTo(HaveOccurred())
	is, err := remote.Image(ref, remote.WithTransport(c.Transport))
	if err != nil {
		return false
	}
	of, err := is.Digest()
	c.Expect(err).NotTo(HaveOccurred())
	c.Expect(of).To(Equal(c.digest()))
	layers, err := is.Layers()
	c.Expect(err).NotTo(HaveOccurred())
	for _, layer := range layers {
		content, err := layer.Compressed()
		c.Expect(err).NotTo(HaveOccurred())
		_, err = io.Copy(io.Discard, content) // it verifies the digest
		c.Expect(err).NotTo(HaveOccurred())
		c.Expect(content.Close()).To(Succeed())
	}
	return true
}

func (c copies) digest() v1.Hash {
	digest, err := c.image.Digest()
	c.Expect(err).NotTo(HaveOccurred())
	return digest
}

// isCopied waits until the copy is what DPUs are installed with.
func (c copies) isCopied() {
	c.hears(c.want, HaveField("Image", c.to.repository("images/layers-4.20.4")+":4.20.4"))
	c.Expect(c.there()).To(BeTrue())
}

// counts requests of a method whose path has a text.
func (s *server) counts(method, path string, instead func(w http.ResponseWriter, r *http.Request) bool) *atomic.Int32 {
	var n atomic.Int32
	s.answers(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == method && strings.Contains(r.URL.Path, path) {
			n.Add(1)
		}
		return instead != nil && instead(w, r)
	})
	return &n
}

func TestAnImageIsCopiedOnce(t *testing.T) {
	c := copiesTo(t)
	uploads := c.to.counts(http.MethodPatch, "/uploads/", nil)
	c.isCopied()
	c.Expect(uploads.Load()).To(BeNumerically("==", 4), "three layers and a config, of the BlueField's image only")
	other := types.NamespacedName{Namespace: "elsewhere", Name: "b2"}
	c.Follow(other, &c.want)
	c.Eventually(func() string { return c.Follow(other, &c.want).Image }, patience).Should(Equal(c.want.Cache.Pulled("4.20.4")))
	c.Expect(uploads.Load()).To(BeNumerically("==", 4))

	c.image = c.from.layered("layers", "4.20.4", 1) // somebody pushes another under the same tag
	c.Follow(by, nil)
	c.isCopied()
}

func TestTheProgressOfACopyIsTold(t *testing.T) {
	c := copiesTo(t)
	var told []string
	c.hears(c.want, WithTransform(func(a bridge.Answer) bridge.Answer {
		if text := a.Message; a.Reason == bridge.Caching && (told == nil || told[len(told)-1] != text) {
			told = append(told, text)
		}
		return a
	}, HaveField("Image", Not(BeEmpty()))))
	c.Expect(told).NotTo(BeEmpty())
	c.Expect(len(told)).To(BeNumerically("<=", 11), "a step is a write")
	c.Expect(told).To(HaveEach(MatchRegexp(`^%s:4\.20\.4 is being copied to %s:4\.20\.4: (0|\d0|100)%% of 3 MiB$`, c.from.repository("layers"), c.to.repository("images/layers-4.20.4"))))
}

// Answers that are no layers are read, too.
func TestTheProgressOfACopyEndsAtItsWhole(t *testing.T) {
	c := copiesTo(t)
	small, err := random.Image(1<<10, 1)
	c.Expect(err).NotTo(HaveOccurred())
	ref, err := name.ParseReference(c.from.repository("layers") + ":4.20.4")
	c.Expect(err).NotTo(HaveOccurred())
	c.Expect(remote.Write(ref, small, remote.WithTransport(c.Transport))).To(Succeed())
	c.image = small
	c.from.answers(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodGet || !strings.Contains(r.URL.Path, "/blobs/") || r.URL.RawQuery != "" {
			return false
		}
		w.Header().Set("Location", r.URL.Path+"?here")
		w.WriteHeader(http.StatusTemporaryRedirect)
		_, _ = w.Write(make([]byte, 2<<10))
		return true
	})
	proceed := make(chan struct{})
	c.to.answers(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/manifests/") {
			<-proceed
		}
		return false
	})
	defer close(proceed)
	c.hears(c.want, failed(bridge.Caching, ": 100% of 0 MiB"))
}

func TestACopyThatIsInterruptedGoesOn(t *testing.T) {
	c := copiesTo(t)
	var mu sync.Mutex
	asked := map[string]int{}
	cut, size := c.cutLayer(1)
	c.from.answers(func(w http.ResponseWriter, r *http.Request) bool {
		mu.Lock()
		defer mu.Unlock()
		asked[r.URL.Path]++
		if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, cut) && asked[r.URL.Path] == 1 {
			w.Header().Set("Content-Length", fmt.Sprint(size))
			_, _ = w.Write(make([]byte, octets/2))
			panic(http.ErrAbortHandler) // the connection is cut
		}
		return false
	})
	c.hears(c.want, failed(bridge.CacheFailed, "copying "+c.from.repository("layers")+":4.20.4 to "+c.to.repository("images/layers-4.20.4")+":4.20.4: "+strings.TrimPrefix(c.from.URL, "https://")+": the connection was cut"))
	c.Expect(c.there()).To(BeFalse(), "nobody sees a part")
	c.isCopied()
	mu.Lock()
	defer mu.Unlock()
	for path, times := range asked {
		if strings.Contains(path, "/blobs/sha256") && !strings.HasSuffix(path, cut) {
			c.Expect(times).To(BeNumerically("<=", 2), path) // a layer beside the one that was cut may have been cut with it
		}
	}
	c.Expect(asked).To(ContainElement(1), "what was there was not read again")
}

// cutLayer is the end of the path of one layer, and its size.
func (c copies) cutLayer(i int) (path string, size int64) {
	layers, err := c.image.Layers()
	c.Expect(err).NotTo(HaveOccurred())
	digest, err := layers[i].Digest()
	c.Expect(err).NotTo(HaveOccurred())
	size, err = layers[i].Size()
	c.Expect(err).NotTo(HaveOccurred())
	return "/blobs/" + digest.String(), size
}

func TestAnUploadThatFailsIsTriedAgain(t *testing.T) {
	c := copiesTo(t)
	var failures atomic.Int32
	c.to.answers(func(w http.ResponseWriter, r *http.Request) bool {
		switch {
		case r.Method == http.MethodPatch && failures.Add(1) == 1: // it takes a part
			_, _ = io.CopyN(io.Discard, r.Body, octets/2)
			w.WriteHeader(http.StatusInternalServerError)
			return true
		case r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/manifests/") && failures.Add(100) < 200:
			w.WriteHeader(http.StatusTooManyRequests)
			return true
		}
		return false
	})
	host := strings.TrimPrefix(c.to.URL, "https://")
	c.hears(c.want, failed(bridge.CacheFailed, host+": the registry answers 500"))
	c.hears(c.want, failed(bridge.CacheFailed, host+": the registry answers 429"))
	c.Expect(c.there()).To(BeFalse())
	c.isCopied()
}

// A target that refuses an upload may be sent more of it for a moment: http.Transport does not wait for who reads the body.
func TestAnUploadThatIsRefusedWhileItIsSent(t *testing.T) {
	c := copiesTo(t)
	var refused atomic.Int32
	c.to.answers(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPatch || refused.Add(1) > 50 {
			return false
		}
		w.WriteHeader(http.StatusInternalServerError)
		w.(http.Flusher).Flush()
		_, _ = io.CopyN(io.Discard, r.Body, octets/2)
		return true
	})
	c.isCopied()
	c.Expect(refused.Load()).To(BeNumerically(">", 50))
}

func TestWhoPushesHasAToken(t *testing.T) {
	c := copiesTo(t)
	denied := true
	c.Token = func(_ context.Context, of types.NamespacedName) (string, error) {
		if denied {
			denied = false
			return "", apierrors.NewForbidden(schema.GroupResource{Resource: "serviceaccounts/token"}, of.Name, nil)
		}
		return "secret", nil
	}
	c.hears(c.want, failed(bridge.CacheFailed, "kubectl kustomize config/components/image-cache | sed s/oooi-images/images/ | kubectl apply -n images -f -"))
	c.to.answers(to("oooi", "old"))
	c.hears(c.want, failed(bridge.CacheFailed, strings.TrimPrefix(c.to.URL, "https://")+": not allowed (401)"))
	c.to.answers(to("oooi", "secret"))
	c.hears(c.want, failed(bridge.CacheNotPulled, c.want.Cache.Pulled("4.20.4")+": not allowed (401)"))
	c.want.Cache.Pull.Login = login("oooi", "secret")
	c.hears(c.want, HaveField("Image", Not(BeEmpty())))
}

func TestACopyServesWhileItsRegistryIsDown(t *testing.T) {
	c := copiesTo(t)
	down := func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(http.StatusBadGateway); return true }
	c.from.answers(down)
	c.hears(c.want, failed(bridge.RegistryUnreachable, "answers 502"))
	c.from.answers(nil)
	c.isCopied()
	c.from.answers(down)
	c.Follow(by, nil) // as after a restart
	c.isCopied()
	c.from.answers(to("me", "new"))
	c.Follow(by, nil)
	c.hears(c.want, failed(bridge.RegistryUnauthorized)) // who may not have it gets no copy, either
}

// Somebody deletes an ImageStream, and DPUs are installed with what is not there.
func TestACopyThatIsDeletedIsMadeAnew(t *testing.T) {
	c := copiesTo(t)
	c.Recheck = 10 * time.Millisecond
	c.isCopied()
	ref, err := name.ParseReference(c.want.Cache.Pushed("4.20.4"))
	c.Expect(err).NotTo(HaveOccurred())
	c.Expect(remote.Delete(ref, remote.WithTransport(c.Transport))).To(Succeed())
	c.Eventually(c.there, patience).Should(BeTrue())

	c.to.answers(func(w http.ResponseWriter, _ *http.Request) bool { // it is down, and nothing is said of that
		w.WriteHeader(http.StatusBadGateway)
		return true
	})
	c.hears(c.want, HaveField("Image", c.to.repository("images/layers-4.20.4")+":4.20.4"))
	c.Consistently(func() string { return c.Follow(by, &c.want).Reason }, 20*c.Recheck).Should(BeEmpty())
}

func TestACopyAtAStandstillBeginsAnew(t *testing.T) {
	c := copiesTo(t)
	c.Stall = 300 * time.Millisecond
	var stands atomic.Bool
	stands.Store(true)
	cut, size := c.cutLayer(1)
	c.from.answers(func(w http.ResponseWriter, r *http.Request) bool {
		if !stands.Load() || r.Method != http.MethodGet || !strings.HasSuffix(r.URL.Path, cut) {
			return false
		}
		w.Header().Set("Content-Length", fmt.Sprint(size))
		_, _ = w.Write(make([]byte, octets/2))
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		return true
	})
	c.hears(c.want, failed(bridge.CacheFailed, "nothing was transferred for a while"))
	stands.Store(false)
	c.Stall = patience
	c.isCopied()
}

func TestACopyThatIsSlowIsNotAtAStandstill(t *testing.T) {
	c := copiesTo(t)
	c.Expect(c.Stall).To(Equal(10*time.Minute), "a registry may take as long to commit a layer, and nothing is transferred meanwhile")
	c.Stall = 2 * time.Second
	slow, _ := c.cutLayer(1)
	var times atomic.Int32
	c.from.answers(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodGet || !strings.HasSuffix(r.URL.Path, slow) {
			return false
		}
		times.Add(1)
		layers, err := c.image.Layers()
		c.Expect(err).NotTo(HaveOccurred())
		content, err := layers[1].Compressed()
		c.Expect(err).NotTo(HaveOccurred())
		defer content.Close()
		for err == nil {
			_, err = io.CopyN(w, content, octets/30)
			w.(http.Flusher).Flush()
			time.Sleep(100 * time.Millisecond) // it takes three seconds
		}
		return true
	})
	c.isCopied()
	c.Expect(times.Load()).To(BeNumerically("==", 1), "it is not begun anew")
}

// What is read is written at once: of an image of gigabytes, the manager has some buffers.
func TestACopyTakesLittleMemory(t *testing.T) {
	c := copiesTo(t)
	const size = 64 << 20
	large, err := random.Image(size, 1)
	c.Expect(err).NotTo(HaveOccurred())
	ref, err := name.ParseReference(c.from.repository("large") + ":4.20.4")
	c.Expect(err).NotTo(HaveOccurred())
	c.Expect(remote.Write(ref, large, remote.WithTransport(c.Transport))).To(Succeed())
	c.want.Images, c.want.Repository = []bridge.Place{c.from.place("large")}, c.from.repository("large")
	c.image = large

	var read atomic.Int64
	c.from.counted(&read)
	arrived, proceed := make(chan struct{}, 10), make(chan struct{})
	c.to.answers(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPatch {
			arrived <- struct{}{}
			<-proceed // and takes nothing meanwhile
		}
		return false
	})
	c.Follow(by, &c.want)
	next(c, arrived)
	c.Eventually(func() int64 { before := read.Load(); time.Sleep(200 * time.Millisecond); return read.Load() - before }, patience).Should(BeZero(), "who sends waits for who takes")
	c.Expect(read.Load()).To(BeNumerically("<", size/2), "the rest waits at its registry, and in buffers of the kernel")
	close(proceed)
	c.isCopied()
}

// counted adds up what a server has sent.
func (s *server) counted(octets *atomic.Int64) {
	next := s.Config.Handler
	s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(counter{w, octets}, r)
	})
}

type counter struct {
	http.ResponseWriter
	octets *atomic.Int64
}

func (c counter) Write(b []byte) (int, error) {
	n, err := c.ResponseWriter.Write(b)
	c.octets.Add(int64(n))
	return n, err
}
