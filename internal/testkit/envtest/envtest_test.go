package envtest

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// Under load, the default namespace is created later than envtest waits: with a request each 50 ms for 5 s, it gives up before the 110th.
func TestADefaultNamespaceThatComesLateIsAwaited(t *testing.T) {
	g := NewWithT(t)
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		answer := map[string]any{
			"/api":    metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}},
			"/apis":   metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}},
			"/api/v1": metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: "v1", APIResources: []metav1.APIResource{{Name: "namespaces", Kind: "Namespace"}}},
		}[r.URL.Path]
		if r.URL.Path == "/api/v1/namespaces/default" {
			answer = map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "default"}}
			if asked.Add(1) < 110 {
				w.WriteHeader(http.StatusNotFound)
				answer = metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Reason: "NotFound", Code: http.StatusNotFound}
			}
		}
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()

	env := &envtest.Environment{UseExistingCluster: ptr.To(true), Config: &rest.Config{Host: server.URL, QPS: -1}}
	_, err := started(env)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(asked.Load()).To(BeEquivalentTo(110))
	g.Expect(env.UseExistingCluster).To(BeNil(), "or its processes would be left when it is stopped")
}
