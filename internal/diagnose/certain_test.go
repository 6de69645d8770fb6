package diagnose

import (
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/step"
)

// at is the step of one stage.
func at(f Facts, stage string) step.Step {
	steps, _ := Worker(f, "w1")
	if i := slices.IndexFunc(steps, func(s step.Step) bool { return s.Name == stage }); i >= 0 {
		return steps[i]
	}
	return step.Step{}
}

func expiresAt(o *metav1.ObjectMeta, at time.Time) {
	o.Annotations = map[string]string{hyperv1.IgnitionServerTokenExpirationTimestampAnnotation: at.Format(time.RFC3339)}
}

// An old machine is judged by its age only if it is known not to have joined.
func TestAMachineThatHasJoinedNeedsNoToken(t *testing.T) {
	g, f := NewWithT(t), joined()
	f.Machines.Is[0].Created = ago(12 * time.Hour)
	expiresAt(&f.Tokens.Is[0], ago(time.Hour))
	g.Expect(at(f, "ignition")).To(And(HaveField("Outcome", step.OK), HaveField("Says", HavePrefix("it has fetched"))))
	f = joined()
	f.Machines.Is[0].Created, f.Hosted = ago(12*time.Hour), step.Read[Hosted]{Unread: "no answer"}
	g.Expect(at(f, "ignition").Outcome).To(Equal(step.OK))
	expiresAt(&f.Tokens.Is[0], ago(time.Hour))
	g.Expect(at(f, "ignition")).To(And(HaveField("Outcome", step.Unread), HaveField("Do", Not(ContainSubstring("delete")))))
}

// Whether a worker is past something, only the hosted cluster tells.
func TestNoFaultStopsAWorkerOfWhichNobodyKnowsHowFarItCame(t *testing.T) {
	for _, cause := range []string{"wrong-hostname", "dns-down", "name-missing", "proxy-down", "no-route", "backend-down", "ignition-down", "no-token"} {
		t.Run(cause, func(t *testing.T) {
			g, f := NewWithT(t), joined()
			brokenBy[cause](&f)
			f.Hosted = step.Read[Hosted]{Unread: "you may not"}
			steps, _ := Worker(f, "w1")
			g.Expect(steps).To(ContainElement(And(HaveField("See", Page+cause), HaveField("Outcome", step.Warn))))
			g.Expect(step.Worst(steps)).To(Equal(step.Unread))
		})
	}
	g, f := NewWithT(t), joined()
	f.Proxy.Is.Status.Backends[0].Healthy, f.Hosted = 0, step.Read[Hosted]{Unread: "no answer"}
	g.Expect(at(f, "backends")).To(And(HaveField("See", Page+backendDown), HaveField("Outcome", step.Fail)), "an API that is down stops all")
}

// While a NodePool replaces its machines, its annotation names the old config.
func TestATokenOfTheNewConfigSuffices(t *testing.T) {
	g, f := NewWithT(t), joined()
	absent(&f)
	f.NodePools.Is[0].Annotations = map[string]string{"hypershift.openshift.io/nodePoolCurrentConfigVersion": "91bf131f"}
	expiresAt(&f.Tokens.Is[0], ago(time.Hour))
	f.Tokens.Is = append(f.Tokens.Is, metav1.ObjectMeta{Name: "token-c1-gpu-11111111"})
	g.Expect(at(f, "ignition").See).To(Equal(Page+tokenExpired), "that of another NodePool does not")
	f.Tokens.Is = append(f.Tokens.Is, metav1.ObjectMeta{Name: "token-c1-22222222"})
	g.Expect(at(f, "ignition")).To(And(HaveField("Outcome", step.OK), HaveField("Says", ContainSubstring("token-c1-22222222"))))
}

// The ignition server says which config a request named, and no machine.
func TestARefusalIsOfAWorkerThatHasNoConfig(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Facts)
		want   string
	}{
		"a token of an older config":      {func(f *Facts) { f.Refusals.Is[0].InvolvedObject.Name = "token-c1-0000aaaa" }, tokenRefused},
		"a worker that was started again": {func(f *Facts) { f.Leases.Is[0].Status.Stages[0].FirstTime = metav1.NewMicroTime(ago(2 * time.Hour)) }, tokenRefused},
		"in a series": {func(f *Facts) {
			f.Refusals.Is[0].LastTimestamp, f.Refusals.Is[0].EventTime = metav1.Time{}, metav1.NewMicroTime(ago(time.Minute))
		}, tokenRefused},
		"before the worker started":    {func(f *Facts) { f.Refusals.Is[0].LastTimestamp = metav1.NewTime(ago(31 * time.Minute)) }, ""},
		"of another NodePool":          {func(f *Facts) { f.Refusals.Is[0].InvolvedObject.Name = "token-c1-gpu-91bf131f" }, ""},
		"of a name that a guest wrote": {func(f *Facts) { f.Refusals.Is[0].InvolvedObject.Name = "token-c1-x; reboot" }, ""},
		"in words of a later release":  {func(f *Facts) { f.Refusals.Is[0].Message = "Teapot" }, ""},
		"a worker that has a config":   {func(f *Facts) { f.Leases.Is[0].Status.Stages[0].ReceivedBytes = v1alpha1.MuchReceived }, ""},
		"a worker that has not asked":  {func(f *Facts) { f.Leases.Is[0].Status.Stages = nil }, ""},
		"a worker without a lease":     {func(f *Facts) { f.Leases.Is, f.DHCP.Is = nil, nil }, ""},
		"a token that has expired":     {func(f *Facts) { expiresAt(&f.Tokens.Is[0], ago(time.Hour)) }, tokenExpired},
	} {
		t.Run(name, func(t *testing.T) {
			g, f := NewWithT(t), joined()
			brokenBy[tokenRefused](&f)
			c.change(&f)
			if c.want != "" {
				c.want = Page + c.want
			}
			g.Expect(at(f, "ignition").See).To(Equal(c.want))
		})
	}
}

// The config of a machine that has just started is being made, and of several machines the newest answer counts.
func TestAnUnknownTokenIsAwaited(t *testing.T) {
	g, f := NewWithT(t), joined()
	absent(&f)
	refuses(&f, "Token not found in cache")
	g.Expect(at(f, "ignition")).To(And(HaveField("See", Page+tokenRefused), HaveField("Says", HavePrefix("the ignition server answered 511 (Token not found in cache) at 2026-11-27T11:40:00Z (+10m0s)"))))
	f.Machines.Is[0].Started, f.Refusals.Is[0].LastTimestamp = ago(2*time.Minute), metav1.NewTime(ago(time.Minute))
	g.Expect(at(f, "ignition").Outcome).To(Equal(step.OK))
	refuses(&f, "Token invalid")
	f.Refusals.Is[1].LastTimestamp = metav1.NewTime(ago(30 * time.Second))
	g.Expect(at(f, "ignition").Outcome).To(Equal(step.OK), "another machine's, perhaps")
	f.Machines.Is[0].Started = ago(payloadTakes)
	g.Expect(at(f, "ignition")).To(And(HaveField("See", Page+tokenRefused), HaveField("Says", HavePrefix("the ignition server answered 401 (Token invalid)"))))
	f.Refusals.Is[0].LastTimestamp = metav1.NewTime(ago(time.Second))
	g.Expect(at(f, "ignition").Says).To(HavePrefix("the ignition server answered 511"))
}

// HyperShift writes False when it does not find the token's Secret.
func TestAMissingSecretIsNoInvalidConfig(t *testing.T) {
	g, f := NewWithT(t), joined()
	brokenBy["payload-invalid"](&f)
	c := &f.NodePools.Is[0].Status.Conditions[0]
	c.Status, c.Reason = corev1.ConditionFalse, hyperv1.NodePoolNotFoundReason
	f.Tokens.Is = nil
	g.Expect(at(f, "ignition").See).To(Equal(Page + noToken))
}

// Heartbeats are of the hosted cluster's clock.
func TestAReadyNodeIsNotSilent(t *testing.T) {
	g, f := NewWithT(t), joined()
	n := f.Hosted.Is.Nodes["w1"]
	n.Heartbeat = ago(10 * time.Minute)
	f.Hosted.Is.Nodes["w1"] = n
	g.Expect(at(f, "node").Outcome).To(Equal(step.OK))
	n.Ready.Status = corev1.ConditionFalse
	f.Hosted.Is.Nodes["w1"] = n
	g.Expect(at(f, "node").See).To(Equal(Page + nodeNotReady))
}

// The hosted cluster's names go into no command unless they are names.
func TestACommandHasOnlyNames(t *testing.T) {
	g, f := NewWithT(t), joined()
	brokenBy["csr-pending"](&f)
	g.Expect(at(f, "certificate").Do).To(HaveSuffix("oc adm certificate approve csr-1"))
	f.Hosted.Is.Requests[0].Name = "csr-1; reboot"
	g.Expect(at(f, "certificate")).To(And(HaveField("See", Page+requestPending), HaveField("Do", Not(ContainSubstring("reboot")))))
}

func TestAMachineThatChangesIsAwaited(t *testing.T) {
	g, f := NewWithT(t), joined()
	f.Machines.Is[0].Runs, f.Machines.Is[0].Changes = false, true
	steps, _ := Worker(f, "w1")
	g.Expect(steps).To(ConsistOf(And(HaveField("Name", "machine"), HaveField("See", Page+booting))))
}

// What the caller may not read, he is not told the opposite of.
func TestWhatIsUnreadIsNoCause(t *testing.T) {
	const why = "you may not list them"
	for name, c := range map[string]struct {
		change      func(*Facts)
		stage, says string
		outcome     step.Outcome
	}{
		"networks":          {func(f *Facts) { f.Machines.Is[0].Cards[0].Network, f.Networks.Unread = "default/alias", why }, "card", "whether default/alias is the VLAN of default/vlan100: NetworkAttachmentDefinitions not read: " + why, step.Unread},
		"the DHCPServer":    {func(f *Facts) { unleased(f); f.DHCP = step.Read[*v1alpha1.DHCPServer]{Unread: why} }, "lease", "without the DHCPServer", step.Skip},
		"events":            {func(f *Facts) { unleased(f); f.Warnings.Unread = why }, "lease", "whether another DHCP server answers it: events not read: " + why, step.Unread},
		"no lease, no CSR":  {func(f *Facts) { unleased(f); f.Warnings.Unread = why }, "certificate", "it has no lease", step.Warn},
		"refusals":          {func(f *Facts) { brokenBy[tokenRefused](f); f.Refusals = step.Read[[]corev1.Event]{Unread: why} }, "ignition", "whether the ignition server refused it: its events not read: " + why, step.Unread},
		"NetworkPolicies":   {func(f *Facts) { brokenBy["network-policy"](f); f.Policies = step.Read[[]string]{Unread: why} }, "backends", "whether a NetworkPolicy is missing is not known: " + why, step.Fail},
		"no hosted cluster": {func(f *Facts) { brokenBy["network-policy"](f); f.Infra.Spec.HostedClusterRef, f.Policies.Is = nil, nil }, "backends", "no target of ignition answers the proxy: ", step.Fail},
	} {
		t.Run(name, func(t *testing.T) {
			g, f := NewWithT(t), joined()
			c.change(&f)
			s := at(f, c.stage)
			g.Expect(s.Says).To(ContainSubstring(c.says))
			g.Expect(s.Outcome).To(Equal(c.outcome))
			g.Expect(s.See).NotTo(Equal(Page + policyMissing))
		})
	}
}

// What is being rolled out, or waits for the control plane, comes by itself; a worker that has passed it does not wait for it.
func TestWhatProgressesIsAwaited(t *testing.T) {
	g, f := NewWithT(t), joined()
	breaks(&f, "DNSReady", "Progressing")
	g.Expect(at(f, "names")).To(And(HaveField("Outcome", step.Warn), HaveField("See", Page+booting)))
	g.Expect(at(f, "tunnel").Outcome).To(Equal(step.OK), "the walk of a Ready worker goes on")
	absent(&f)
	g.Expect(at(f, "proxy")).To(Equal(step.Step{}), "that of a new one does not")
	f = joined()
	unleased(&f)
	breaks(&f, "EndpointsResolved", "WaitingForControlPlane")
	f.DHCP.Is, f.DNS.Is, f.Proxy.Is = nil, nil, nil
	for _, s := range Infra(f) {
		g.Expect(s.Outcome).NotTo(Equal(step.Fail), s.Says)
	}
}

// A machine that starts again has a lease that ended while it was off.
func TestALeaseThatEndedBeforeTheStartSaysNothing(t *testing.T) {
	g, f := NewWithT(t), joined()
	absent(&f)
	f.Machines.Is[0].Started = ago(10 * time.Second)
	f.Leases.Is[0].Spec.DurableUntilTime = metav1.NewMicroTime(ago(time.Minute))
	g.Expect(at(f, "lease").See).To(Equal(Page + booting))
	f.Machines.Is[0].Started = ago(2 * time.Minute)
	g.Expect(at(f, "lease").See).To(Equal(Page + leaseEnded))
}

// Workers of one HostedCluster may be on two VLANs, each with its Infra.
func TestAWorkerIsItsOwnInfras(t *testing.T) {
	g, f := NewWithT(t), joined()
	gpu := f.Infra.DeepCopy()
	gpu.Name, gpu.Spec.NetworkConfig.NetworkAttachmentDefinition = "c1-gpu", "vlan200"
	f.Others = []v1alpha1.Infra{*f.Infra, *gpu}
	twin := f.Machines.Is[0]
	twin.Name, twin.Cards = "gpu-1", []Card{{MAC: "52:54:00:00:02:01", Network: "default/vlan200"}}
	f.Machines.Is = append(f.Machines.Is, twin)
	_, found := Worker(f, "gpu-1")
	g.Expect(found).To(BeFalse())
	g.Expect(Infra(f)).To(HaveLen(len(services)+1), "of this Infra nothing is said of it")
	of := f
	of.Infra = gpu
	steps, found := Worker(of, "gpu-1")
	g.Expect(found).To(BeTrue())
	g.Expect(steps[1]).To(And(HaveField("Name", "card"), HaveField("Outcome", step.OK)))
	_, found = Worker(of, "w1")
	g.Expect(found).To(BeFalse())

	f.Machines.Is[1].Cards[0].Network = "default/vlan77"
	g.Expect(at(f, "card").Outcome).To(Equal(step.OK))
	steps, _ = Worker(f, "gpu-1")
	g.Expect(steps[1].See).To(Equal(Page+otherNetwork), "one that is on neither is nobody's")
	f.Machines.Is[1].Cards[0].Network = "default/vlan200"
	f.Others[1].Spec.HostedClusterRef = &v1alpha1.HostedClusterReference{Name: "c2"}
	steps, _ = Worker(f, "gpu-1")
	g.Expect(steps[1].See).To(Equal(Page+otherNetwork), "an Infra of another cluster does not serve it")
}

// Konnectivity's agent starts after its Node is Ready.
func TestATunnelIsAwaitedWhileItsAgentStarts(t *testing.T) {
	g, f := NewWithT(t), joined()
	brokenBy["no-tunnel"](&f)
	set := func(change func(*Node)) {
		n := f.Hosted.Is.Nodes["w1"]
		change(&n)
		f.Hosted.Is.Nodes["w1"] = n
	}
	g.Expect(at(f, "tunnel")).To(And(HaveField("See", Page+noTunnel), HaveField("Says", ContainSubstring("no agent of konnectivity runs on it"))))
	set(func(n *Node) { n.Agent.Created = ago(4 * time.Minute) })
	g.Expect(at(f, "tunnel")).To(And(HaveField("See", Page+booting), HaveField("Outcome", step.Warn)))
	set(func(n *Node) { n.Agent.Ready = true })
	g.Expect(at(f, "tunnel")).To(And(HaveField("See", Page+noTunnel), HaveField("Says", HaveSuffix("it answers 500"))))
	set(func(n *Node) { n.Agent.Ready, n.Agent.Created = false, ago(6*time.Minute) })
	g.Expect(at(f, "tunnel").See).To(Equal(Page + noTunnel))
	set(func(n *Node) {
		n.Agent.Created, n.Ready.LastTransitionTime = time.Time{}, metav1.NewTime(ago(50*time.Second))
	})
	g.Expect(at(f, "tunnel").See).To(Equal(Page+booting), "its kubelet's certificate may not be approved yet")
}

// A machine is not on the VLAN of an Infra whose network somebody misspelt, and its own network is the right one.
func TestTheCardOfARefusedInfrasMachineIsNotJudged(t *testing.T) {
	g, f := NewWithT(t), joined()
	unleased(&f)
	breaks(&f, "NetworkReady", "NADNotFound")
	f.Machines.Is[0].Cards[0].Network = "default/vlan77"
	g.Expect(at(f, "card").See).To(Equal(Page+otherNetwork), "it served before")
	f.DHCP.Is = nil
	g.Expect(at(f, "card").Outcome).To(Equal(step.Skip))
	g.Expect(at(f, "dhcp").See).To(Equal(Page + infraRefused))
}
