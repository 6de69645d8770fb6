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
			children.Proxy().Spec.Backends = []v1alpha1.ProxyBackend{{Name: "api"}, {Name: "ignition"}, {Name: "apps-https"}}
			children.Proxy().Status.Backends = c.counted
			server := children.Proxy().DeepCopy()
			server.Status.Conditions = accepted()
			proxy := Child(seen(server, observe.Rollout{Exists: true, Current: true, Ready: true}), Outcome{}, morning)
			g.Expect(said(proxy.Conditions, v1alpha1.ConditionReady)).To(Equal(c.proxy))
			g.Expect(proxy.HealthyBackends).To(Equal(c.is))

			children.Proxy().Status.Conditions = proxy.Conditions
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

// Of a backend that answers, what its proxy does not know is said beside.
func TestWhatAProxyDoesNotKnowOfABackendIsSaid(t *testing.T) {
	said := backendsOf(&v1alpha1.ProxyServer{
		Spec:   v1alpha1.ProxyServerSpec{Backends: []v1alpha1.ProxyBackend{{Name: "api"}}},
		Status: v1alpha1.ProxyServerStatus{Backends: []v1alpha1.BackendStatus{{Name: "api", Healthy: 1, Total: 1, Message: "namespace c1 has more than 2000 pods"}}},
	}).verdict()
	NewWithT(t).Expect(said).To(Equal(yes(v1alpha1.ConditionBackendsHealthy, "Answering", "every endpoint has a backend that answers; api: namespace c1 has more than 2000 pods")))
}

// During an upgrade the operator reads the status of a sidecar of the previous release: counts alone, and 0 of 0 while it starts.
func TestASidecarThatOnlyCountsIsUnderstood(t *testing.T) {
	behind := func(b v1alpha1.ProxyBackend, c v1alpha1.BackendStatus) verdict {
		b.Name, c.Name = "ignition", "ignition"
		return backendsOf(&v1alpha1.ProxyServer{
			Spec: v1alpha1.ProxyServerSpec{Backends: []v1alpha1.ProxyBackend{b}}, Status: v1alpha1.ProxyServerStatus{Backends: []v1alpha1.BackendStatus{c}},
		}).verdict()
	}
	ofService := v1alpha1.ProxyBackend{TargetNamespace: "clusters-c1", TargetService: "ignition-server"}
	listed := v1alpha1.ProxyBackend{TargetAddresses: []string{"10.20.0.5:443", "10.20.0.6:443"}}
	g := NewWithT(t)
	g.Expect(behind(ofService, v1alpha1.BackendStatus{Total: 3}).Message).
		To(Equal("ignition: 0 of 3 targets answer; see: kubectl -n clusters-c1 get endpointslices -l kubernetes.io/service-name=ignition-server"))
	g.Expect(behind(listed, v1alpha1.BackendStatus{Total: 2}).Message).To(Equal("ignition: 0 of 2 targetAddresses answer"))
	g.Expect(behind(ofService, v1alpha1.BackendStatus{}).Reason).To(Equal("Progressing"))
	g.Expect(behind(ofService, v1alpha1.BackendStatus{Message: "service clusters-c1/ignition-server does not exist"}).Reason).To(Equal(noBackend))
}

// What the probe finds is told, and turns nothing: no pod waits for another because of a tenant's certificate.
func TestAFaultThatTheProbeFoundIsTold(t *testing.T) {
	expired := &v1alpha1.BackendFault{Reason: v1alpha1.FaultExpired, Message: "its certificate expired"}
	for name, c := range map[string]struct {
		counted              []v1alpha1.BackendStatus
		away                 bool // the first instance, which says so
		behind, ready, tells string
	}{
		"of the API":           {[]v1alpha1.BackendStatus{{Name: "api", Healthy: 1, Total: 1, Fault: expired}, {Name: "oauth", Healthy: 1, Total: 1}}, false, "True/ProbeFails", "True/ProbeFails", "api: its certificate expired"},
		"of oauth":             {[]v1alpha1.BackendStatus{{Name: "api", Healthy: 1, Total: 1}, {Name: "oauth", Healthy: 1, Total: 1, Fault: expired}}, false, "True/Answering", "True/Serving", "oauth: its certificate expired"},
		"that may be over":     {[]v1alpha1.BackendStatus{{Name: "api", Healthy: 1, Total: 1, Fault: expired}, {Name: "oauth", Healthy: 1, Total: 1}}, true, "True/Answering", "True/Serving", "every endpoint has a backend that answers"},
		"of what answers not":  {[]v1alpha1.BackendStatus{{Name: "api", Message: "no pod", Fault: expired}, {Name: "oauth", Healthy: 1, Total: 1}}, false, "False/BackendsUnhealthy", "False/BackendsUnhealthy", "api: no pod"},
		"while another is off": {[]v1alpha1.BackendStatus{{Name: "api", Healthy: 1, Total: 1, Fault: expired}, {Name: "oauth", Message: "no pod"}}, false, "False/BackendsUnhealthy", "False/BackendsUnhealthy", "oauth: no pod"},
	} {
		t.Run(name, func(t *testing.T) {
			g, children := NewWithT(t), allServe()
			server := children.Proxy()
			server.Spec.NetworkConfig.ServerIP = "192.168.100.3"
			server.Spec.Backends, server.Status.Backends = []v1alpha1.ProxyBackend{{Name: "api"}, {Name: "oauth"}}, c.counted
			server.Status.Instances = []v1alpha1.Instance{{IP: "192.168.100.3", Ready: !c.away}}
			before := server.DeepCopy()
			before.Status.Conditions = accepted()
			proxy := Child(seen(before, observe.Rollout{Exists: true, Current: true, Ready: true}), Outcome{}, morning).Conditions
			if c.behind != "False/BackendsUnhealthy" {
				g.Expect(said(proxy, v1alpha1.ConditionReady)).To(Equal("True/Serving"), "of the pod")
			}
			got := Infra(&v1alpha1.Infra{}, plan.InfraPlan{}, children, Outcome{}, morning).Conditions
			g.Expect(said(got, v1alpha1.ConditionBackendsHealthy)).To(Equal(c.behind))
			g.Expect(meta.FindStatusCondition(got, v1alpha1.ConditionBackendsHealthy).Message).To(HaveSuffix(c.tells))
			g.Expect(said(got, v1alpha1.ConditionReady)).To(Equal(c.ready))
			if c.ready == "True/ProbeFails" {
				g.Expect(said(got, v1alpha1.ConditionDegraded)).To(Equal("False/AsExpected"))
				g.Expect(meta.FindStatusCondition(got, v1alpha1.ConditionReady).Message).To(And(HavePrefix("the services run, but a worker that boots now cannot join; BackendsHealthy: "), HaveSuffix(c.tells)))
			}
		})
	}
}
