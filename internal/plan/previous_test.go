package plan_test

import (
	"encoding/json"
	"os"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/component"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/plan"
	"github.com/cldmnky/oooi/internal/plan/input"
	"github.com/cldmnky/oooi/internal/plan/workload"
	"github.com/cldmnky/oooi/internal/render"
	"github.com/cldmnky/oooi/internal/status"
)

// previous is the case nodeport-with-ip, with a time server, as of commit f911f69, before docs/reference/renamed.md. The planner of that
// commit made the specs of the children and, in running.yaml, the annotations of the workloads, and its status package made the Infra's
// status. The children's status is written by hand, with the reasons of that commit.
func previous(t *testing.T) input.Input {
	t.Helper()
	written := load(t, "testdata/previous/objects.yaml")
	var all render.Objects
	for _, o := range load(t, "testdata/nodeport-with-ip/in.yaml") {
		if _, is := o.(*v1alpha1.Infra); !is {
			all = append(all, o)
		}
	}
	return append(all, written...).Inputs(settings())[0]
}

// All that is new is a second instance of DHCP and of DNS, each with an address that was kept for it, and that DNS checks the proxy.
func TestObjectsOfThePreviousTreeArePlannedAsTheyWere(t *testing.T) {
	const second, secondDNS = "192.168.100.4", "192.168.100.6"
	g, in := NewWithT(t), previous(t)
	g.Expect(in.Infra.Status.Addresses).NotTo(BeEmpty())
	p := plan.Infra(in)
	g.Expect(p.Frozen).To(BeFalse(), "%v", p.Findings)
	g.Expect(p.Addresses).To(ConsistOf(append(slices.Clone(in.Infra.Status.Addresses),
		v1alpha1.AssignedAddress{Component: "dhcp", Instance: 1, IP: second}, v1alpha1.AssignedAddress{Component: "dns", Instance: 1, IP: secondDNS})))
	g.Expect(p.Endpoints).To(Equal(in.Infra.Status.Endpoints))
	dhcp, dns := in.Children.DHCP().Spec, in.Children.DNS().Spec
	dhcp.NetworkConfig.AdditionalServerIPs = []v1alpha1.IPv4Address{second}
	dhcp.NetworkConfig.DNSServers = append(dhcp.NetworkConfig.DNSServers, secondDNS)
	dns.NetworkConfig.AdditionalServerIPs = []v1alpha1.IPAddress{secondDNS}
	dns.HealthChecks = []v1alpha1.DNSHealthCheck{{IP: in.Children.Proxy().Spec.NetworkConfig.ServerIP}} // its ports are for TCP
	for _, o := range p.Objects {
		switch want := as[metav1.PartialObjectMetadata](t, o); want.Kind {
		case "DHCPServer":
			g.Expect(as[v1alpha1.DHCPServer](t, o).Spec).To(Equal(dhcp))
		case "DNSServer":
			g.Expect(as[v1alpha1.DNSServer](t, o).Spec).To(Equal(dns))
		case "ProxyServer":
			g.Expect(as[v1alpha1.ProxyServer](t, o).Spec).To(Equal(in.Children.Proxy().Spec))
		}
	}
}

// as is a planned object as the API server would return it.
func as[T any](t *testing.T, planned runtime.ApplyConfiguration) *T {
	t.Helper()
	text, err := json.Marshal(planned)
	if err != nil {
		t.Fatal(err)
	}
	var object T
	if err := json.Unmarshal(text, &object); err != nil {
		t.Fatal(err)
	}
	return &object
}

func TestWorkloadsOfThePreviousTreeAreNotRewritten(t *testing.T) {
	g, in := NewWithT(t), previous(t)
	text, err := os.ReadFile("testdata/previous/running.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	var running map[string]map[string]string
	g.Expect(yaml.Unmarshal(text, &running)).To(Succeed())
	allowed := in.ControlPlaneNamespace()
	g.Expect(in.Children).To(HaveLen(3))
	for name, server := range in.Children {
		p := workload.Of(name, workload.Child[component.Server]{Server: server, Surroundings: workload.Surroundings{
			Settings: settings(), Infra: in.Infra, Instance: workload.Instance{NAD: in.NAD, Running: running[string(name)], Now: workload.Now{Serves: true, Rolled: true}}, AllowedNamespace: allowed,
		}})
		g.Expect(p.Frozen).To(BeFalse(), "%s", name)
		if name == component.Proxy { // its template has another affinity since
			g.Expect(p.Findings).To(ConsistOf(HaveField("Reason", "TemplateUpdatePending")))
		} else {
			g.Expect(p.Findings).To(BeEmpty(), "%s: nothing waits", name)
		}
		found := false
		for _, o := range p.Objects {
			if written := as[metav1.PartialObjectMetadata](t, o).Annotations; written[names.AnnotationTemplate] != "" {
				found = true
				g.Expect(written[names.AnnotationTemplate]).To(Equal(running[string(name)][names.AnnotationTemplate]), "%s: its pods are not replaced", name)
				g.Expect(written[names.AnnotationSeal]).To(Equal(running[string(name)][names.AnnotationSeal]), "%s", name)
			}
		}
		g.Expect(found).To(BeTrue(), "%s", name)
	}
}

func TestStatusOfThePreviousTreeIsReadWithTodaysReasons(t *testing.T) {
	g, in := NewWithT(t), previous(t)
	reason := func(s v1alpha1.InfraStatus, kind string) string {
		c := meta.FindStatusCondition(s.Conditions, kind)
		return string(c.Status) + "/" + c.Reason
	}
	before := in.Infra.Status
	g.Expect(reason(before, v1alpha1.ConditionNetworkReady)).To(Equal("True/Fit"), "what the previous tree wrote")
	p := plan.Infra(in)
	now := status.Infra(in.Infra, p, in.Children, status.Outcome{Findings: p.Findings}, time.Unix(1790000000, 0))
	g.Expect(reason(now, v1alpha1.ConditionNetworkReady)).To(Equal("True/NADValid"))
	g.Expect(reason(now, v1alpha1.ConditionProgressing)).To(Equal("False/TemplateUpdatePending"), "as the DNSServer says")
	g.Expect(reason(now, v1alpha1.ConditionReady)).To(Equal("True/Serving"))
	for _, c := range now.Conditions {
		was := meta.FindStatusCondition(before.Conditions, c.Type)
		g.Expect(was).NotTo(BeNil(), c.Type)
		g.Expect(c.LastTransitionTime.Time).To(BeTemporally("==", was.LastTransitionTime.Time), "%s has not turned", c.Type)
	}
	refused := finding.Refuse(v1alpha1.ConditionAccepted, "InvalidCIDR").Say("no")
	kept := status.Infra(in.Infra, plan.InfraPlan{Frozen: true}, in.Children, status.Outcome{Frozen: true, Findings: []finding.Finding{refused}}, time.Unix(1790000000, 0))
	g.Expect(reason(kept, v1alpha1.ConditionNetworkReady)).To(Equal("True/NADValid"), "also where it is only kept")
}
