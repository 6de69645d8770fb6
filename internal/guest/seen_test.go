package guest_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	sigsenvtest "sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/guest/bounded"
	"github.com/cldmnky/oooi/internal/plan/input"
	"github.com/cldmnky/oooi/internal/testkit/envtest"
)

func TestMetalLBIsSeenThoughItComesLate(t *testing.T) {
	w := serving(t)
	w.Expect(w.see().MetalLB).To(Equal(input.GuestMetalLB{}))
	connections := w.wire.connections()
	uninstall := w.installs(metalLBKind("MetalLB", "metallbs"), metalLBKind("L2Advertisement", "l2advertisements"))
	api, err := client.New(cluster.Admin, client.Options{})
	w.Expect(err).NotTo(HaveOccurred())
	metalLB := metalLBObject("MetalLB", map[string]any{"loadBalancerClass": "metallb.io/metallb"})
	w.Expect(api.Create(w.ctx, metalLB)).To(Succeed())
	w.Expect(api.Create(w.ctx, metalLBObject("L2Advertisement", nil))).To(Succeed())
	want := input.GuestMetalLB{
		Objects:        []input.GuestMetalLBObject{{Namespace: "default", Name: "late", Class: "metallb.io/metallb"}},
		Advertisements: []string{"late"},
	}
	w.Eventually(func() input.GuestMetalLB { return w.see().MetalLB }, 10*time.Second).Should(BeComparableTo(want))
	metalLB.Object["spec"] = map[string]any{}
	w.Expect(api.Update(w.ctx, metalLB)).To(Succeed())
	w.eventually("that the class is gone", func(g *input.Guest) bool { return g.MetalLB.Objects[0].Class == "" })

	uninstall()
	w.eventually("that MetalLB is gone", func(g *input.Guest) bool { return g.MetalLB.Objects == nil && g.MetalLB.Advertisements == nil })
	w.Expect(w.see().Problem).To(BeNil(), "a kind that goes is no trouble")
	w.Expect(w.wire.connections()).To(Equal(connections), "one that is not served yet ends no visit")
}

// What an API server answers about a kind that was just created, or is being removed, is no problem of the hosted cluster.
func TestAKindThatIsUnsettledEndsNoVisit(t *testing.T) {
	for _, says := range []*apierrors.StatusError{apierrors.NewTooManyRequests("storage is (re)initializing", 1), apierrors.NewResourceExpired("too old resource version: 355 (367)")} {
		t.Run(string(says.ErrStatus.Reason), func(t *testing.T) {
			says.ErrStatus.Kind = "Status"
			w := newWorld(t, v1alpha1.AppsLoadBalancer)
			f := w.behindFront("token")
			var asked atomic.Int32
			f.answersSome(func(to http.ResponseWriter, r *http.Request) bool {
				if r.URL.Path != "/apis/metallb.io/v1beta1/metallbs" || asked.Add(1) > 1 {
					return false
				}
				to.WriteHeader(int(says.ErrStatus.Code))
				w.Expect(json.NewEncoder(to).Encode(says.ErrStatus)).To(Succeed())
				return true
			})
			w.eventually("the hosted cluster", reached)
			t.Cleanup(w.installs(metalLBKind("MetalLB", "metallbs")))
			w.Eventually(f.calls, 10*time.Second).Should(ContainElement("watch /apis/metallb.io/v1beta1/metallbs"))
			visits := slices.DeleteFunc(f.calls(), func(call string) bool { return call != "get /version" })
			w.Expect(visits).To(HaveLen(1))
			w.Expect(asked.Load()).To(BeNumerically(">", 1))
		})
	}
}

// installs creates CRDs; uninstall removes them, and awaits that they are gone, because one that is being deleted cannot be created again.
func (w *world) installs(crds ...*apiextensionsv1.CustomResourceDefinition) (uninstall func()) {
	options := sigsenvtest.CRDInstallOptions{CRDs: crds, MaxTime: envtest.Patience, Scheme: runtime.NewScheme()}
	w.Expect(apiextensionsv1.AddToScheme(options.Scheme)).To(Succeed())
	_, err := sigsenvtest.InstallCRDs(cluster.Admin, options)
	w.Expect(err).NotTo(HaveOccurred())
	api, err := client.New(cluster.Admin, client.Options{Scheme: options.Scheme})
	w.Expect(err).NotTo(HaveOccurred())
	return func() {
		w.Expect(sigsenvtest.UninstallCRDs(cluster.Admin, options)).To(Succeed())
		for _, crd := range crds {
			w.Eventually(func() error { return api.Get(context.Background(), client.ObjectKeyFromObject(crd), crd) }, 10*time.Second).Should(MatchError(apierrors.IsNotFound, "it is gone"))
		}
	}
}

// metalLBKind is a CRD of MetalLB's with as much as the API server requires.
func metalLBKind(kind, plural string) *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + ".metallb.io"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "metallb.io", Scope: apiextensionsv1.NamespaceScoped, Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: kind, Plural: plural},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1beta1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: ptr.To(true)}},
			}},
		},
	}
}

func metalLBObject(kind string, spec map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	o.SetGroupVersionKind(schema.GroupVersionKind{Group: "metallb.io", Version: "v1beta1", Kind: kind})
	o.SetNamespace("default")
	o.SetName("late")
	return o
}

func TestTheArgumentsOfMetalLBsWorkloadsAreSeen(t *testing.T) {
	w := serving(t)
	labels := func(component string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: w.infra.Namespace + "-" + component, Labels: map[string]string{"app": "metallb", "component": component}}
	}
	template := func(component string) corev1.PodTemplateSpec {
		return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "metallb"}}, Spec: corev1.PodSpec{Containers: []corev1.Container{
			{Name: "kube-rbac-proxy", Image: "x", Args: []string{"--lb-class=not-this"}},
			{Name: component, Image: "x", Args: []string{"--port=7472", "--lb-class=metallb.io/metallb"}},
		}}}
	}
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "metallb"}}
	apps := w.kube.AppsV1()
	controller, err := apps.Deployments("default").Create(w.ctx, &appsv1.Deployment{ObjectMeta: labels("controller"), Spec: appsv1.DeploymentSpec{Selector: selector, Template: template("controller")}}, metav1.CreateOptions{})
	w.Expect(err).NotTo(HaveOccurred())
	speaker, err := apps.DaemonSets("default").Create(w.ctx, &appsv1.DaemonSet{ObjectMeta: labels("speaker"), Spec: appsv1.DaemonSetSpec{Selector: selector, Template: template("speaker")}}, metav1.CreateOptions{})
	w.Expect(err).NotTo(HaveOccurred())
	args := []string{"--port=7472", "--lb-class=metallb.io/metallb"}
	w.Eventually(func() []input.GuestWorkload { return w.see().MetalLB.Workloads }).Should(Equal([]input.GuestWorkload{
		{Kind: "Deployment", Namespace: "default", Name: controller.Name, Container: "controller", Args: args},
		{Kind: "DaemonSet", Namespace: "default", Name: speaker.Name, Container: "speaker", Args: args},
	}))
	w.Expect(apps.Deployments("default").Delete(w.ctx, controller.Name, metav1.DeleteOptions{})).To(Succeed())
	w.Expect(apps.DaemonSets("default").Delete(w.ctx, speaker.Name, metav1.DeleteOptions{})).To(Succeed())
	w.eventually("that they are gone", func(g *input.Guest) bool { return len(g.MetalLB.Workloads) == 0 })
}

func TestNodesAndTheRouterAreSeenInModeNodePort(t *testing.T) {
	w := newWorld(t, v1alpha1.AppsNodePort)
	w.hasKubeconfig(w.kubeconfig())
	w.eventually("the hosted cluster", reached)
	nodes := w.kube.CoreV1().Nodes()
	node, err := nodes.Create(w.ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "worker-1", Finalizers: []string{"example.com/hold"}}}, metav1.CreateOptions{})
	w.Expect(err).NotTo(HaveOccurred())
	ready := func(is corev1.ConditionStatus) {
		node.Status = corev1.NodeStatus{
			Addresses: []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: "worker-1"}, {Type: corev1.NodeInternalIP, Address: "192.168.100.10"},
				{Type: corev1.NodeInternalIP, Address: "fd00::5%eth0"}, {Type: corev1.NodeInternalIP, Address: "fd00::10"}, {Type: corev1.NodeExternalIP, Address: "203.0.113.1"}},
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionTrue}, {Type: corev1.NodeReady, Status: is}},
		}
		node, err = nodes.UpdateStatus(w.ctx, node, metav1.UpdateOptions{})
		w.Expect(err).NotTo(HaveOccurred())
	}
	seen := func() []input.GuestNode { return w.see().Nodes }
	want := input.GuestNode{Name: "worker-1", Addresses: []netip.Addr{netip.MustParseAddr("192.168.100.10"), netip.MustParseAddr("fd00::10")}}
	ready(corev1.ConditionUnknown)
	w.Eventually(seen).Should(Equal([]input.GuestNode{want}))
	ready(corev1.ConditionTrue)
	want.Ready = true
	w.Eventually(seen).Should(Equal([]input.GuestNode{want}))
	w.Expect(nodes.Delete(w.ctx, "worker-1", metav1.DeleteOptions{})).To(Succeed())
	want.Deleting = true
	w.Eventually(seen).Should(Equal([]input.GuestNode{want}))
	_, err = nodes.Patch(w.ctx, "worker-1", types.JSONPatchType, []byte(`[{"op":"remove","path":"/metadata/finalizers"}]`), metav1.PatchOptions{})
	w.Expect(err).NotTo(HaveOccurred())
	w.Eventually(seen).Should(BeEmpty())

	services := w.kube.CoreV1().Services(ingress)
	router, err := services.Create(w.ctx, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "router-nodeport-default"}, Spec: corev1.ServiceSpec{
		Type: corev1.ServiceTypeNodePort, Ports: []corev1.ServicePort{{Name: "https", Port: 443}},
	}}, metav1.CreateOptions{})
	w.Expect(err).NotTo(HaveOccurred())
	port := router.Spec.Ports[0].NodePort
	w.Expect(port).NotTo(BeZero())
	w.eventually("the router", func(g *input.Guest) bool { return g.Router != nil && g.Router.Spec.Ports[0].NodePort == port })
	w.Expect(services.Delete(w.ctx, "router-nodeport-default", metav1.DeleteOptions{})).To(Succeed())
	w.eventually("that the router is gone", func(g *input.Guest) bool { return g.Router == nil })
}

// ingressController is that kind's CRD with as much as the API server requires; OpenShift's comes with the hosted cluster's operators.
func ingressController() *apiextensionsv1.CustomResourceDefinition {
	crd := metalLBKind("IngressController", "ingresscontrollers")
	crd.Name, crd.Spec.Group = "ingresscontrollers.operator.openshift.io", "operator.openshift.io"
	crd.Spec.Versions[0].Name = "v1"
	return crd
}

// published sets the strategy by which the hosted cluster's default IngressController publishes its routers.
func (w *world) published(strategy string) {
	api, err := client.New(cluster.Admin, client.Options{})
	w.Expect(err).NotTo(HaveOccurred())
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "openshift-ingress-operator"}}
	w.Expect(client.IgnoreAlreadyExists(api.Create(w.ctx, namespace))).To(Succeed())
	o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"endpointPublishingStrategy": map[string]any{"type": strategy}}}}
	o.SetGroupVersionKind(schema.GroupVersionKind{Group: "operator.openshift.io", Version: "v1", Kind: "IngressController"})
	o.SetNamespace(namespace.Name)
	o.SetName("default")
	w.Expect(api.Patch(w.ctx, o, client.Apply, client.FieldOwner("test"))).To(Succeed()) //nolint:staticcheck // there is no apply configuration of it
}

// The routers are watched once they listen on their workers, without another visit; one that ends, or moves, is reported.
func TestRoutersOnTheirWorkersAreSeenFromWhenTheIngressControllerSaysSo(t *testing.T) {
	w := newWorld(t, "")
	w.hasKubeconfig(w.kubeconfig())
	w.eventually("the hosted cluster", reached)
	w.Expect(w.see().Ingress).To(BeNil())
	connections := w.wire.connections()
	t.Cleanup(w.installs(ingressController()))
	w.published("NodePortService")
	w.eventually("how its routers are published", func(g *input.Guest) bool { return g.Ingress != nil && g.Ingress.Type == "NodePortService" })
	router := w.runsRouter("worker-1")
	w.published("HostNetwork")
	want := input.GuestRouter{Node: "worker-1", HostNetwork: true, HTTP: 8080, HTTPS: 8443}
	seen := func() []input.GuestRouter { return w.see().Routers }
	w.Eventually(seen).Should(Equal([]input.GuestRouter{want}))
	w.Expect(w.wire.connections()).To(Equal(connections), "what is looked at later ends no visit")

	router.Status.Phase, router.Status.Conditions = corev1.PodRunning, []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	pods := w.kube.CoreV1().Pods(ingress)
	router, err := pods.UpdateStatus(w.ctx, router, metav1.UpdateOptions{})
	w.Expect(err).NotTo(HaveOccurred())
	want.Ready = true
	w.Eventually(seen).Should(Equal([]input.GuestRouter{want}))
	w.Expect(pods.Delete(w.ctx, router.Name, metav1.DeleteOptions{})).To(Succeed()) // no kubelet ends it
	want.Ending = true
	w.Eventually(seen).Should(Equal([]input.GuestRouter{want}))
	w.Expect(pods.Delete(w.ctx, router.Name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)})).To(Succeed())
	w.Eventually(seen).Should(BeEmpty())
}

// Neither a watch that begins later nor a kind that is removed prevents the removal of our Service.
func TestAServiceIsRemovedAlsoAfterTheIngressControllerCameAndWent(t *testing.T) {
	w := newWorld(t, "")
	w.hasKubeconfig(w.kubeconfig())
	w.eventually("the hosted cluster", reached)
	w.apply(w.service())
	w.eventually("the Service", hasService)
	uninstall := w.installs(ingressController())
	w.published("HostNetwork")
	w.eventually("how its routers are published", func(g *input.Guest) bool { return g.Ingress != nil })
	uninstall()
	w.Eventually(func() bool { done, _ := w.clusters.End(w.infra); return done }).Should(BeTrue())
	w.Expect(w.live()).To(BeNil())
}

// In mode HostNetwork, routers and Nodes are watched whatever the hosted cluster says, but no other pods.
func TestRoutersAndNodesAreSeenInModeHostNetwork(t *testing.T) {
	w := newWorld(t, v1alpha1.AppsHostNetwork)
	w.hasKubeconfig(w.kubeconfig())
	w.eventually("the hosted cluster", reached)
	router := w.runsRouter("worker-2")
	w.Eventually(func() []input.GuestRouter { return w.see().Routers }).Should(HaveLen(1))
	w.Expect(w.kube.CoreV1().Pods(ingress).Delete(w.ctx, router.Name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)})).To(Succeed())
	w.Eventually(func() []input.GuestRouter { return w.see().Routers }).Should(BeEmpty())
	nodes := w.kube.CoreV1().Nodes()
	_, err := nodes.Create(w.ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "worker-2"}}, metav1.CreateOptions{})
	w.Expect(err).NotTo(HaveOccurred())
	w.Eventually(func() []input.GuestNode { return w.see().Nodes }).Should(ContainElement(HaveField("Name", "worker-2")))
	w.Expect(nodes.Delete(w.ctx, "worker-2", metav1.DeleteOptions{})).To(Succeed())
	w.eventually("that the Node is gone", func(g *input.Guest) bool { return len(g.Nodes) == 0 })
}

// Of an object with more parts than are taken in the name alone is read, and it is said that there is one.
func TestAnObjectThatIsTooLargeToBeReadIsSaid(t *testing.T) {
	w := newWorld(t, v1alpha1.AppsHostNetwork)
	w.hasKubeconfig(w.kubeconfig())
	w.eventually("the hosted cluster", reached)
	w.Expect(w.see().Cut).To(BeFalse())
	labels := map[string]string{}
	for n := range bounded.MostParts + 1 {
		labels["a/"+strconv.Itoa(n)] = ""
	}
	nodes := w.kube.CoreV1().Nodes()
	_, err := nodes.Create(w.ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "worker-3", Labels: labels}}, metav1.CreateOptions{})
	w.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { w.Expect(nodes.Delete(context.Background(), "worker-3", metav1.DeleteOptions{})).To(Succeed()) })
	w.eventually("that it is too large", func(g *input.Guest) bool { return g.Cut && len(g.Nodes) == 1 })
}

// runsRouter creates a router on a worker's network, as the ingress operator's Deployment does, and another pod with the same ports.
func (w *world) runsRouter(node string) *corev1.Pod {
	pod := func(name, of string) *corev1.Pod {
		p, err := w.kube.CoreV1().Pods(ingress).Create(w.ctx, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: w.infra.Namespace + name, Labels: map[string]string{"ingresscontroller.operator.openshift.io/deployment-ingresscontroller": of}},
			Spec: corev1.PodSpec{NodeName: node, HostNetwork: true, AutomountServiceAccountToken: ptr.To(false), Containers: []corev1.Container{{
				Name: "router", Image: "x", Ports: []corev1.ContainerPort{
					{Name: "http", ContainerPort: 8080, HostPort: 8080}, {Name: "https", ContainerPort: 8443, HostPort: 8443}, {Name: "metrics", ContainerPort: 1936, HostPort: 1936},
				},
			}}},
		}, metav1.CreateOptions{})
		w.Expect(err).NotTo(HaveOccurred())
		return p
	}
	other := pod("-other", "sharded")
	w.t.Cleanup(func() {
		_ = w.kube.CoreV1().Pods(ingress).Delete(context.Background(), other.Name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)})
	})
	return pod("-router", "default")
}

func TestWhoAsksIsToldOfEveryChange(t *testing.T) {
	w := serving(t)
	live := w.live()
	for _, ip := range []string{"192.168.100.200", "192.168.100.201"} {
		before := w.told.Load()
		live.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: ip}}
		var err error
		live, err = w.kube.CoreV1().Services(live.Namespace).UpdateStatus(w.ctx, live, metav1.UpdateOptions{})
		w.Expect(err).NotTo(HaveOccurred())
		w.Eventually(w.told.Load).Should(BeNumerically(">", before))
		// Another change may be told first, before there is an address.
		w.Eventually(func() []corev1.LoadBalancerIngress { return w.see().Service.Status.LoadBalancer.Ingress }).Should(ConsistOf(HaveField("IP", ip)))
	}
}
