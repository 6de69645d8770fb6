package controller_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

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
		"by a name and password": {"Basic YTpi", "/metrics", http.StatusUnauthorized},
	} {
		t.Run(name, func(t *testing.T) {
			request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, c.path, nil)
			request.Header.Set("Authorization", c.authorization)
			answer := httptest.NewRecorder()
			guarded.ServeHTTP(answer, request)
			NewWithT(t).Expect(answer.Code).To(Equal(c.code))
		})
	}
}
