package status

import (
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
)

// state is the state of an Infra's parts; those that are left out are well.
type state struct {
	spec             func(*v1alpha1.InfraSpec)
	found            []finding.Finding
	stuck            bool
	paused           string
	none             bool // nothing was created
	dhcp, dns, proxy observe.Rollout
	said             []metav1.Condition // by the DHCP daemon, besides that it serves the newest spec
	backends         []v1alpha1.BackendStatus
	instances        []v1alpha1.Instance // of the proxy
}

var up = observe.Rollout{Exists: true, Current: true, Ready: true, Workload: "w"}

// infra is the Infra's status, given the children's and its own earlier conditions.
func (s state) infra(before []metav1.Condition, at time.Time) v1alpha1.InfraStatus {
	infra := &v1alpha1.Infra{Status: v1alpha1.InfraStatus{Conditions: before}}
	if s.spec != nil {
		s.spec(&infra.Spec)
	}
	return Infra(infra, plan.InfraPlan{}, s.children(at), Outcome{Findings: s.found, Frozen: s.stuck || s.paused != "", Paused: s.paused}, at)
}

func (s state) children(at time.Time) input.Children {
	if s.none {
		return input.Children{}
	}
	rollout := func(r observe.Rollout) observe.Rollout {
		if r == (observe.Rollout{}) {
			return up
		}
		return r
	}
	dhcp := &v1alpha1.DHCPServer{Status: v1alpha1.DHCPServerStatus{Conditions: append(accepted(), s.said...)}}
	dhcp.Status.Conditions = Child(seen(dhcp, rollout(s.dhcp)), Outcome{}, at).Conditions
	dns := &v1alpha1.DNSServer{Status: v1alpha1.DNSServerStatus{Conditions: accepted()}}
	dns.Status.Conditions = Child(seen(dns, rollout(s.dns)), Outcome{}, at).Conditions
	proxy := &v1alpha1.ProxyServer{Status: v1alpha1.ProxyServerStatus{Conditions: accepted(), Backends: []v1alpha1.BackendStatus{{Name: "ignition", Healthy: 1, Total: 1}}}}
	proxy.Spec.NetworkConfig.ServerIP, proxy.Status.Instances = "192.0.2.3", s.instances
	proxy.Spec.Backends = []v1alpha1.ProxyBackend{{Name: "ignition"}}
	if s.backends != nil {
		proxy.Status.Backends = s.backends
	}
	proxy.Status.Conditions = Child(seen(proxy, rollout(s.proxy)), Outcome{}, at).Conditions
	return input.Children{component.DHCP: dhcp, component.DNS: dns, component.Proxy: proxy}
}

func unhealthy(message string) []v1alpha1.BackendStatus {
	return []v1alpha1.BackendStatus{{Name: "ignition", Message: message}}
}

func stuck(p observe.Pod) observe.Rollout {
	if p.Pod == nil {
		p.Pod = &corev1.Pod{}
	}
	p.Name, p.Namespace = "c1-proxy-x", "clusters"
	return observe.Rollout{Exists: true, Current: true, Workload: "w", Pod: &p}
}

func waiting(reason, message string) observe.Pod {
	p := &corev1.Pod{Spec: corev1.PodSpec{NodeName: "n1"}}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "envoy", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}}
	return observe.Pod{Pod: p}
}

func crashing() observe.Pod {
	p := waiting("CrashLoopBackOff", "back-off 10s")
	p.Status.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error", Message: "no such flag"}
	return p
}

func unschedulable() observe.Pod {
	p := &corev1.Pod{}
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "0/3 nodes are available: 3 Too many pods"}}
	return observe.Pod{Pod: p}
}

func creating(warning string) observe.Pod {
	p := waiting("ContainerCreating", "")
	p.Warning = warning
	return p
}

func hanging() observe.Pod {
	p := &corev1.Pod{Spec: corev1.PodSpec{NodeName: "n1"}}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "envoy", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	return observe.Pod{Pod: p, Warning: "Unhealthy: Readiness probe failed: no answer"}
}

func onLostNode() observe.Pod {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, LastTransitionTime: metav1.NewTime(morning)}}
	return observe.Pod{Pod: &corev1.Pod{Spec: corev1.PodSpec{NodeName: "n1"}}, Node: n}
}

// replaced makes a pod a Deployment's, which is replaced by itself.
func replaced(p observe.Pod) observe.Pod {
	p.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "c1-proxy-1", Controller: ptr.To(true)}}
	return p
}

func says(kind, reason string) []metav1.Condition {
	return []metav1.Condition{{Type: kind, Status: metav1.ConditionFalse, Reason: reason, Message: "m"}}
}

func refusedBy(reason string) []finding.Finding {
	return []finding.Finding{finding.Refuse(v1alpha1.ConditionAccepted, reason).Say("m")}
}

func failsBy(kind, reason string) []finding.Finding {
	return []finding.Finding{finding.Fail(kind, reason).Say("m")}
}

// For each state, at the beginning and after everything served: the condition that names it, Progressing, Degraded (at the beginning, after
// two minutes of it, and after everything served), and Ready, which says the same as the first.
func TestEachConditionIsTrueByItsOwnDefinition(t *testing.T) {
	const (
		settled, refused = "False/Settled", "False/Refused"
		well             = "False/AsExpected"
	)
	off := func(all ...func(*v1alpha1.InfraComponents)) func(*v1alpha1.InfraSpec) {
		return func(s *v1alpha1.InfraSpec) {
			for _, one := range all {
				one(&s.InfraComponents)
			}
		}
	}
	noDHCP := func(c *v1alpha1.InfraComponents) { c.DHCP.Enabled = ptr.To(false) }
	noDNS := func(c *v1alpha1.InfraComponents) { c.DNS.Enabled = ptr.To(false) }
	noProxy := func(c *v1alpha1.InfraComponents) { c.Proxy.Enabled = ptr.To(false) }
	waits := []finding.Finding{finding.Wait(v1alpha1.ConditionEndpointsResolved, "WaitingForControlPlane").Say("m")}
	for name, c := range map[string]struct {
		state
		kind, says, progressing string
		new, later, fallen      string // Degraded
		ready, message          string
	}{
		"all is well":              {state{}, v1alpha1.ConditionAccepted, "True/Valid", settled, well, well, well, "True/Serving", "can join"},
		"the proxy is off":         {state{spec: off(noProxy), found: failsBy(v1alpha1.ConditionEndpointsResolved, "ProxyDisabled")}, v1alpha1.ConditionEndpointsResolved, "False/ProxyDisabled", settled, well, well, well, "False/ProxyDisabled", ""},
		"DNS is off":               {state{spec: off(noDNS), found: failsBy(v1alpha1.ConditionEndpointsResolved, "DNSDisabled")}, v1alpha1.ConditionEndpointsResolved, "False/DNSDisabled", settled, well, well, well, "False/DNSDisabled", ""},
		"all three are off":        {state{spec: off(noDHCP, noDNS, noProxy), found: failsBy(v1alpha1.ConditionEndpointsResolved, "ComponentsDisabled")}, v1alpha1.ConditionEndpointsResolved, "False/ComponentsDisabled", settled, well, well, well, "False/ComponentsDisabled", ""},
		"DHCP is another's":        {state{spec: off(noDHCP)}, v1alpha1.ConditionDHCPReady, "", settled, well, well, well, "True/Serving", ""},
		"no control plane yet":     {state{spec: off(noDHCP), found: waits, stuck: true, none: true}, v1alpha1.ConditionEndpointsResolved, "False/WaitingForControlPlane", "True/WaitingForControlPlane", well, well, well, "False/WaitingForControlPlane", ""},
		"refused when it is new":   {state{found: refusedBy("VLANInUse"), stuck: true, none: true}, v1alpha1.ConditionAccepted, "False/VLANInUse", refused, well, well, well, "False/VLANInUse", ""},
		"an edit is refused":       {state{found: refusedBy("RangeReversed"), stuck: true}, v1alpha1.ConditionAccepted, "False/RangeReversed", refused, well, well, well, "False/RangeReversed", ""},
		"somebody has our name":    {state{found: failsBy(v1alpha1.ConditionReady, "NameTaken")}, v1alpha1.ConditionReady, "False/NameTaken", settled, well, well, well, "False/NameTaken", ""},
		"a Service has no pod":     {state{backends: unhealthy("service clusters-c1/ignition has no ready pod")}, v1alpha1.ConditionBackendsHealthy, "False/BackendsUnhealthy", settled, well, "True/BackendsUnhealthy", "True/BackendsUnhealthy", "False/BackendsUnhealthy", "clusters-c1/ignition has no ready pod"},
		"a policy goes in a pause": {state{backends: unhealthy("a NetworkPolicy does not admit"), paused: "paused"}, v1alpha1.ConditionBackendsHealthy, "False/BackendsUnhealthy", "False/Paused", well, "True/BackendsUnhealthy", "True/BackendsUnhealthy", "False/BackendsUnhealthy", "NetworkPolicy"},
		"no address is left":       {state{said: says(v1alpha1.ConditionAddressesLeft, "PoolExhausted")}, v1alpha1.ConditionDHCPReady, "False/PoolExhausted", settled, well, "True/PoolExhausted", "True/PoolExhausted", "False/PoolExhausted", ""},
		"the clock is off":         {state{said: says(v1alpha1.ConditionClockSteady, "ClockUnsteady")}, v1alpha1.ConditionDHCPReady, "False/ClockUnsteady", settled, well, "True/ClockUnsteady", "True/ClockUnsteady", "False/ClockUnsteady", ""},
		"the proxy's pod is down":  {state{proxy: stuck(observe.Pod{})}, v1alpha1.ConditionProxyReady, "False/PodNotReady", settled, well, "True/PodNotReady", "True/PodNotReady", "False/PodNotReady", "kubectl"},
		"its kubelet says why":     {state{proxy: stuck(hanging())}, v1alpha1.ConditionProxyReady, "False/PodNotReady", settled, well, "True/PodNotReady", "True/PodNotReady", "False/PodNotReady", "the pod of w is not ready: Unhealthy: Readiness probe failed: no answer"},
		"its daemon says why":      {state{proxy: stuck(observe.Pod{}), instances: []v1alpha1.Instance{{IP: "192.0.2.2", Ready: true}, {IP: "192.0.2.3", Message: "forwarding: net1 forwards"}}}, v1alpha1.ConditionProxyReady, "False/PodNotReady", settled, well, "True/PodNotReady", "True/PodNotReady", "False/PodNotReady", "the pod of w is not ready: forwarding: net1 forwards"},
		"an image does not exist":  {state{proxy: stuck(waiting("ImagePullBackOff", "not found"))}, v1alpha1.ConditionProxyReady, "False/PodNotReady", settled, well, "True/PodNotReady", "True/PodNotReady", "False/PodNotReady", "container envoy: ImagePullBackOff: not found"},
		"a container crashes":      {state{proxy: stuck(crashing())}, v1alpha1.ConditionProxyReady, "False/PodNotReady", settled, well, "True/PodNotReady", "True/PodNotReady", "False/PodNotReady", "CrashLoopBackOff: it ended with exit code 1 (Error) no such flag"},
		"the nodes are full":       {state{dns: stuck(unschedulable())}, v1alpha1.ConditionDNSReady, "False/PodNotReady", settled, well, "True/PodNotReady", "True/PodNotReady", "False/PodNotReady", "0/3 nodes are available: 3 Too many pods"},
		"no pod may be created":    {state{dns: observe.Rollout{Exists: true, Workload: "w", Refused: "FailedCreate: exceeded quota"}}, v1alpha1.ConditionDNSReady, "False/PodNotReady", settled, well, "True/PodNotReady", "True/PodNotReady", "False/PodNotReady", "no pod of w can be created: FailedCreate: exceeded quota"},
		"the CNI fails":            {state{dhcp: stuck(creating("FailedCreatePodSandBox: cannot use IPAM"))}, v1alpha1.ConditionDHCPReady, "False/PodNotReady", settled, well, "True/PodNotReady", "True/PodNotReady", "False/PodNotReady", "on node n1: FailedCreatePodSandBox: cannot use IPAM"},
		"the node is lost":         {state{dns: stuck(onLostNode())}, v1alpha1.ConditionDNSReady, "False/NodeLost", settled, well, "True/NodeLost", "True/NodeLost", "False/NodeLost", "kubectl taint node n1 node.kubernetes.io/out-of-service=nodeshutdown:NoExecute, or for this pod alone: kubectl -n clusters delete pod c1-proxy-x --force"},
		"the proxy's node is lost": {state{proxy: stuck(replaced(onLostNode()))}, v1alpha1.ConditionProxyReady, "False/NodeLost", settled, well, "True/NodeLost", "True/NodeLost", "False/NodeLost", "it is replaced 30 seconds after that"},
		"scaled to 0 by hand":      {state{proxy: observe.Rollout{Exists: true, Stopped: true, Workload: "w"}}, v1alpha1.ConditionProxyReady, "False/ScaledToZero", settled, well, "True/ScaledToZero", "True/ScaledToZero", "False/ScaledToZero", "spec.replicas: 0"},
		"a change is rolled out":   {state{proxy: observe.Rollout{Exists: true, Ready: true, Workload: "w"}}, v1alpha1.ConditionProxyReady, "False/Progressing", "True/RollingOut", well, "True/Progressing", well, "False/Progressing", "w is being rolled out"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			first := c.infra(nil, morning).Conditions
			g.Expect(said(first, c.kind)).To(Equal(c.says), c.kind)
			g.Expect(said(first, v1alpha1.ConditionProgressing)).To(Equal(c.progressing))
			g.Expect(said(first, v1alpha1.ConditionDegraded)).To(Equal(c.new), "at the beginning")
			g.Expect(said(first, v1alpha1.ConditionReady)).To(Equal(c.ready))
			for _, one := range first {
				if one.Type == v1alpha1.ConditionReady {
					g.Expect(one.Message).To(ContainSubstring(c.message))
				}
			}
			g.Expect(said(c.infra(first, morning.Add(untilDegraded)).Conditions, v1alpha1.ConditionDegraded)).To(Equal(c.later), "after two minutes, be it of another manager")
			if !c.none {
				served := state{}.infra(nil, morning).Conditions
				g.Expect(said(c.infra(served, noon).Conditions, v1alpha1.ConditionDegraded)).To(Equal(c.fallen), "after everything served")
			}
		})
	}
}

func TestANewInfraThatIsRefusedSaysThatNothingIsCreated(t *testing.T) {
	for want, s := range map[string]state{
		"nothing is created": {found: refusedBy("VLANInUse"), stuck: true, none: true},
		"is not applied, and everything that runs stays as it is": {found: refusedBy("VLANInUse"), stuck: true},
	} {
		all := s.infra(nil, morning).Conditions
		NewWithT(t).Expect(meta.FindStatusCondition(all, v1alpha1.ConditionProgressing).Message).To(ContainSubstring(want))
	}
}
