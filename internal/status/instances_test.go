package status

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/component"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/observe"
	"github.com/cldmnky/oooi/internal/plan"
)

// twoServe is a DNSServer of two instances as it is told of.
func twoServe(said []metav1.Condition, first, second observe.Rollout, now time.Time) *v1alpha1.DNSServer {
	server := &v1alpha1.DNSServer{Status: v1alpha1.DNSServerStatus{Conditions: said}}
	server.Spec.NetworkConfig.ServerIP, server.Spec.NetworkConfig.AdditionalServerIPs = "192.168.100.2", []v1alpha1.IPAddress{"192.168.100.4"}
	is := seen(server, first)
	is.Others = []observe.Rollout{second}
	report := Child(is, Outcome{}, now)
	server.Status.Conditions, server.Status.Instances = report.Conditions, report.Instances
	return server
}

// A warning of the plan makes nothing serve that does not.
func TestOneInstanceThatIsDownIsNotCoveredByAWarning(t *testing.T) {
	g, children := NewWithT(t), allServe()
	warned := Outcome{Findings: []finding.Finding{finding.Warn(v1alpha1.ConditionDNSReady, "OneInstanceServes").Say("one")}}
	g.Expect(said(Infra(&v1alpha1.Infra{}, plan.InfraPlan{}, children, warned, noon).Conditions, v1alpha1.ConditionDNSReady)).To(Equal("True/OneInstanceServes"))
	children.DNS().Status.Conditions[0].Status, children.DNS().Status.Conditions[0].Reason = metav1.ConditionFalse, "PodNotReady"
	g.Expect(said(Infra(&v1alpha1.Infra{}, plan.InfraPlan{}, children, warned, noon).Conditions, v1alpha1.ConditionDNSReady)).To(Equal("False/PodNotReady"))
}

// Each state of two instances: what the DNSServer says, and what becomes of its Infra's DNSReady, Degraded and Ready.
func TestTwoInstancesServeWhileOneDoes(t *testing.T) {
	both := append(accepted(), metav1.Condition{Type: "ConfigAccepted1", Status: metav1.ConditionTrue})
	on := func(r observe.Rollout, node string) observe.Rollout {
		r.Node = node
		return r
	}
	made := func(r observe.Rollout, at time.Time) observe.Rollout {
		r.Pod.CreationTimestamp = metav1.NewTime(at)
		return r
	}
	starting := func(p observe.Pod, at time.Time) observe.Rollout { // of a new template, which no pod has served yet
		r := made(stuck(p), at)
		r.Current = false
		return r
	}
	since := func(said []metav1.Condition, at time.Time) []metav1.Condition {
		return append(said[:len(said):len(said)], metav1.Condition{Type: v1alpha1.ConditionProgressing, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(at)})
	}
	lost := stuck(onLostNode())
	late := noon.Add(-untilDegraded)
	for name, c := range map[string]struct {
		said                   []metav1.Condition
		first, second          observe.Rollout
		dns, degraded, ready   string
		progressing, dnsSaying string
	}{
		"both serve":                  {both, on(up, "n1"), on(up, "n2"), "True/Serving", "False/AsExpected", "True/Serving", "False/Settled", "the pod serves"},
		"on one node":                 {both, on(up, "n1"), on(up, "n1"), "True/InstancesShareNode", "False/AsExpected", "True/Serving", "False/Settled", "on node n1: its failure stops both; add a node"},
		"the first is on a lost node": {both, lost, on(up, "n2"), "True/InstanceDown", "True/InstanceDown", "True/InstanceDown", "False/Settled", "192.168.100.4 serves; 192.168.100.2 does not: pod c1-proxy-x is on node n1"},
		"the second is":               {both, on(up, "n1"), lost, "True/InstanceDown", "True/InstanceDown", "True/InstanceDown", "False/Settled", "192.168.100.2 serves; 192.168.100.4 does not: pod c1-proxy-x"},
		"the second is being made":    {accepted(), on(up, "n1"), observe.Rollout{}, "True/InstanceStarting", "False/AsExpected", "True/Serving", "True/RollingOut", "192.168.100.4 does not: the change has just"},
		"it has just been":            {both, on(up, "n1"), made(stuck(unschedulable()), noon.Add(-time.Minute)), "True/InstanceStarting", "False/AsExpected", "True/Serving", "True/RollingOut", "Too many pods"},
		"it has had its time":         {both, on(up, "n1"), made(stuck(unschedulable()), noon.Add(-untilDegraded)), "True/InstanceDown", "True/InstanceDown", "True/InstanceDown", "False/Settled", "Too many pods"},
		"its daemon refuses the spec": {append(accepted(), metav1.Condition{Type: "ConfigAccepted1", Status: metav1.ConditionFalse, Message: "spec.x"}), on(up, "n1"), on(up, "n2"), "True/InstanceDown", "True/InstanceDown", "True/InstanceDown", "False/Settled", "last good configuration: spec.x"},
		"its new pod starts":          {both, on(up, "n1"), starting(hanging(), noon.Add(-time.Minute)), "True/InstanceStarting", "False/AsExpected", "True/Serving", "True/RollingOut", "w is being rolled out"},
		"its new pod never serves":    {since(both, late), on(up, "n1"), starting(hanging(), late), "True/InstanceDown", "True/InstanceDown", "True/InstanceDown", "False/Settled", "the pod of w is not ready: Unhealthy: Readiness probe failed: no answer"},
		"it is replaced after long":   {since(both, late), on(up, "n1"), observe.Rollout{Exists: true, Workload: "w"}, "True/InstanceStarting", "False/AsExpected", "True/Serving", "True/RollingOut", "w is being rolled out"},
		"it is not created":           {since(accepted(), late), on(up, "n1"), observe.Rollout{}, "True/InstanceDown", "True/InstanceDown", "True/InstanceDown", "True/RollingOut", "192.168.100.4 does not: the change has just"},
		"its daemon is about to tell": {since(accepted(), noon.Add(-time.Minute)), on(up, "n1"), on(up, "n2"), "True/InstanceStarting", "False/AsExpected", "True/Serving", "True/RollingOut", "has not reported yet"},
		"its daemon never tells":      {since(accepted(), late), on(up, "n1"), on(up, "n2"), "True/InstanceDown", "True/InstanceDown", "True/InstanceDown", "True/RollingOut", "has not reported yet"},
		"neither serves":              {both, lost, made(stuck(unschedulable()), noon), "False/NodeLost", "True/NodeLost", "False/NodeLost", "False/Settled", "pod c1-proxy-x is on node n1"},
		"one rolls, one is lost":      {both, observe.Rollout{Exists: true, Workload: "w"}, lost, "False/NodeLost", "True/NodeLost", "False/NodeLost", "False/Settled", "pod c1-proxy-x is on node n1"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			server := twoServe(c.said, c.first, c.second, noon)
			g.Expect(server.Status.Instances).To(HaveLen(2))
			g.Expect(said(server.Status.Conditions, v1alpha1.ConditionReady)).To(Equal(c.dns))
			g.Expect(said(server.Status.Conditions, v1alpha1.ConditionProgressing)).To(Equal(c.progressing))
			infra, children := &v1alpha1.Infra{}, allServe()
			infra.Status.Conditions = Infra(infra, plan.InfraPlan{}, allServe(), Outcome{}, morning).Conditions
			children[component.DNS] = server
			got := Infra(infra, plan.InfraPlan{}, children, Outcome{}, noon).Conditions
			g.Expect(said(got, v1alpha1.ConditionDNSReady)).To(Equal(c.dns))
			g.Expect(said(got, v1alpha1.ConditionDegraded)).To(Equal(c.degraded))
			g.Expect(said(got, v1alpha1.ConditionReady)).To(Equal(c.ready))
			g.Expect(meta.FindStatusCondition(got, v1alpha1.ConditionDNSReady).Message).To(ContainSubstring(c.dnsSaying))
			if c.dns == "True/InstanceStarting" {
				g.Expect(said(got, v1alpha1.ConditionProgressing)).To(Equal("True/RollingOut"))
			}
			if stops := "; the failure of one node stops name resolution (see DNSReady)"; c.dns == "True/InstancesShareNode" {
				g.Expect(meta.FindStatusCondition(got, v1alpha1.ConditionReady).Message).To(Equal("a worker that boots now can join" + stops))
			} else {
				g.Expect(meta.FindStatusCondition(got, v1alpha1.ConditionReady).Message).NotTo(ContainSubstring(stops))
			}
			if c.ready == "True/InstanceDown" {
				g.Expect(meta.FindStatusCondition(got, v1alpha1.ConditionReady).Message).To(And(ContainSubstring("can join"), ContainSubstring(c.dnsSaying)))
			}
		})
	}
}

// Who wants one instance, or cannot have two, is told what that costs.
func TestOneInstanceSaysWhatItCosts(t *testing.T) {
	g, server := NewWithT(t), &v1alpha1.DHCPServer{Status: v1alpha1.DHCPServerStatus{Conditions: accepted()}}
	server.Spec.NetworkConfig.ServerIP = "192.168.100.2"
	alone := Child(seen(server, up), Outcome{}, noon).Conditions
	g.Expect(said(alone, v1alpha1.ConditionReady)).To(Equal("True/Serving"))
	g.Expect(meta.FindStatusCondition(alone, v1alpha1.ConditionReady).Message).To(Equal(
		"the pod serves the newest configuration; it is the only instance: its node's failure stops DHCP until the pod runs on another node"))

	ready := func(infra *v1alpha1.Infra, out Outcome) string {
		all := Infra(infra, plan.InfraPlan{}, allServe(), out, noon).Conditions
		g.Expect(said(all, v1alpha1.ConditionReady)).To(Equal("True/Serving"))
		return meta.FindStatusCondition(all, v1alpha1.ConditionReady).Message
	}
	one := &v1alpha1.Infra{}
	one.Spec.InfraComponents.DHCP.Replicas, one.Spec.InfraComponents.Proxy.Replicas = 1, 1
	g.Expect(ready(one, Outcome{})).To(Equal("a worker that boots now can join; the failure of one node stops DHCP (see DHCPReady), the proxy (see ProxyReady)"))
	noAddress := Outcome{Findings: []finding.Finding{finding.Warn(v1alpha1.ConditionDNSReady, "OneInstanceServes").Say("one")}}
	g.Expect(ready(&v1alpha1.Infra{}, noAddress)).To(Equal("a worker that boots now can join; the failure of one node stops name resolution (see DNSReady)"))
	g.Expect(ready(&v1alpha1.Infra{}, Outcome{})).To(Equal("a worker that boots now can join"))
}

// An instance that cannot be made says why.
func TestAnInstanceWithoutANetworkSaysSo(t *testing.T) {
	g, server := NewWithT(t), &v1alpha1.DNSServer{Status: v1alpha1.DNSServerStatus{Conditions: accepted()}}
	server.Spec.NetworkConfig.ServerIP, server.Spec.NetworkConfig.AdditionalServerIPs = "192.168.100.2", []v1alpha1.IPAddress{"192.168.100.4"}
	is := seen(server, up)
	is.Others = []observe.Rollout{{}}
	out := Outcome{Findings: []finding.Finding{finding.Fail("Ready1", "NADNotFound").Say("no network")}}
	all := Child(is, out, noon).Conditions
	g.Expect(said(all, v1alpha1.ConditionReady)).To(Equal("True/InstanceDown"))
	g.Expect(meta.FindStatusCondition(all, v1alpha1.ConditionReady).Message).To(Equal("192.168.100.2 serves; 192.168.100.4 does not: no network"))
	g.Expect(said(all, v1alpha1.ConditionProgressing)).To(Equal("False/Settled"))
}

// One that is not to start yet is not missed.
func TestAnInstanceThatIsPostponedIsNotMissed(t *testing.T) {
	g, server := NewWithT(t), &v1alpha1.DHCPServer{Status: v1alpha1.DHCPServerStatus{Conditions: accepted()}}
	server.Spec.NetworkConfig.ServerIP, server.Spec.NetworkConfig.AdditionalServerIPs = "192.168.100.2", []v1alpha1.IPv4Address{"192.168.100.4"}
	is := seen(server, up)
	is.Others = []observe.Rollout{{}}
	out := Outcome{Findings: []finding.Finding{finding.Wait("Ready1", "SecondInstanceWaits").Say("the first does not know of it")}}
	all := Child(is, out, noon).Conditions
	g.Expect(said(all, v1alpha1.ConditionReady)).To(Equal("True/SecondInstanceWaits"))
	g.Expect(meta.FindStatusCondition(all, v1alpha1.ConditionReady).Message).To(Equal("the first does not know of it"))
	g.Expect(said(all, v1alpha1.ConditionProgressing)).To(Equal("False/Settled"))
	is.Rollout = observe.Rollout{}
	g.Expect(said(Child(is, out, noon).Conditions, v1alpha1.ConditionReady)).To(HavePrefix("False/"))
}

// Of a pool with no address left each instance tells by itself.
func TestEachInstanceHasItsOwnConditions(t *testing.T) {
	none := func(kind string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: "PoolExhausted", Message: "no address is left"}
	}
	both := append(accepted(), metav1.Condition{Type: "ConfigAccepted1", Status: metav1.ConditionTrue})
	for name, c := range map[string]struct {
		said []metav1.Condition
		want string
	}{
		"neither": {both, "True/InstancesShareNode"},
		"both":    {append(both, none("AddressesLeft"), none("AddressesLeft1")), "False/PoolExhausted"},
		"the second, of what the first has not seen yet": {append(both, none("AddressesLeft1")), "True/InstanceDown"},
	} {
		t.Run(name, func(t *testing.T) {
			server := &v1alpha1.DHCPServer{Status: v1alpha1.DHCPServerStatus{Conditions: c.said}}
			server.Spec.NetworkConfig.ServerIP, server.Spec.NetworkConfig.AdditionalServerIPs = "192.168.100.2", []v1alpha1.IPv4Address{"192.168.100.4"}
			first := up
			first.Node = "n1"
			is := seen(server, first)
			is.Others = []observe.Rollout{first}
			NewWithT(t).Expect(said(Child(is, Outcome{}, noon).Conditions, v1alpha1.ConditionReady)).To(Equal(c.want))
		})
	}
}

// What a daemon said is taken back only once it cannot say it again.
func TestNothingIsTakenBackFromAnInstanceThatMayRun(t *testing.T) {
	g := NewWithT(t)
	is := seen(&v1alpha1.DNSServer{}, up)
	g.Expect(Child(is, Outcome{}, noon).Alone).To(BeTrue())
	g.Expect(Child(is, Outcome{Frozen: true}, noon).Alone).To(BeFalse())
	is.Leaving = true
	g.Expect(Child(is, Outcome{}, noon).Alone).To(BeFalse())
}

// Nothing else brings a child back whose second instance is not created, or whose daemon does not tell.
func TestAnInstanceThatStartsIsLookedAtWhenItsTimeIsOver(t *testing.T) {
	g := NewWithT(t)
	server := &v1alpha1.DNSServer{Status: v1alpha1.DNSServerStatus{Conditions: accepted()}}
	server.Spec.NetworkConfig.AdditionalServerIPs = []v1alpha1.IPAddress{"192.168.100.4"}
	is := seen(server, up)
	is.Others = []observe.Rollout{up}
	report := Child(is, Outcome{}, noon)
	g.Expect(StartEnds(report, noon.Add(30*time.Second))).To(Equal(90 * time.Second))
	server.Status.Conditions = append(accepted(), metav1.Condition{Type: "ConfigAccepted1", Status: metav1.ConditionTrue})
	g.Expect(StartEnds(Child(is, Outcome{}, noon), noon)).To(BeZero())
}

// Names lead to the second proxy while the first is down; a captured address leads nowhere.
func TestTheFirstProxyAloneServesCapturedAddresses(t *testing.T) {
	g, server := NewWithT(t), &v1alpha1.ProxyServer{}
	server.Status.Conditions = append(accepted(), metav1.Condition{Type: "ConfigAccepted1", Status: metav1.ConditionTrue})
	server.Spec.NetworkConfig.ServerIP, server.Spec.NetworkConfig.AdditionalServerIPs = "192.168.100.3", []v1alpha1.IPAddress{"192.168.100.6"}
	ready := func(first, second observe.Rollout) string {
		is := seen(server, first)
		is.Others = []observe.Rollout{second}
		return said(Child(is, Outcome{}, noon).Conditions, v1alpha1.ConditionReady)
	}
	lost := stuck(onLostNode())
	g.Expect(ready(lost, up)).To(Equal("True/InstanceDown"))
	server.Spec.NetworkConfig.CapturedAddresses = []v1alpha1.CapturedAddress{{IP: "203.0.113.7", Ports: []v1alpha1.Port{6443}}}
	g.Expect(ready(lost, up)).To(Equal("False/NodeLost"))
	g.Expect(ready(up, lost)).To(Equal("True/InstanceDown"))
}

// A node that lacks the VLAN may have the bridge all the same, made by a CNI plugin: what is there serves nobody.
func TestInstancesThatFindNoProxyInCommonAreApart(t *testing.T) {
	const silent, confirmed, answers = v1alpha1.HealthSilent, v1alpha1.HealthConfirmed, v1alpha1.HealthAnswers
	both := append(accepted(), metav1.Condition{Type: "ConfigAccepted1", Status: metav1.ConditionTrue})
	first, second := up, up
	first.Node, second.Node = "n1", "n2"
	for name, c := range map[string]struct {
		first, second []v1alpha1.HealthState // of proxies .3 and .5
		want, message string
	}{
		"each finds its own":            {[]v1alpha1.HealthState{confirmed, silent}, []v1alpha1.HealthState{silent, confirmed}, "True/InstancesApart", "192.168.100.2, on node n1, finds the proxy 192.168.100.3; 192.168.100.4, on node n2, finds the proxy 192.168.100.5"},
		"one finds both, one neither":   {[]v1alpha1.HealthState{confirmed, confirmed}, []v1alpha1.HealthState{silent, v1alpha1.HealthLost}, "True/InstancesApart", "finds the proxy 192.168.100.3 and 192.168.100.5; 192.168.100.4, on node n2, finds no proxy; connect"},
		"one proxy is away":             {[]v1alpha1.HealthState{answers, silent}, []v1alpha1.HealthState{answers, answers}, "True/Serving", ""},
		"both are":                      {[]v1alpha1.HealthState{silent, silent}, []v1alpha1.HealthState{silent, silent}, "True/Serving", ""},
		"the only proxy is made anew":   {[]v1alpha1.HealthState{confirmed}, []v1alpha1.HealthState{silent}, "True/Serving", ""},
		"an older release says nothing": {nil, nil, "True/Serving", ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			health := func(states []v1alpha1.HealthState) (all []v1alpha1.Health) {
				for i, state := range states {
					all = append(all, v1alpha1.Health{IP: []v1alpha1.IPAddress{"192.168.100.3", "192.168.100.5"}[i], State: state})
				}
				return all
			}
			server := &v1alpha1.DNSServer{Status: v1alpha1.DNSServerStatus{Conditions: both, Instances: []v1alpha1.Instance{
				{IP: "192.168.100.2", Health: health(c.first)}, {IP: "192.168.100.4", Health: health(c.second)},
			}}}
			server.Spec.NetworkConfig.ServerIP, server.Spec.NetworkConfig.AdditionalServerIPs = "192.168.100.2", []v1alpha1.IPAddress{"192.168.100.4"}
			is := seen(server, first)
			is.Others = []observe.Rollout{second}
			server.Status.Conditions = Child(is, Outcome{}, noon).Conditions
			g.Expect(said(server.Status.Conditions, v1alpha1.ConditionReady)).To(Equal(c.want))
			g.Expect(meta.FindStatusCondition(server.Status.Conditions, v1alpha1.ConditionReady).Message).To(ContainSubstring(c.message))
			children := allServe()
			children[component.DNS] = server
			got := Infra(&v1alpha1.Infra{}, plan.InfraPlan{}, children, Outcome{}, noon).Conditions
			degraded := "False/AsExpected"
			if c.message != "" {
				degraded = "True/InstancesApart"
			}
			g.Expect(said(got, v1alpha1.ConditionDegraded)).To(Equal(degraded))
			g.Expect(said(got, v1alpha1.ConditionReady)).To(Equal(c.want))
		})
	}
}
