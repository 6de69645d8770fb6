package controller_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/nad"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/plan/desired"
)

// node plays the workload controllers and a kubelet: it serves a changed template after a while, and reports whether images can be pulled.
type node struct {
	w    *world
	mu   sync.Mutex
	had  map[string]string // each workload's last template
	lack string            // an image that no registry has
	away map[string]int    // how often each Infra's pods were replaced
	most int               // of how many Infras in one pass, at most
}

func (w *world) plays() *node {
	n := &node{w: w, had: map[string]string{}, away: map[string]int{}}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		wait.UntilWithContext(ctx, n.pass, 100*time.Millisecond)
	}()
	w.t.Cleanup(func() { cancel(); <-done })
	return n
}

// pass looks once at all workloads. What cannot be written now is written in the next pass.
func (n *node) pass(ctx context.Context) {
	sets, deployments, pods := &appsv1.StatefulSetList{}, &appsv1.DeploymentList{}, &corev1.PodList{}
	for _, list := range []client.ObjectList{sets, deployments, pods} {
		_ = n.w.api.List(ctx, list, client.InNamespace(n.w.ns))
	}
	away := map[string]bool{}
	replaced := func(o client.Object, template corev1.PodTemplateSpec) {
		now, err := json.Marshal(template)
		if err != nil {
			panic(err) // it came as JSON
		}
		if n.had[o.GetName()] != string(now) {
			n.had[o.GetName()], away[o.GetLabels()[names.LabelInfra]] = string(now), true
		}
	}
	for i := range sets.Items {
		s := &sets.Items[i]
		replaced(s, s.Spec.Template)
		if s.Status.ObservedGeneration != s.Generation {
			s.Status = appsv1.StatefulSetStatus{ObservedGeneration: s.Generation, Replicas: 1, ReadyReplicas: 1, UpdatedReplicas: 1, CurrentRevision: "a", UpdateRevision: "a"}
			_ = n.w.api.Status().Update(ctx, s)
		}
	}
	for i := range deployments.Items {
		d := &deployments.Items[i]
		replaced(d, d.Spec.Template)
		if d.Status.ObservedGeneration != d.Generation {
			d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: 1, ReadyReplicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1}
			_ = n.w.api.Status().Update(ctx, d)
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for infra := range away {
		n.away[infra]++
	}
	n.most = max(n.most, len(away))
	for i := range pods.Items {
		n.pulls(ctx, &pods.Items[i])
	}
}

func (n *node) pulls(ctx context.Context, p *corev1.Pod) {
	var all []corev1.ContainerStatus
	for _, c := range p.Spec.Containers {
		s := corev1.ContainerStatus{Name: c.Name, Image: c.Image, ImageID: "sha256:1", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}}
		if c.Image == n.lack {
			s.ImageID, s.State = "", corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "no such image"}}
		}
		all = append(all, s)
	}
	if len(p.Status.ContainerStatuses) == 0 {
		p.Status.ContainerStatuses = all
		_ = n.w.api.Status().Update(ctx, p)
	}
}

func (n *node) forgets(lack string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lack, n.most, n.away = lack, 0, map[string]int{}
}

func (n *node) seen() (infras, atOnce int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.away), n.most
}

// updatesTemplates does what docs/adr/0005-released-templates.md says for all workloads, in the test's namespace.
func (w *world) updatesTemplates(of ...client.ListOption) {
	w.t.Helper()
	patch := client.RawPatch("application/merge-patch+json", []byte(fmt.Sprintf(`{"metadata":{"annotations":{%q:null}}}`, names.AnnotationSeal)))
	for _, workload := range []client.Object{&appsv1.StatefulSet{}, &appsv1.Deployment{}} {
		list := client.ObjectList(&appsv1.StatefulSetList{})
		if _, is := workload.(*appsv1.Deployment); is {
			list = &appsv1.DeploymentList{}
		}
		w.Expect(w.api.List(w.ctx, list, append(of, client.InNamespace(w.ns))...)).To(Succeed())
		for _, o := range items(list) {
			w.Expect(w.api.Patch(w.ctx, o, patch)).To(Succeed())
		}
	}
}

// haveAll waits until the workloads of so many Infras have an image, and have served with it.
func (w *world) haveAll(infras int, image string) {
	w.t.Helper()
	w.Eventually(func(g Gomega) {
		sets, deployments := &appsv1.StatefulSetList{}, &appsv1.DeploymentList{}
		g.Expect(w.api.List(w.ctx, sets, client.InNamespace(w.ns))).To(Succeed())
		g.Expect(w.api.List(w.ctx, deployments, client.InNamespace(w.ns))).To(Succeed())
		g.Expect(sets.Items).To(HaveLen(4 * infras))
		g.Expect(deployments.Items).To(HaveLen(2 * infras))
		for _, s := range sets.Items {
			g.Expect(s.Spec.Template.Spec.Containers[0].Image).To(Equal(image), s.Name)
			g.Expect(s.Annotations).To(HaveKey(names.AnnotationServed), s.Name)
		}
		for _, d := range deployments.Items {
			g.Expect(d.Spec.Template.Spec.Containers[0].Image).To(Equal(image), d.Name)
			g.Expect(d.Annotations).To(HaveKey(names.AnnotationServed), d.Name)
		}
	}).WithTimeout(5 * time.Minute).WithPolling(time.Second).Should(Succeed())
}

func TestABadImageLeavesThePodThatServes(t *testing.T) {
	w := newWorld(t)
	n := w.plays()
	w.hosts("c1")
	w.creates(w.smallest("c1"))
	w.settled("c1")
	w.haveAll(1, "example.com/oooi:1")
	w.stop()
	n.forgets("example.com/wrong:1")
	w.settings.EnvoyImage = "example.com/wrong:1"
	w.start()
	w.updatesTemplates(client.MatchingLabels{names.LabelApp: names.Proxy})
	w.Expect(w.says("c1", v1alpha1.ConditionProgressing, metav1.ConditionFalse, "ImagePullFailed")).To(And(ContainSubstring("ProxyServer c1-proxy: "), ContainSubstring("no such image")))
	infras, _ := n.seen()
	w.Expect(infras).To(BeZero(), "the pod that serves was replaced")

	w.stop()
	w.settings.EnvoyImage = "example.com/envoy:2"
	w.start()
	sees(w, named(&appsv1.Deployment{}, w.ns, "c1-proxy-deployment"), func(g Gomega, d *appsv1.Deployment) {
		g.Expect(d.Spec.Template.Spec.Containers[1].Image).To(Equal("example.com/envoy:2"), "and nobody has to release it again")
	})
}

// An editor writes by hand the annotations of an updated template, with permissions that the operator has and the editor lacks.
func TestAnEditorIsGrantedNothingByAnAnnotation(t *testing.T) {
	w := newWorld(t)
	w.plays()
	w.hosts("c1")
	w.creates(w.smallest("c1"))
	w.settled("c1")
	w.haveAll(1, "example.com/oooi:1")
	d := sees(w, named(&appsv1.Deployment{}, w.ns, "c1-proxy-deployment"), there)
	w.changes(d, func() {
		template := strings.Replace(d.Annotations[names.AnnotationTemplate], `"annotations":{`, `"annotations":{"an-editors":"own",`, 1)
		decided := strings.Split(d.Annotations[names.AnnotationSeal], ".")
		decided[1] = desired.Digest(template)
		d.Annotations[names.AnnotationTemplate], d.Annotations[names.AnnotationServed], d.Annotations[names.AnnotationSeal] = template, desired.Digest(template), strings.Join(decided, ".")
		d.Annotations[names.AnnotationRules] = `[{"apiGroups":["kubevirt.io"],"resources":["virtualmachines"],"verbs":["get"]},{"apiGroups":["k8s.cni.cncf.io"],"resources":["network-attachment-definitions"],"verbs":["create","patch"]}]`
	})
	role := sees(w, named(&rbacv1.Role{}, w.ns, "c1-proxy"), func(g Gomega, r *rbacv1.Role) {
		g.Expect(fmt.Sprint(r.Rules)).To(ContainSubstring("virtualmachines"), "what he wrote is believed as far as a daemon can have had it")
	})
	w.Expect(fmt.Sprint(role.Rules)).NotTo(ContainSubstring("network-attachment-definitions"))
}

// A change of the NodePool's node selector, or of the network's resource, restarts no pod: the next pod goes there.
func TestPodsThatServeStayWhereTheyAreWhenTheVLANIsSaidToBeElsewhere(t *testing.T) {
	w := newWorld(t)
	w.hosts("c1")
	w.puts(strings.TrimSuffix(w.nodePool("c1", w.ns+"/c1-vlan"), "\n") + "\n      nodeSelector: {rack: a}\n")
	w.creates(w.smallest("c1"))
	on := func(rack string) func(Gomega, *appsv1.StatefulSet) {
		return func(g Gomega, s *appsv1.StatefulSet) {
			g.Expect(s.Spec.Template.Spec.NodeSelector).To(Equal(map[string]string{"rack": rack}))
		}
	}
	dns := sees(w, named(&appsv1.StatefulSet{}, w.ns, "c1-dns-deployment"), on("a"))
	w.settled("c1")
	w.plays()
	before := w.silent()

	pool, network := named(&hyperv1.NodePool{}, w.ns, "c1"), named(&nad.NetworkAttachmentDefinition{}, w.ns, "c1-vlan")
	w.changes(pool, func() { pool.Spec.Platform.Kubevirt.NodeSelector = map[string]string{"rack": "b"} })
	bridges := named(&corev1.Node{}, "", "has-bridges")
	w.creates(bridges)
	t.Cleanup(func() { w.Expect(w.api.Delete(context.Background(), bridges)).To(Succeed()) })
	bridges.Status.Allocatable = corev1.ResourceList{"example.com/br": resource.MustParse("1000")}
	w.Expect(w.api.Status().Update(w.ctx, bridges)).To(Succeed())
	w.changes(network, func() { network.Annotations = map[string]string{nad.ResourceName: "example.com/br"} })
	sees(w, named(&v1alpha1.DNSServer{}, w.ns, "c1-dns"), func(g Gomega, s *v1alpha1.DNSServer) {
		g.Expect(s.Annotations).To(HaveKeyWithValue(names.AnnotationNodes, "rack=b"))
		g.Expect(s.Status.Conditions).To(ContainElement(HaveField("Reason", "TemplateUpdatePending")))
	})
	w.silent()
	for _, call := range w.calls.written()[before:] {
		w.Expect(call).NotTo(Or(ContainSubstring("/statefulsets"), ContainSubstring("/deployments")))
	}

	w.updatesTemplates()
	sees(w, dns, on("b"))
	sees(w, dns, func(g Gomega, s *appsv1.StatefulSet) {
		g.Expect(s.Spec.Template.Spec.Containers[0].Resources.Limits).To(HaveKey(corev1.ResourceName("example.com/br")))
	})
}

// The line that ForwardingNotPrevented advises changes the networks of all Infras, and replaces no pod; an update of the templates replaces
// the pods of one Infra at a time.
func TestALineInTheAllowlistReplacesNoPodOfTwentyInfras(t *testing.T) {
	const infras = 20
	w := newWorld(t)
	w.hosts("c1")
	n := w.plays()
	multus := named(&corev1.Namespace{}, "", nad.SysctlAllowlist.Namespace)
	w.Expect(client.IgnoreAlreadyExists(w.api.Create(w.ctx, multus))).To(Succeed())
	list := named(&corev1.ConfigMap{}, nad.SysctlAllowlist.Namespace, nad.SysctlAllowlist.Name)
	list.Data = map[string]string{"allowlist.conf": "^net.ipv4.conf.IFNAME.accept_ra$\n"}
	w.creates(list)
	t.Cleanup(func() { w.Expect(client.IgnoreNotFound(w.api.Delete(context.Background(), list))).To(Succeed()) })
	derived := func(g Gomega, tuned bool) {
		for i := range infras {
			network := named(&nad.NetworkAttachmentDefinition{}, w.ns, fmt.Sprintf("i%02d-proxy", i))
			g.Expect(w.api.Get(w.ctx, client.ObjectKeyFromObject(network), network)).To(Succeed())
			g.Expect(strings.Contains(network.Spec.Config, `"tuning"`)).To(Equal(tuned), network.Name)
		}
	}
	for i := range infras {
		name := fmt.Sprintf("i%02d", i)
		infra := w.smallest("c1")
		infra.Name = name
		infra.Spec.NetworkConfig.CIDR, infra.Spec.NetworkConfig.NetworkAttachmentDefinition = v1alpha1.Subnet(fmt.Sprintf("192.168.%d.0/24", i)), v1alpha1.ObjectName(name+"-vlan")
		w.creates(&nad.NetworkAttachmentDefinition{
			ObjectMeta: metav1.ObjectMeta{Name: name + "-vlan", Namespace: w.ns},
			Spec:       nad.Spec{Config: fmt.Sprintf(`{"cniVersion":"0.3.1","name":%q,"type":"bridge","bridge":%q}`, w.ns+name, w.ns+name)},
		}, infra)
	}
	w.haveAll(infras, "example.com/oooi:1")
	w.Eventually(derived).WithArguments(false).Should(Succeed())
	w.silent()
	n.forgets("")

	w.changes(list, func() { list.Data["allowlist.conf"] += nad.AllowlistLine() + "\n" })
	w.Eventually(derived).WithArguments(true).Should(Succeed())
	w.silent()
	replaced, _ := n.seen()
	w.Expect(replaced).To(BeZero(), "pods were replaced by the line")

	w.updatesTemplates()
	w.Eventually(func() int { replaced, _ := n.seen(); return replaced }).WithTimeout(3 * time.Minute).Should(Equal(infras))
	w.silent()
	_, atOnce := n.seen()
	w.Expect(atOnce).To(Equal(1), "Infras whose pods were replaced at one time")
}
