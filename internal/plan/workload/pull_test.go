package workload

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	acapps "k8s.io/client-go/applyconfigurations/apps/v1"
	accore "k8s.io/client-go/applyconfigurations/core/v1"
	acrbac "k8s.io/client-go/applyconfigurations/rbac/v1"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/plan/desired"
	"github.com/cldmnky/oooi/internal/plan/input"
)

const imageBefore, imageAfter = "example.com/oooi:1", "example.com/oooi:2"

// A newer manager finds a workload, and the admin has released it or not.
func TestATemplateThatNeverServedIsSuperseded(t *testing.T) {
	for name, c := range map[string]struct {
		served, rolled bool
		image          string
	}{
		"its pod never was Ready":              {false, false, imageAfter},
		"an older manager's whose pod is away": {false, false, imageBefore},
		"an older manager's that serves":       {false, true, imageBefore},
		"its pod was Ready, and is not":        {true, false, imageBefore},
		"its pod was Ready, and is Ready ":     {true, true, imageBefore},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			in := aServer()
			in.Running = servedOf(serverWorkload(in)).annotations
			if !c.served {
				delete(in.Running, names.AnnotationServed)
			}
			if strings.HasPrefix(name, "an older manager's") { // b6c9098 wrote two parts, and no mark
				in.Running[names.AnnotationSeal] = in.Running[names.AnnotationSeal][:strings.LastIndex(in.Running[names.AnnotationSeal], ".")]
			}
			in.Now = Now{Serves: c.rolled, Rolled: c.rolled}
			now, _ := releases(serverWorkload(in), serverWorkload(in).dns(input.Settings{Image: imageAfter}))
			g.Expect(imagesOf(now)).To(ConsistOf(c.image))
			if c.image == imageBefore && (c.served || c.rolled) {
				g.Expect(now.annotations).To(HaveKey(names.AnnotationServed), "that is kept, when the pod is away too")
			}
		})
	}
}

// serving is a server whose pod is Ready, and whose annotations record that.
func serving() Child[*v1alpha1.DNSServer] {
	in := aServer()
	in.Running = workloadAnnotations(DNS(in).Objects)
	in.Now = Now{Serves: true, Rolled: true}
	in.Running = workloadAnnotations(DNS(in).Objects)
	return in
}

// unsealed is a server that serves imageBefore, whose seal an admin has removed to apply a newer template.
func unsealed() Child[*v1alpha1.DNSServer] {
	in := serving()
	delete(in.Running, names.AnnotationSeal)
	in.Now.Turn = true
	in.Settings.Image = imageAfter
	return in
}

// unscheduled: the scheduler finds no node for the pod that pulls.
func unscheduled(in *Child[*v1alpha1.DNSServer]) {
	p := corev1.Pod{}
	p.Name = *pullers(DNS(*in).Objects)[0].Name
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "0/3 nodes are available"}}
	in.Now.Pullers = []corev1.Pod{p}
}

func TestImagesArePulledBeforeThePodThatServesIsReplaced(t *testing.T) {
	puller := func(s corev1.ContainerStatus) func(*Child[*v1alpha1.DNSServer]) {
		return func(in *Child[*v1alpha1.DNSServer]) {
			p := corev1.Pod{}
			p.Name, p.Status.ContainerStatuses = *pullers(DNS(*in).Objects)[0].Name, []corev1.ContainerStatus{s}
			in.Now.Pullers = []corev1.Pod{p}
		}
	}
	for name, c := range map[string]struct {
		change func(*Child[*v1alpha1.DNSServer])
		image  string
		says   string // reason; empty is none
	}{
		"nobody pulls yet": {func(*Child[*v1alpha1.DNSServer]) {}, imageBefore, "PullingImages"},
		"a container is being made": {puller(corev1.ContainerStatus{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}}),
			imageBefore, "PullingImages"},
		"and is for long": {func(in *Child[*v1alpha1.DNSServer]) {
			puller(corev1.ContainerStatus{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}})(in)
			in.Now.Pullers[0].Spec.NodeName, in.Now.PullOver = "n1", true
		}, imageBefore, "PullingImages"},
		"there is no such image": {puller(corev1.ContainerStatus{Image: imageAfter, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "not found"}}}),
			imageBefore, "ImagePullFailed"},
		"it is there":                 {puller(corev1.ContainerStatus{ImageID: "sha256:1"}), imageAfter, ""},
		"it was run":                  {puller(corev1.ContainerStatus{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1}}}), imageAfter, ""},
		"nobody may, or has for long": {func(in *Child[*v1alpha1.DNSServer]) { in.Now.PullOver = true }, imageAfter, ""},
		"there is none, for long": {func(in *Child[*v1alpha1.DNSServer]) {
			puller(corev1.ContainerStatus{Image: imageAfter, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull"}}})(in)
			in.Now.PullOver = true
		}, imageBefore, "ImagePullFailed"},
		"no node takes it, as none has room": {unscheduled, imageBefore, "PullingImages"},
		"nor for long":                       {func(in *Child[*v1alpha1.DNSServer]) { unscheduled(in); in.Now.PullOver = true }, imageAfter, ""},
		"no node takes it where it goes": {func(in *Child[*v1alpha1.DNSServer]) {
			in.Server.Annotations = map[string]string{names.AnnotationNodes: "rack=b"}
			in.Settings.Image = imageBefore
			unscheduled(in)
			in.Now.PullOver = true
		}, imageBefore, "NewPodUnschedulable"},
		"nothing serves": {func(in *Child[*v1alpha1.DNSServer]) { in.Now = Now{} }, imageAfter, ""},
		"another pod pulled another": {func(in *Child[*v1alpha1.DNSServer]) {
			in.Now.Pullers = []corev1.Pod{{Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{ImageID: "sha256:1"}}}}}
		}, imageBefore, "PullingImages"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			in := unsealed()
			c.change(&in)
			before := in.Running
			p := DNS(in)
			g.Expect(podImage(p.Objects)).To(Equal(c.image))
			g.Expect(p.AwaitsImages).To(Equal(c.says != ""))
			if c.says == "" {
				g.Expect(p.Findings).To(BeEmpty())
				g.Expect(pullers(p.Objects)).To(BeEmpty())
				return
			}
			g.Expect(p.Findings).To(ConsistOf(HaveField("Reason", c.says)))
			g.Expect(pullers(p.Objects)).To(HaveLen(1))
			g.Expect(workloadAnnotations(p.Objects)).To(Equal(before), "the release is still asked for")
		})
	}
}

func TestAPodThatPullsImagesIsNobodyElses(t *testing.T) {
	g := NewWithT(t)
	in := unsealed()
	in.Server.Spec.Placement.NodeSelector = map[string]string{"vlan": "100"}
	in.Settings.ImagePullSecrets = []string{"pull"}
	pod := pullers(DNS(in).Objects)[0]
	g.Expect(pod.Labels).NotTo(HaveKey(names.LabelInstance), "no Service, budget or workload selects it")
	g.Expect(pod.Annotations).NotTo(HaveKey(names.AnnotationNetworks))
	g.Expect(pod.Spec.NodeSelector).To(Equal(in.Server.Spec.Placement.NodeSelector))
	g.Expect(pod.Spec.ImagePullSecrets).To(HaveLen(1))
	g.Expect(*pod.Spec.AutomountServiceAccountToken).To(BeFalse())
	g.Expect(*pod.Spec.Containers[0].SecurityContext.AllowPrivilegeEscalation).To(BeFalse())
}

func TestATemplateWaitsForItsTurn(t *testing.T) {
	network := func(in *Child[*v1alpha1.DNSServer]) { in.NAD.Spec.Config = `{"type":"bridge","bridge":"br200"}` }
	for name, c := range map[string]struct {
		change func(*Child[*v1alpha1.DNSServer])
		waits  bool
	}{
		"another network": {network, true},
		"released": {func(in *Child[*v1alpha1.DNSServer]) {
			delete(in.Running, names.AnnotationSeal)
			in.NAD.Spec.Config = bridged + " "
			in.Settings.ImagePullSecrets = []string{"new"}
		}, true},
		"it is its turn":        {func(in *Child[*v1alpha1.DNSServer]) { network(in); in.Now.Turn = true }, false},
		"nothing serves":        {func(in *Child[*v1alpha1.DNSServer]) { network(in); in.Now = Now{} }, false},
		"its own user's change": {func(in *Child[*v1alpha1.DNSServer]) { in.Server.Spec.Placement.PriorityClassName = "high" }, false},
		"its own user's, and a network": {func(in *Child[*v1alpha1.DNSServer]) {
			network(in)
			in.Server.Spec.NetworkConfig.ServerIP = "192.168.100.9"
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			in := serving()
			before := workloadAnnotations(DNS(in).Objects)[names.AnnotationTemplate]
			c.change(&in)
			p := DNS(in)
			g.Expect(p.AwaitsTurn).To(Equal(c.waits))
			g.Expect(workloadAnnotations(p.Objects)[names.AnnotationTemplate] == before).To(Equal(c.waits))
			if c.waits {
				g.Expect(p.Findings).To(ConsistOf(HaveField("Reason", "WaitingForTurn")))
			}
		})
	}
}

// With a template, its bootstrap and rules are kept, because the containers of its pods may restart at any moment.
func TestPodsOfAnOlderTemplateKeepWhatTheyNeed(t *testing.T) {
	g := NewWithT(t)
	in := Child[*v1alpha1.ProxyServer]{&v1alpha1.ProxyServer{}, Surroundings{Settings: input.Settings{Image: imageBefore, EnvoyImage: "example.com/envoy:1"}}}
	in.Server.Namespace, in.Server.Name, in.Server.Spec.NetworkConfig.ServerIP = "clusters", "c1-proxy", "192.168.100.4"
	in.NAD = aServer().NAD
	in.Running = workloadAnnotations(Proxy(in).Objects)
	newest := configOf(Proxy(in).Objects)

	// The template of another manager names another bootstrap, and has more rules.
	older := "node: {id: older}\n"
	w := proxyWorkloads(in)[0]
	old, _ := releases(w, w.proxy(in.Settings, older))
	in.Running = old.annotations
	in.Running[names.AnnotationRules] = `[{"verbs":["get"],"apiGroups":[""],"resources":["older"]}]`
	in.Now = Now{Serves: true, Rolled: true}
	in.Bootstrap = older
	p := Proxy(in)
	g.Expect(configOf(p.Objects)).To(Equal(older))
	g.Expect(rulesIn(p.Objects)).To(And(ContainSubstring(`"older"`), ContainSubstring(`"proxyservers"`)))

	delete(in.Running, names.AnnotationSeal)
	in.Now.Turn = true
	p = Proxy(in)
	g.Expect(configOf(p.Objects)).To(Equal(newest))
	g.Expect(rulesIn(p.Objects)).NotTo(ContainSubstring(`"older"`))

	in.Running, in.Bootstrap = old.annotations, "edited by hand"
	g.Expect(configOf(Proxy(in).Objects)).To(Equal(newest))
}

// A user who may annotate a Deployment need not be allowed to grant rights: a rule that no daemon ever had is dropped.
func TestAnAnnotationGrantsNoRights(t *testing.T) {
	in := Child[*v1alpha1.ProxyServer]{&v1alpha1.ProxyServer{}, Surroundings{Settings: input.Settings{Image: imageBefore, EnvoyImage: "example.com/envoy:1"}}}
	in.Server.Namespace, in.Server.Name, in.Server.Spec.NetworkConfig.ServerIP = "clusters", "c1-proxy", "192.168.100.4"
	in.NAD = aServer().NAD
	w := proxyWorkloads(in)[0]
	old, _ := releases(w, w.proxy(in.Settings, "node: {id: older}\n"))
	in.Now = Now{Serves: true, Rolled: true}
	for rule, kept := range map[string]bool{
		`{"verbs":["get","list","watch"],"apiGroups":["kubevirt.io"],"resources":["virtualmachines"]}`:                         true,
		`{"verbs":["patch"],"apiGroups":["hostedcluster.densityops.com"],"resources":["proxyservers/status"]}`:                 true,
		`{"verbs":["create","patch"],"apiGroups":["events.k8s.io"],"resources":["events"]}`:                                    true,
		`{"verbs":["create","update"],"apiGroups":["hostedcluster.densityops.com"],"resources":["dhcpleases"]}`:                true,
		`{"verbs":["create"],"apiGroups":["k8s.cni.cncf.io"],"resources":["network-attachment-definitions"]}`:                  false,
		`{"verbs":["create","patch"],"apiGroups":["rbac.authorization.k8s.io"],"resources":["rolebindings"]}`:                  false,
		`{"verbs":["patch"],"apiGroups":["hostedcluster.densityops.com"],"resources":["proxyservers/status","infras/status"]}`: false,
		`{"verbs":["get"],"apiGroups":[""],"resources":["secrets"]}`:                                                           false,
		`{"verbs":["get"],"apiGroups":["*"],"resources":["*"]}`:                                                                false,
		`{"verbs":["get"],"apiGroups":["*"],"resources":["*/status"]}`:                                                         false,
		`{"verbs":["*"],"apiGroups":[""],"resources":["pods"]}`:                                                                false,
		`{"verbs":["get"],"nonResourceURLs":["/metrics"]}`:                                                                     false,
		`null`: false,
	} {
		in.Running = maps.Clone(old.annotations)
		in.Running[names.AnnotationRules] = "[" + rule + "]"
		var written acrbac.PolicyRuleApplyConfiguration
		g := NewWithT(t)
		g.Expect(json.Unmarshal([]byte(rule), &written)).To(Succeed())
		g.Expect(strings.Contains(rulesIn(Proxy(in).Objects), string(desired.Encoded(&written)))).To(Equal(kept), rule)
	}
}

func pullers(objects []runtime.ApplyConfiguration) (all []*accore.PodApplyConfiguration) {
	return kindIn[*accore.PodApplyConfiguration](objects)
}

func kindIn[T any](objects []runtime.ApplyConfiguration) (all []T) {
	for _, o := range objects {
		if one, is := o.(T); is {
			all = append(all, one)
		}
	}
	return all
}

func podImage(objects []runtime.ApplyConfiguration) string {
	return *kindIn[*acapps.StatefulSetApplyConfiguration](objects)[0].Spec.Template.Spec.Containers[0].Image
}

func workloadAnnotations(objects []runtime.ApplyConfiguration) map[string]string {
	for _, d := range kindIn[*acapps.DeploymentApplyConfiguration](objects) {
		return d.Annotations
	}
	return kindIn[*acapps.StatefulSetApplyConfiguration](objects)[0].Annotations
}

func configOf(objects []runtime.ApplyConfiguration) string {
	return kindIn[*accore.ConfigMapApplyConfiguration](objects)[0].Data[BootstrapKey]
}

func rulesIn(objects []runtime.ApplyConfiguration) string {
	return string(desired.Encoded(kindIn[*acrbac.RoleApplyConfiguration](objects)[0].Rules))
}
