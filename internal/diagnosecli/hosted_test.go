package diagnosecli

import (
	"context"
	"encoding/pem"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/cldmnky/oooi/internal/diagnose"
	"github.com/cldmnky/oooi/internal/guest/bounded"
	"github.com/cldmnky/oooi/internal/guest/kubeconfig"
)

// A kubelet that refuses has answered; an API server that refuses, or a caller whose time is over, has not asked.
func TestOnlyAKubeletAnswersForATunnel(t *testing.T) {
	for name, c := range map[string]struct {
		code  int
		text  string
		found map[string]string
	}{
		"healthy":                     {http.StatusOK, "ok", map[string]string{"w1": ""}},
		"the kubelet refuses":         {http.StatusForbidden, "Forbidden (user=system:admin, verb=get, resource=nodes, subresource=proxy)", map[string]string{"w1": ""}},
		"the API server refuses":      {http.StatusForbidden, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"nodes \"w1\" is forbidden"}`, map[string]string{}},
		"the API server has no route": {http.StatusServiceUnavailable, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"ServiceUnavailable","code":503,"message":"error trying to reach service"}`, map[string]string{"w1": "it answers 503: error trying to reach service"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(c.code)
				_, _ = w.Write([]byte(c.text)) // the caller tells what it got
			}))
			defer server.Close()
			access := kubeconfig.Access{Server: server.URL, CA: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})}
			api, err := bounded.Connect(server.URL, access, (&net.Dialer{}).DialContext)
			g.Expect(err).NotTo(HaveOccurred())
			defer api.Close()
			nodes := map[string]diagnose.Node{"w1": {Ready: corev1.NodeCondition{Status: corev1.ConditionTrue}}}
			ctx, cancel := context.WithCancel(t.Context())
			g.Expect(tunnels(ctx, api, access, nodes, []diagnose.Machine{{Name: "w1"}})).To(Equal(c.found))
			cancel()
			g.Expect(tunnels(ctx, api, access, nodes, []diagnose.Machine{{Name: "w1"}})).To(BeEmpty(), "an ended caller asks nobody")
		})
	}
}
