package webhook_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/internal/webhook"
)

// stranger is a pod with an address of its own that posts AdmissionReviews to the webhook's port. It knows the path only if it may read the
// configuration.
type stranger struct {
	*world
	http *http.Client
	path string
}

func (w *world) stranger() stranger {
	from := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	w.Eventually(w.path).Should(HavePrefix(webhook.Path + "/"))
	return stranger{world: w, path: w.path(), http: &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, MaxIdleConnsPerHost: 64,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return from.DialContext(ctx, "tcp4", fmt.Sprintf("127.0.0.1:%d", w.port))
		},
	}}}
}

func (s stranger) forges(b *dpuv1.DPUHCPBridge) []byte {
	s.t.Helper()
	object, err := json.Marshal(b)
	s.Expect(err).NotTo(HaveOccurred())
	text, err := json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{
			UID: "1", Kind: metav1.GroupVersionKind(dpuv1.GroupVersion.WithKind("DPUHCPBridge")), Namespace: b.Namespace, Name: b.Name,
			Operation: admissionv1.Create, Object: kruntime.RawExtension{Raw: object},
		},
	})
	s.Expect(err).NotTo(HaveOccurred())
	return text
}

func (s stranger) posts(review []byte) (code int, answer string, err error) {
	r, err := s.http.Post(fmt.Sprintf("https://localhost:%d%s", s.port, s.path), "application/json", bytes.NewReader(review))
	if err != nil {
		return 0, "", err
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	return r.StatusCode, string(text), err
}

// path at which the API server asks.
func (w *world) path() string {
	w.t.Helper()
	return ptr.Deref(stored(w, w.configuration()).Webhooks[0].ClientConfig.Service.Path, "")
}

func TestWhoCannotReadTheConfigurationIsNotHeard(t *testing.T) {
	w := dpuWorld(t)
	w.operator()
	w.bridges()
	s, b := w.stranger(), w.bridge("dpu1")
	b.Spec.DPUClusterRef.Name = "none"
	known := s.path
	_, answer, err := s.posts(s.forges(b))
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(answer).To(ContainSubstring("DPUClusterNotFound"), "so does one hear who has read the path")
	for _, s.path = range []string{webhook.Path, "/", webhook.Path + "/", known[:len(known)-1], known + "a", strings.ToUpper(known), "/x/.." + known, "/" + known} {
		code, answer, err := s.posts(s.forges(b))
		w.Expect(err).NotTo(HaveOccurred())
		w.Expect(code).To(Equal(http.StatusNotFound), s.path)
		w.Expect(answer).To(Equal("404 page not found\n"), s.path)
	}
}

// A stranger's review gets the same answer whether a Secret exists or not, and whatever is in it.
func TestAStrangerHearsNothingOfSecrets(t *testing.T) {
	w := dpuWorld(t)
	w.grantsSecrets()
	w.operator()
	w.bridges()
	s := w.stranger()
	about := func(secret string) string {
		b := w.bridge("dpu1")
		b.Spec.SSHKey, b.Spec.PullSecret = dpuv1.SecretName(secret), dpuv1.SecretName(secret)
		code, answer, err := s.posts(s.forges(b))
		w.Expect(err).NotTo(HaveOccurred())
		w.Expect(code).To(Equal(http.StatusOK))
		return answer
	}
	none := about("none")
	w.Expect(none).To(ContainSubstring("StorageClassNotFound"), "it was judged")
	for _, secret := range []string{"ssh", "pull", "private", "text"} {
		w.Expect(about(secret)).To(Equal(none))
	}
	w.Expect(w.reads.Load()).To(BeZero(), "and each would cost the API server a request")
}

// slowedAtMost is how much longer a write that the webhook judges may take, during a flood, than one that it does not.
const slowedAtMost = 2 * time.Second

// TestTenThousandReviewsOfAStranger shows that meanwhile others' writes are judged, and soon, and that the manager's memory stays as it
// was. Unjudged writes, made in turn with the judged ones, tell how much of the time is the machine's and its API server's.
func TestTenThousandReviewsOfAStranger(t *testing.T) {
	w := dpuWorld(t)
	w.operator()
	w.bridges()
	s := w.stranger()
	large := w.bridge("dpu1")
	large.Annotations = map[string]string{"a": string(bytes.Repeat([]byte("x"), 100<<10))}
	review, before := s.forges(large), heap()
	var posting sync.WaitGroup
	var most uint64
	var judged, refused atomic.Int64
	left := make(chan struct{}, 10_000)
	for range cap(left) {
		left <- struct{}{}
	}
	close(left)
	for range 64 {
		posting.Go(func() {
			for range left {
				switch code, _, err := s.posts(review); {
				case err != nil: // the machine stood still for two seconds
				case code == http.StatusOK:
					judged.Add(1)
				default:
					refused.Add(1)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { posting.Wait(); close(done) }()
	var took, plain []time.Duration
	var writes, unjudged int
	pace := time.NewTicker(100 * time.Millisecond) // the flood takes minutes, and other packages' tests want the processors
	defer pace.Stop()
	for flooded := true; flooded; writes++ {
		select {
		case <-done:
			flooded = false
		case <-pace.C:
		}
		bad := w.bridge("dpu2")
		bad.Spec.DPUClusterRef.Name = "none"
		began := time.Now()
		err := w.api.Create(w.ctx, bad, client.DryRunAll)
		took = append(took, time.Since(began))
		began = time.Now()
		w.Expect(w.api.Create(w.ctx, w.holds("unjudged", "key", ""), client.DryRunAll)).To(Succeed())
		plain = append(plain, time.Since(began))
		if writes%10 == 0 {
			most = max(most, heap())
		}
		if err == nil {
			unjudged++
		} else {
			w.Expect(err).To(MatchError(apierrors.IsForbidden, "IsForbidden"))
		}
	}
	slow, slowPlain := slowOf(took), slowOf(plain)
	t.Logf("%d judged, %d refused; %d writes beside them, of which one in a hundred took %s, of those that nobody judges %s; heap %d KiB before, %d at most", judged.Load(), refused.Load(), writes, slow, slowPlain, before>>10, most>>10)
	w.Expect(writes).To(BeNumerically(">", 100))
	w.Expect(slices.Max(took) - slices.Max(plain)).To(BeNumerically("<", 3*slowedAtMost))
	w.Expect(slow - slowPlain).To(BeNumerically("<", slowedAtMost))
	w.Expect(judged.Load() + refused.Load()).To(BeNumerically(">", 9_900))
	w.Expect(unjudged).To(BeNumerically("<=", 1+writes/10))
	w.Expect(most).To(BeNumerically("<", before+32<<20), "64 connections with both of their ends, and the few reviews that are in memory at once: 16 MiB on a busy machine")
	s.http.CloseIdleConnections()
	w.Eventually(heap).Should(BeNumerically("<", before+4<<20), "nothing of it is kept")
}

// slowOf is what one in a hundred takes or exceeds. The slowest of a thousand says more of what else the machine does.
func slowOf(took []time.Duration) time.Duration {
	slices.Sort(took)
	return took[len(took)*99/100]
}

// heap is the reachable heap: garbage not yet collected depends on the collector's pace.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
