package status

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/observe"
	"github.com/cldmnky/oooi/internal/plan"
)

func TestReadyNeedsAnAnswerBehindEveryEndpoint(t *testing.T) {
	const gone = "service clusters-c1/ignition does not exist"
	for name, c := range map[string]struct {
		counted                  []v1alpha1.BackendStatus
		behind, infra, proxy, is string // BackendsHealthy, the Infra's Ready and the ProxyServer's; healthyBackends
	}{
		"all answer":                     {[]v1alpha1.BackendStatus{{Name: "api", Healthy: 1, Total: 1}, {Name: "ignition", Healthy: 1, Total: 1}}, "True/Answering", "True/Serving", "True/Serving", "2/2"},
		"one pod of three is away":       {[]v1alpha1.BackendStatus{{Name: "api", Healthy: 2, Total: 3}, {Name: "ignition", Healthy: 1, Total: 1}}, "True/Answering", "True/Serving", "True/Serving", "2/2"},
		"a Service is gone":              {[]v1alpha1.BackendStatus{{Name: "api", Healthy: 1, Total: 1}, {Name: "ignition", Message: gone}}, "False/BackendsUnhealthy", "False/BackendsUnhealthy", "False/BackendsUnhealthy", "1/2"},
		"no pod answers":                 {[]v1alpha1.BackendStatus{{Name: "api", Total: 3, Message: gone}, {Name: "ignition", Healthy: 1, Total: 1}}, "False/BackendsUnhealthy", "False/BackendsUnhealthy", "False/BackendsUnhealthy", "1/2"},
		"nothing is behind *.apps":       {[]v1alpha1.BackendStatus{{Name: "api", Healthy: 1, Total: 1}, {Name: "ignition", Healthy: 1, Total: 1}, {Name: "apps-https"}}, "True/Answering", "True/Serving", "True/Serving", "2/2"},
		"the proxy has not reported yet": {nil, "False/Progressing", "False/Progressing", "False/Progressing", ""},
		"a new one has yet to be tried":  {[]v1alpha1.BackendStatus{{Name: "api", Healthy: 1, Total: 1}}, "False/Progressing", "False/Progressing", "False/Progressing", "1/2"},
	} {
		t.Run(name, func(t *testing.T) {
			g, children := NewWithT(t), allServe()
			children.Proxy.Spec.Backends = []v1alpha1.ProxyBackend{{Name: "api"}, {Name: "ignition"}, {Name: "apps-https"}}
			children.Proxy.Status.Backends = c.counted
			seen := observe.Child[*v1alpha1.ProxyServer]{Rollout: observe.Rollout{Exists: true, Current: true, Ready: true}}
			seen.Server = children.Proxy.DeepCopy()
			seen.Server.Status.Conditions = accepted()
			proxy := Proxy(seen, Outcome{}, morning)
			g.Expect(said(proxy.Conditions, v1alpha1.ConditionReady)).To(Equal(c.proxy))
			g.Expect(proxy.HealthyBackends).To(Equal(c.is))

			children.Proxy.Status.Conditions = proxy.Conditions
			infra := Infra(&v1alpha1.Infra{}, plan.InfraPlan{}, children, Outcome{}, morning)
			g.Expect(said(infra.Conditions, v1alpha1.ConditionBackendsHealthy)).To(Equal(c.behind))
			g.Expect(said(infra.Conditions, v1alpha1.ConditionReady)).To(Equal(c.infra))
			g.Expect(infra.HealthyBackends).To(Equal(c.is))
			if c.behind == "False/BackendsUnhealthy" {
				g.Expect(said(infra.Conditions, v1alpha1.ConditionProxyReady)).To(Equal("True/Serving"), "the proxy itself serves")
				g.Expect(meta.FindStatusCondition(infra.Conditions, v1alpha1.ConditionReady).Message).To(ContainSubstring(gone))
			}
		})
	}
}
