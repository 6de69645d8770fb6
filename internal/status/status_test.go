package status

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/component"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/observe"
	"github.com/cldmnky/oooi/internal/plan"
	"github.com/cldmnky/oooi/internal/plan/input"
	"github.com/cldmnky/oooi/internal/plan/workload"
)

var (
	morning = time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	noon    = morning.Add(3 * time.Hour)
)

func serving(generation int64) []metav1.Condition {
	return []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: "Serving", ObservedGeneration: generation}}
}

// allServe are three children that serve their newest spec.
func allServe() input.Children {
	return input.Children{
		component.DHCP:  &v1alpha1.DHCPServer{Status: v1alpha1.DHCPServerStatus{Conditions: serving(0), ActiveLeases: 3, PoolSize: 100}},
		component.DNS:   &v1alpha1.DNSServer{Status: v1alpha1.DNSServerStatus{Conditions: serving(0)}},
		component.Proxy: &v1alpha1.ProxyServer{Status: v1alpha1.ProxyServerStatus{Conditions: serving(0)}},
	}
}

// seen is a Server as observed.
func seen(server component.Server, rollout observe.Rollout) observe.Child {
	of, _ := component.Of(server)
	return observe.Child{Child: workload.Child[component.Server]{Server: server}, Component: of, Rollout: rollout}
}

// said is a condition's status and reason; empty if there is none.
func said(all []metav1.Condition, kind string) string {
	c := meta.FindStatusCondition(all, kind)
	if c == nil {
		return ""
	}
	return string(c.Status) + "/" + c.Reason
}

// accepted is the condition of a daemon that serves its newest spec.
func accepted() []metav1.Condition {
	return []metav1.Condition{{Type: v1alpha1.ConditionConfigAccepted, Status: metav1.ConditionTrue}}
}

func TestInfraStands(t *testing.T) {
	dnsOff := &v1alpha1.Infra{}
	dnsOff.Spec.InfraComponents.DNS.Enabled = ptr.To(false)
	wasReady := &v1alpha1.Infra{}
	wasReady.Status.Conditions = Infra(wasReady, plan.InfraPlan{}, allServe(), Outcome{}, morning).Conditions
	lag, broken := allServe(), allServe()
	lag.Proxy().Generation = 2
	broken.DNS().Status.Conditions[0].Status, broken.DNS().Status.Conditions[0].Reason = metav1.ConditionFalse, "PodNotReady"

	for name, c := range map[string]struct {
		infra    *v1alpha1.Infra
		children input.Children
		out      Outcome
		want     map[string]string // condition: status/reason
	}{
		"everything serves": {&v1alpha1.Infra{}, allServe(), Outcome{}, map[string]string{
			"Accepted": "True/Valid", "NetworkReady": "True/NADValid", "EndpointsResolved": "True/Resolved", "DHCPReady": "True/Serving", "DNSReady": "True/Serving",
			"ProxyReady": "True/Serving", "Progressing": "False/Settled", "Degraded": "False/AsExpected", "Ready": "True/Serving"}},
		"nothing is known yet": {&v1alpha1.Infra{}, input.Children{}, Outcome{Frozen: true, Findings: []finding.Finding{finding.Wait(v1alpha1.ConditionEndpointsResolved, "WaitingForControlPlane").Say("w")}},
			map[string]string{"NetworkReady": "Unknown/NotEvaluated", "DHCPReady": "Unknown/NotCreated", "EndpointsResolved": "False/WaitingForControlPlane", "Progressing": "True/WaitingForControlPlane", "Degraded": "False/AsExpected", "Ready": "False/WaitingForControlPlane"}},
		"the change has just been applied": {wasReady, allServe(), Outcome{Wrote: true}, map[string]string{
			"DHCPReady": "False/Progressing", "Progressing": "True/RollingOut", "Degraded": "False/AsExpected", "Ready": "False/Progressing"}},
		"a child has not caught up":    {wasReady, lag, Outcome{}, map[string]string{"DNSReady": "True/Serving", "ProxyReady": "False/Progressing", "Ready": "False/Progressing"}},
		"a child that served does not": {wasReady, broken, Outcome{}, map[string]string{"DNSReady": "False/PodNotReady", "Degraded": "True/PodNotReady", "Progressing": "False/Settled", "Ready": "False/PodNotReady"}},
		"a child never served":         {&v1alpha1.Infra{}, broken, Outcome{}, map[string]string{"DNSReady": "False/PodNotReady", "Degraded": "False/AsExpected", "Ready": "False/PodNotReady"}},
		"invalid after having been valid": {wasReady, allServe(), Outcome{Frozen: true, Findings: []finding.Finding{finding.Refuse(v1alpha1.ConditionAccepted, "VLANInUse").Say("v")}},
			map[string]string{"Accepted": "False/VLANInUse", "EndpointsResolved": "True/Resolved", "DHCPReady": "True/Serving", "Progressing": "False/Refused", "Degraded": "False/AsExpected", "Ready": "False/VLANInUse"}},
		"a note holds nothing back": {&v1alpha1.Infra{}, allServe(), Outcome{Findings: []finding.Finding{finding.Warn(v1alpha1.ConditionNetworkReady, "NoTimeSource").Say("n")}},
			map[string]string{"NetworkReady": "True/NoTimeSource", "Degraded": "False/AsExpected", "Ready": "True/Serving"}},
		"what is broken is told while all else serves": {wasReady, allServe(), Outcome{Findings: []finding.Finding{finding.Fail(v1alpha1.ConditionNetworkReady, "WorkerNADHasIPAM").Say("w")}},
			map[string]string{"NetworkReady": "False/WorkerNADHasIPAM", "DHCPReady": "True/Serving", "Degraded": "False/AsExpected", "Progressing": "False/Settled", "Ready": "False/WorkerNADHasIPAM"}},
		"an object is not ours": {wasReady, allServe(), Outcome{Findings: []finding.Finding{finding.Refuse(v1alpha1.ConditionReady, "NameTaken").Say("n")}},
			map[string]string{"Degraded": "False/AsExpected", "Ready": "False/NameTaken"}},
		"paused":     {wasReady, allServe(), Outcome{Frozen: true, Paused: "p"}, map[string]string{"Progressing": "False/Paused", "Ready": "True/Serving", "NetworkReady": "True/NADValid"}},
		"DNS is off": {dnsOff, allServe(), Outcome{}, map[string]string{"DNSReady": "", "Ready": "True/Serving"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := Infra(c.infra, plan.InfraPlan{}, c.children, c.out, noon)
			for kind, want := range c.want {
				text := ""
				if now := meta.FindStatusCondition(got.Conditions, kind); now != nil {
					text = string(now.Status) + "/" + now.Reason
				}
				NewWithT(t).Expect(text).To(Equal(want), kind)
			}
		})
	}
}

func TestAFrozenInfraKeepsTheAddressesThatAreInUse(t *testing.T) {
	infra := &v1alpha1.Infra{Status: v1alpha1.InfraStatus{Addresses: []v1alpha1.AssignedAddress{{Component: "dhcp", IP: "192.168.100.2"}, {Component: "dns", IP: "192.168.100.3"}}}}
	dnsOff := plan.InfraPlan{Frozen: true, Off: []string{"dns"}}
	for name, c := range map[string]struct {
		out  Outcome
		want int
	}{"held": {Outcome{Frozen: true}, 1}, "paused: what is off still runs": {Outcome{Frozen: true, Paused: "p"}, 2}} {
		t.Run(name, func(t *testing.T) {
			got := Infra(infra, dnsOff, input.Children{}, c.out, noon)
			NewWithT(t).Expect(got.Addresses).To(Equal(infra.Status.Addresses[:c.want]))
		})
	}
}

func TestATransitionTimeMovesOnlyWithTheStatus(t *testing.T) {
	g := NewWithT(t)
	infra := &v1alpha1.Infra{}
	infra.Status = Infra(infra, plan.InfraPlan{}, allServe(), Outcome{}, morning)
	infra.Generation = 2
	later := Infra(infra, plan.InfraPlan{}, allServe(), Outcome{Findings: []finding.Finding{finding.Refuse(v1alpha1.ConditionReady, "NameTaken").Say("n")}}, noon)
	g.Expect(meta.FindStatusCondition(later.Conditions, v1alpha1.ConditionAccepted)).To(HaveValue(And(
		HaveField("LastTransitionTime.Time", BeTemporally("==", morning)), HaveField("ObservedGeneration", BeEquivalentTo(2)))))
	g.Expect(meta.FindStatusCondition(later.Conditions, v1alpha1.ConditionReady)).To(HaveValue(HaveField("LastTransitionTime.Time", BeTemporally("==", noon))))
}

func TestAChildIsReadyWhenItsPodServesTheNewestSpec(t *testing.T) {
	accepted := func(status metav1.ConditionStatus, generation int64) []metav1.Condition {
		return []metav1.Condition{{Type: v1alpha1.ConditionConfigAccepted, Status: status, ObservedGeneration: generation, Message: "listener: duplicate"}}
	}
	up := observe.Rollout{Exists: true, Current: true, Ready: true}
	for name, c := range map[string]struct {
		conditions []metav1.Condition
		rollout    observe.Rollout
		out        Outcome
		want       string
	}{
		"it serves":                         {accepted(metav1.ConditionTrue, 2), up, Outcome{}, "True/Serving"},
		"the daemon serves the spec before": {accepted(metav1.ConditionTrue, 1), up, Outcome{}, "False/Progressing"},
		"the daemon has not reported":       {nil, up, Outcome{}, "False/Progressing"},
		"the daemon refuses":                {accepted(metav1.ConditionFalse, 2), up, Outcome{}, "False/ConfigRefused"},
		"there is no workload yet":          {nil, observe.Rollout{}, Outcome{}, "False/Progressing"},
		"the old pod still runs":            {accepted(metav1.ConditionTrue, 2), observe.Rollout{Exists: true, Ready: true}, Outcome{}, "False/Progressing"},
		"the pod is not ready":              {accepted(metav1.ConditionTrue, 2), observe.Rollout{Exists: true, Current: true}, Outcome{}, "False/PodNotReady"},
		"a change was just applied":         {accepted(metav1.ConditionTrue, 2), up, Outcome{Wrote: true}, "False/Progressing"},
		"it is not accepted":                {accepted(metav1.ConditionTrue, 2), up, Outcome{Frozen: true, Findings: []finding.Finding{finding.Refuse(v1alpha1.ConditionAccepted, "RefNotPermitted").Say("r")}}, "False/RefNotPermitted"},
	} {
		t.Run(name, func(t *testing.T) {
			server := &v1alpha1.DNSServer{Status: v1alpha1.DNSServerStatus{Conditions: c.conditions}}
			server.Generation = 2
			ready := meta.FindStatusCondition(Child(seen(server, c.rollout), c.out, noon).Conditions, v1alpha1.ConditionReady)
			NewWithT(t).Expect(string(ready.Status) + "/" + ready.Reason).To(Equal(c.want))
		})
	}
}

func TestAPodThatWaitsForANewerTemplateServesAndIsNotRolledOut(t *testing.T) {
	server := &v1alpha1.DNSServer{Status: v1alpha1.DNSServerStatus{Conditions: []metav1.Condition{{Type: v1alpha1.ConditionConfigAccepted, Status: metav1.ConditionTrue}}}}
	waits := Outcome{Findings: []finding.Finding{finding.Warn(v1alpha1.ConditionProgressing, "TemplateUpdatePending").Say("w")}}
	all := Child(seen(server, up), waits, noon).Conditions
	for kind, want := range map[string]string{v1alpha1.ConditionReady: "True/Serving", v1alpha1.ConditionProgressing: "False/TemplateUpdatePending"} {
		c := meta.FindStatusCondition(all, kind)
		NewWithT(t).Expect(string(c.Status)+"/"+c.Reason).To(Equal(want), kind)
	}
}

func TestADaemonsPartOfTheStatusIsNoReasonToWrite(t *testing.T) {
	ours := v1alpha1.DHCPServerStatus{Conditions: serving(1), Instances: []v1alpha1.Instance{{IP: "192.168.100.2", Workload: "w"}}, ObservedGeneration: 1}
	both := ours
	both.ActiveLeases = 7
	both.Instances = []v1alpha1.Instance{{IP: "192.168.100.2", Workload: "w", Ready: true}}
	both.Conditions = append(serving(1), metav1.Condition{Type: v1alpha1.ConditionConfigAccepted})
	moved := both
	moved.Instances = []v1alpha1.Instance{{IP: "192.168.100.9", Workload: "w", Ready: true}}
	elsewhere := both
	elsewhere.Instances = []v1alpha1.Instance{{IP: "192.168.100.2", Workload: "w", Node: "n1"}}
	for name, c := range map[string]struct {
		has  v1alpha1.DHCPServerStatus
		want bool
	}{"a node where its pod was": {elsewhere, true}, "ours": {ours, false}, "ours and the daemon's": {both, false}, "another address": {moved, true}, "nothing": {v1alpha1.DHCPServerStatus{}, true}} {
		t.Run(name, func(t *testing.T) {
			changes, err := differs(c.has, ours)
			NewWithT(t).Expect(err).NotTo(HaveOccurred())
			NewWithT(t).Expect(changes).To(Equal(c.want))
		})
	}
}

func proxyStatus(seen observe.Child) v1alpha1.ProxyServerStatus {
	_, want := seen.Component.Status(seen.Server, Child(seen, Outcome{}, noon))
	return want.(v1alpha1.ProxyServerStatus)
}

func TestAServiceThatWentLeavesTheStatus(t *testing.T) {
	one := &v1alpha1.ProxyServer{Spec: v1alpha1.ProxyServerSpec{Backends: make([]v1alpha1.ProxyBackend, 1)}}
	with, without := seen(one, observe.Rollout{}), seen(&v1alpha1.ProxyServer{}, observe.Rollout{})
	with.Service = &corev1.Service{Spec: corev1.ServiceSpec{ClusterIP: "10.96.0.9"}}
	with.Service.Name = "c1-proxy-svc"
	had, has := proxyStatus(with), proxyStatus(without)
	for name, c := range map[string]struct {
		has, want v1alpha1.ProxyServerStatus
		differs   bool
	}{"it went": {had, has, true}, "it stays": {had, had, false}, "there is none still": {has, has, false}} {
		t.Run(name, func(t *testing.T) {
			changes, err := differs(c.has, c.want)
			NewWithT(t).Expect(err).NotTo(HaveOccurred())
			NewWithT(t).Expect(changes).To(Equal(c.differs))
		})
	}
}

func TestALongMessageFits(t *testing.T) {
	g := NewWithT(t)
	long := finding.Refuse(v1alpha1.ConditionAccepted, "X").Say("%s", strings.Repeat("é", 40000))
	got := Infra(&v1alpha1.Infra{}, plan.InfraPlan{}, allServe(), Outcome{Findings: []finding.Finding{long}}, noon)
	for _, c := range got.Conditions {
		g.Expect(len(c.Message)).To(BeNumerically("<=", longest), c.Type)
		g.Expect(strings.ToValidUTF8(c.Message, "?")).To(Equal(c.Message), c.Type)
	}
}
