package guest_test

import (
	"crypto/rand"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api/v1"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/plan/input"
)

func pemOf(certificate []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate})
}

func TestWhatWasSeenStaysWhileTheHostedClusterIsAway(t *testing.T) {
	for name, away := range map[string]struct{ goes, comes func(*wire) }{
		"its API refuses connections": {func(r *wire) { r.refuse(true); r.drop() }, func(r *wire) { r.refuse(false) }},
		"the cable is cut":            {func(r *wire) { r.setCut(true) }, func(r *wire) { r.setCut(false) }},
	} {
		t.Run(name, func(t *testing.T) {
			w := serving(t)
			away.goes(w.wire)
			w.eventually("that it is away", func(g *input.Guest) bool { return troubled(input.GuestUnreachable)(g) && hasService(g) })
			done, since := w.clusters.End(w.infra)
			w.Expect(done).To(BeFalse(), "nobody can say that it is gone")
			w.Expect(since).To(BeNumerically(">", 0))
			w.apply(w.service())
			away.comes(w.wire)
			w.eventually("that it is back", func(g *input.Guest) bool { return reached(g) && hasService(g) })
		})
	}
}

func TestAnAPIServerThatRestartsIsNoTrouble(t *testing.T) {
	w := serving(t)
	before := w.wire.connections()
	w.wire.drop()
	w.Eventually(w.wire.connections).Should(BeNumerically(">", before))
	w.Consistently(func() *input.GuestProblem { return w.see().Problem }, time.Second).Should(BeNil())
}

func TestTheKubeconfigComesChangesAndGoes(t *testing.T) {
	w := newWorld(t, v1alpha1.AppsLoadBalancer)
	w.eventually("that there is none", troubled(input.GuestWaiting))
	w.hasKubeconfig([]byte("exec: {command: /bin/false}"))
	w.eventually("that it is refused", troubled(input.GuestKubeconfig))
	w.hasKubeconfig(w.kubeconfig())
	w.eventually("the hosted cluster", reached)
	w.Expect(w.kube.CoreV1().Secrets(w.infra.Namespace).Delete(w.ctx, w.want.Secret.Name, metav1.DeleteOptions{})).To(Succeed())
	w.eventually("that it is gone", troubled(input.GuestWaiting))
}

func TestAHostedClusterWithoutAKubeconfigIsAwaited(t *testing.T) {
	w := newWorld(t, v1alpha1.AppsLoadBalancer)
	w.want.Secret.Name = ""
	w.eventually("that there is none", troubled(input.GuestWaiting))
}

func TestANamespaceThatIsNotGrantedIsNamed(t *testing.T) {
	w := newWorld(t, v1alpha1.AppsLoadBalancer)
	w.asManager()
	seen := w.eventually("that it is not granted", troubled(input.GuestNotGranted))
	w.Expect(seen.Problem.Message).To(Equal(fmt.Sprintf("the operator may not read Secret %s: kubectl apply -n %[2]s -k config/components/apps-ingress, "+
		"or, where Helm installed it, add %[2]s to the chart's appsIngress.namespaces", w.want.Secret, w.want.Secret.Namespace)))
	w.hasKubeconfig(w.kubeconfig())
	w.grant()
	w.eventually("the hosted cluster", reached)
}

func TestAWrongCAAndAWrongTokenAreNamed(t *testing.T) {
	w := newWorld(t, v1alpha1.AppsLoadBalancer)
	f := w.behindFront("first")
	w.hasKubeconfig(w.kubeconfig(func(c *clientcmdapi.Config) { c.AuthInfos[0].AuthInfo = clientcmdapi.AuthInfo{Token: "first"} }))
	seen := w.eventually("that it is not trusted", troubled(input.GuestUnreachable))
	w.Expect(seen.Problem.Message).To(Equal("the hosted cluster's API " + w.want.Server + " is not reached: its certificate is not signed by the kubeconfig's CA"))
	w.Expect(f.calls()).To(BeEmpty())
	w.hasKubeconfig(w.kubeconfigOf(f, "second"))
	seen = w.eventually("that the token is wrong", func(g *input.Guest) bool { return strings.Contains(g.Problem.Message, "credentials") })
	w.Expect(seen.Problem.Message).NotTo(ContainSubstring("second"))
	w.hasKubeconfig(w.kubeconfigOf(f, "first"))
	w.eventually("the hosted cluster", reached)
}

func TestAHostileAnswerIsNotFollowedQuotedOrKept(t *testing.T) {
	const token = "the-token-of-this-test"
	elsewhere := newFront(t, token)
	var longest, pages atomic.Int64
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		says   string
	}{
		"a redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL+r.URL.Path, http.StatusTemporaryRedirect)
		}, "it answers 307"},
		"the token, sent back": {func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusForbidden)
			json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status"}, Code: 403, Message: "not with " + r.Header.Get("Authorization") + "\x1b[2J\n" + strings.Repeat("x", 900)})
		}, "it answers 403: not with Bearer (token) [2J x"},
		"no JSON":                   {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, token) }, "the answer is none of a Kubernetes API"},
		"more than is kept":         {endless(&longest), "an object is larger than 10 MiB"},
		"more objects than is kept": {countless(&pages), "there is more than is kept of a hosted cluster: 5000 objects"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, v1alpha1.AppsNodePort)
			f := w.behindFront(token)
			f.answers(c.answer)
			seen := w.eventually("the problem", troubled(input.GuestUnreachable))
			w.Expect(seen.Problem.Message).To(ContainSubstring(c.says))
			w.Expect(seen.Problem.Message).NotTo(ContainSubstring(token))
			w.Expect(len(seen.Problem.Message)).To(BeNumerically("<", 500))
			w.Expect(elsewhere.calls()).To(BeEmpty())
		})
	}
	g := NewWithT(t)
	g.Expect(longest.Load()).To(BeNumerically("<", 14<<20), "an answer is read no further than its bound")
	g.Expect(pages.Load()).To(BeNumerically("<", 25), "a list is read no further than its bound")
}

// endless is an answer that does not end; longest is how much of it was read.
func endless(longest *atomic.Int64) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		sent, _ := fmt.Fprint(w, `{"items":[{"metadata":{"name":"`)
		for noise := make([]byte, 64<<10); ; {
			rand.Read(noise)
			n, err := fmt.Fprintf(w, "%x", noise)
			if sent += n; err != nil {
				return
			}
			longest.Store(max(longest.Load(), int64(sent)))
		}
	}
}

// countless lists small objects, page after page; pages is how many of one list were read.
func countless(pages *atomic.Int64) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		page, _ := strconv.ParseInt(r.URL.Query().Get("continue"), 10, 64)
		pages.Store(max(pages.Load(), page+1))
		var items []string
		for i := range 250 {
			items = append(items, fmt.Sprintf(`{"metadata":{"name":"n%d-%d"}}`, page, i))
		}
		fmt.Fprintf(w, `{"metadata":{"resourceVersion":"1","continue":"%d"},"items":[%s]}`, page+1, strings.Join(items, ","))
	}
}

func TestAWatchCannotFillTheMemory(t *testing.T) {
	const token = "the-token-of-this-test"
	w := newWorld(t, v1alpha1.AppsNodePort)
	f := w.behindFront(token)
	f.answers(growing)
	seen := w.eventually("that it has too much", troubled(input.GuestUnreachable))
	w.Expect(seen.Problem.Message).To(HaveSuffix("is not reached: there is more than is kept of a hosted cluster: 5000 objects of a kind, 8 MiB"))
}

// growing lists nothing; its watch then sends Nodes, each with more addresses than any real one has.
func growing(w http.ResponseWriter, r *http.Request) {
	const version = `"metadata":{"resourceVersion":"1"`
	if r.URL.Query().Get("watch") == "" {
		fmt.Fprintf(w, `{%s},"items":[]}`, version)
		return
	}
	addresses := strings.Repeat(`{"type":"InternalIP","address":"fd00::1"},`, 9000) + `{}`
	for i := 0; i < 120 && r.URL.Path == "/api/v1/nodes"; i++ {
		fmt.Fprintf(w, `{"type":"ADDED","object":{%s,"name":"n%d"},"status":{"addresses":[%s]}}}`, version, i, addresses)
	}
	w.(http.Flusher).Flush()
	<-r.Context().Done()
}

func TestNothingRunsOnAfterForget(t *testing.T) {
	w := newWorld(t, v1alpha1.AppsLoadBalancer)
	w.hasKubeconfig(w.kubeconfig())
	before := goleak.IgnoreCurrent()
	w.eventually("the hosted cluster", reached)
	w.apply(w.service())
	w.eventually("the Service", hasService)
	w.clusters.Forget(w.infra)
	goleak.VerifyNone(t, before)
	w.leave()
	w.Expect(w.see()).To(BeNil(), "after the end nobody is looked into")
}

func TestAnInfraThatNobodyLooksIntoIsNotClean(t *testing.T) {
	w := newWorld(t, v1alpha1.AppsLoadBalancer)
	done, _ := w.clusters.End(w.infra)
	w.Expect(done).To(BeFalse())
}
