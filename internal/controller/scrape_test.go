package controller_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/internal/controller"
)

func TestOnlyThoseWhomTheAPIServerAllowsMayScrape(t *testing.T) {
	t.Parallel()
	g, cluster := NewWithT(t), takes(t)
	api, err := client.New(cluster.Admin, client.Options{})
	g.Expect(err).NotTo(HaveOccurred())
	token := func(name string) string {
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}}
		g.Expect(api.Create(t.Context(), account)).To(Succeed())
		request := &authenticationv1.TokenRequest{}
		g.Expect(api.SubResource("token").Create(t.Context(), account, request)).To(Succeed())
		return request.Status.Token
	}
	prometheus, stranger := token("prometheus"), token("stranger")
	g.Expect(api.Create(t.Context(), &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "reads-metrics"}, Rules: []rbacv1.PolicyRule{{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}},
	})).To(Succeed())
	g.Expect(api.Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "prometheus-reads-metrics"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "reads-metrics"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "default", Name: "prometheus"}},
	})).To(Succeed())

	httpClient, err := rest.HTTPClientFor(cluster.Manager)
	g.Expect(err).NotTo(HaveOccurred())
	filter, err := controller.Authorized(cluster.Manager, httpClient)
	g.Expect(err).NotTo(HaveOccurred())
	guarded, err := filter(logr.Discard(), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("metrics")) }))
	g.Expect(err).NotTo(HaveOccurred())

	for name, c := range map[string]struct {
		authorization, path string
		code                int
	}{
		"allowed":                {"Bearer " + prometheus, "/metrics", http.StatusOK},
		"allowed, another path":  {"Bearer " + prometheus, "/debug", http.StatusForbidden},
		"known, not allowed":     {"Bearer " + stranger, "/metrics", http.StatusForbidden},
		"unknown":                {"Bearer made-up", "/metrics", http.StatusUnauthorized},
		"nobody":                 {"", "/metrics", http.StatusUnauthorized},
		"a token of 17 KiB":      {"Bearer " + strings.Repeat("x", 17<<10), "/metrics", http.StatusUnauthorized},
		"by a name and password": {"Basic YTpi", "/metrics", http.StatusUnauthorized},
	} {
		t.Run(name, func(t *testing.T) {
			request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, c.path, nil)
			request.Header.Set("Authorization", c.authorization)
			request.RemoteAddr = strings.ReplaceAll(name, " ", "-") + ":1" // after a refusal an address must wait
			answer := httptest.NewRecorder()
			guarded.ServeHTTP(answer, request)
			NewWithT(t).Expect(answer.Code).To(Equal(c.code))
		})
	}
}

// Any pod may ask to scrape with a token that it makes up: the API server reviews few from one address, and others are not delayed.
func TestWhoIsRefusedMayNotAskAgainAtOnce(t *testing.T) {
	g := NewWithT(t)
	var reviews atomic.Int32
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		reviews.Add(1)
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprint(w, `{"kind":"TokenReview","apiVersion":"authentication.k8s.io/v1","status":{"authenticated":false}}`)
	}))
	defer api.Close()
	filter, err := controller.Authorized(&rest.Config{Host: api.URL, QPS: -1}, api.Client())
	g.Expect(err).NotTo(HaveOccurred())
	guarded, err := filter(logr.Discard(), http.NotFoundHandler())
	g.Expect(err).NotTo(HaveOccurred())
	asks := func(from, token string) int {
		request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil)
		request.RemoteAddr = from
		request.Header.Set("Authorization", "Bearer "+token)
		answer := httptest.NewRecorder()
		guarded.ServeHTTP(answer, request)
		return answer.Code
	}
	for port := range 1000 {
		asks(fmt.Sprintf("192.0.2.9:%d", 1+port), fmt.Sprint("made-up-", port))
	}
	g.Expect(reviews.Load()).To(BeNumerically("<", 100))
	g.Expect(asks("192.0.2.9:2000", "made-up")).To(Or(Equal(http.StatusTooManyRequests), Equal(http.StatusUnauthorized)))
	g.Expect(asks("192.0.2.10:1", "made-up")).To(Equal(http.StatusUnauthorized), "another is asked about")
	before := reviews.Load()
	g.Expect(asks("192.0.2.11:1", strings.Repeat("x", 17<<10))).To(Equal(http.StatusUnauthorized))
	g.Expect(reviews.Load()).To(Equal(before), "no token is as long")
	g.Eventually(func() int { return asks("192.0.2.9:1", "made-up") }).WithTimeout(10*time.Second).Should(Equal(http.StatusUnauthorized), "after a second")
}
