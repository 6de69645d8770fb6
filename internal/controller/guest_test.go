package controller_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/testkit/ignitionserver"
)

// wire is the connection to the hosted cluster, under any of its names, and can be cut.
type wire struct {
	mu     sync.Mutex
	to     string
	cut    bool
	dialed []string
	open   []*wired
	// ignition is the server that all ignition is downloaded from.
	ignition *ignitionserver.Server
}

// wired is a connection over it.
type wired struct {
	net.Conn
	over *wire
}

func (c *wired) Close() error {
	c.over.mu.Lock()
	defer c.over.mu.Unlock()
	c.over.open = slices.DeleteFunc(c.over.open, func(o *wired) bool { return o == c })
	return c.Conn.Close()
}

func (w *wire) dial(ctx context.Context, network, address string) (net.Conn, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dialed = append(w.dialed, address)
	if w.cut || w.to == "" {
		return nil, errors.New("no way to " + address)
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, network, w.to)
	if err != nil {
		return nil, err
	}
	c := &wired{conn, w}
	w.open = append(w.open, c)
	return c, nil
}

func (w *wire) dialIgnition(ctx context.Context, network, address string) (net.Conn, error) {
	w.mu.Lock()
	server := w.ignition
	w.mu.Unlock()
	if server == nil {
		return nil, errors.New("no way to " + address)
	}
	return server.Dial(ctx, network, address)
}

// setCut ends all connections, and prevents new ones until it is undone.
func (w *wire) setCut(cut bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = cut
	for _, c := range w.open {
		_ = c.Conn.Close()
	}
	w.open = nil
}

func (w *wire) dials() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.dialed)
}

func (w *wire) connections() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.open)
}

// guest is the hosted cluster c1 of a world.
type guest struct {
	*world
	inside client.Client // as its administrator
}

// withGuest makes a hosted cluster whose kubeconfig the operator may not read yet.
func withGuest(t *testing.T) guest {
	t.Helper()
	g := guest{world: newWorld(t)}
	h := g.ground.hosted(t)
	g.wire.to = strings.TrimSuffix(strings.TrimPrefix(h.Admin.Host, "https://"), "/")
	g.inside = g.clientOf(h.Admin)
	for _, ns := range []string{"openshift-ingress", "metallb-system"} {
		g.Expect(client.IgnoreAlreadyExists(g.inside.Create(g.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}))).To(Succeed())
	}
	kubeconfig, err := h.Kubeconfig()
	g.Expect(err).NotTo(HaveOccurred())
	g.hosts("c1")
	g.creates(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: g.ns, Name: "c1-admin-kubeconfig"}, Data: map[string][]byte{"kubeconfig": kubeconfig}})
	hc := named(&hyperv1.HostedCluster{}, g.ns, "c1")
	g.reports(hc, func() { hc.Status.KubeConfig = &corev1.LocalObjectReference{Name: "c1-admin-kubeconfig"} })
	t.Cleanup(func() { g.wire.setCut(false) })
	return g
}

// grants applies config/components/apps-ingress in the world's namespace.
func (g guest) grants() {
	g.t.Helper()
	g.appliesRole("apps-ingress", g.ns)
}

// publishes makes the Infra with apps ingress.
func (g guest) publishes(mode v1alpha1.AppsIngressMode) {
	g.t.Helper()
	infra := g.smallest("c1")
	infra.Spec.AppsIngress = &v1alpha1.AppsIngress{Enabled: true, Mode: mode, Service: v1alpha1.AppsService{Name: v1alpha1.ObjectName(g.ns + "-apps")}}
	g.creates(infra)
	g.settled("c1")
}

// publishesByMetalLB does so with permission, where MetalLB is set up correctly.
func (g guest) publishesByMetalLB() {
	g.t.Helper()
	g.grants()
	g.installs("--lb-class=metallb.io/metallb")
	g.publishes("")
}

// installs MetalLB as its own manifest has it, with further arguments.
func (g guest) installs(args ...string) {
	g.t.Helper()
	labels := func(component string) map[string]string {
		return map[string]string{"app": "metallb", "component": component}
	}
	meta := func(component string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "metallb-system", Name: component, Labels: labels(component)}
	}
	template := func(component string) corev1.PodTemplateSpec {
		return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels(component)}, Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: component, Image: "metallb:1", Args: append([]string{"--port=7472"}, args...)}}}}
	}
	metallb := []client.Object{
		&appsv1.Deployment{ObjectMeta: meta("controller"), Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: labels("controller")}, Template: template("controller")}},
		&appsv1.DaemonSet{ObjectMeta: meta("speaker"), Spec: appsv1.DaemonSetSpec{Selector: &metav1.LabelSelector{MatchLabels: labels("speaker")}, Template: template("speaker")}},
	}
	for _, o := range metallb {
		g.Expect(g.inside.Create(g.ctx, o)).To(Succeed())
		g.t.Cleanup(func() { g.Expect(g.inside.Delete(context.Background(), o)).To(Succeed()) })
	}
}

// service is ours in the hosted cluster.
func (g guest) service() *corev1.Service {
	return named(&corev1.Service{}, "openshift-ingress", g.ns+"-apps")
}

func (g guest) awaitsService() *corev1.Service {
	g.t.Helper()
	s := g.service()
	g.Eventually(func() error { return g.inside.Get(g.ctx, client.ObjectKeyFromObject(s), s) }).Should(Succeed(), g.why)
	return s
}

// why is the reason that the Infra gives for the state of the hosted cluster.
func (g guest) why() string {
	i := named(&v1alpha1.Infra{}, g.ns, "c1")
	return fmt.Sprint(g.api.Get(context.Background(), client.ObjectKeyFromObject(i), i), i.Status.AppsIngress, i.Status.Conditions)
}

func (g guest) noService() {
	g.t.Helper()
	g.Eventually(func() bool {
		return client.IgnoreNotFound(g.inside.Get(g.ctx, client.ObjectKeyFromObject(g.service()), g.service())) == nil && !g.hasService()
	}).Should(BeTrue())
}

func (g guest) hasService() bool {
	return g.inside.Get(context.Background(), client.ObjectKeyFromObject(g.service()), g.service()) == nil
}

// gives our Service external IPs, as MetalLB does.
func (g guest) gives(ips ...string) {
	g.t.Helper()
	s := g.awaitsService()
	g.Eventually(func(e Gomega) {
		e.Expect(g.inside.Get(g.ctx, client.ObjectKeyFromObject(s), s)).To(Succeed())
		s.Status.LoadBalancer.Ingress = nil
		for _, ip := range ips {
			s.Status.LoadBalancer.Ingress = append(s.Status.LoadBalancer.Ingress, corev1.LoadBalancerIngress{IP: ip})
		}
		e.Expect(g.inside.Status().Update(g.ctx, s)).To(Succeed())
	}).Should(Succeed())
}

// leadsTo waits until DNS answers *.apps on the VLAN with an address, and the proxy dials these targets for HTTPS.
func (g guest) leadsTo(answer string, targets ...string) {
	g.t.Helper()
	sees(g.world, named(&v1alpha1.DNSServer{}, g.ns, "c1-dns"), func(e Gomega, s *v1alpha1.DNSServer) {
		e.Expect(wildcards(s.Spec.StaticEntries)).To(ConsistOf(v1alpha1.DNSEntry{Hostname: "*.apps.c1.example.com", IP: v1alpha1.IPAddress(answer)}))
	})
	sees(g.world, named(&v1alpha1.ProxyServer{}, g.ns, "c1-proxy"), func(e Gomega, s *v1alpha1.ProxyServer) {
		e.Expect(s.Spec.Backends).To(ContainElement(And(HaveField("Name", "apps-https"), HaveField("TargetAddresses", ConsistOf(targets)), HaveField("Views", v1alpha1.ViewVLANAndPods))))
	})
}

func wildcards(entries []v1alpha1.DNSEntry) []v1alpha1.DNSEntry {
	return slices.DeleteFunc(slices.Clone(entries), func(e v1alpha1.DNSEntry) bool { return !strings.HasPrefix(string(e.Hostname), "*.") })
}

// apps waits until the condition of *.apps has a status and reason. It serves once the daemons have accepted their specs.
func (g guest) apps(status metav1.ConditionStatus, reason string) string {
	g.t.Helper()
	if status == metav1.ConditionTrue {
		g.Eventually(func(e Gomega) {
			g.daemonsAccept(e, "c1")
			i := named(&v1alpha1.Infra{}, g.ns, "c1")
			e.Expect(g.api.Get(g.ctx, client.ObjectKeyFromObject(i), i)).To(Succeed())
			e.Expect(meta.FindStatusCondition(i.Status.Conditions, v1alpha1.ConditionAppsIngressReady)).To(HaveValue(HaveField("Status", status)))
		}).WithPolling(300 * time.Millisecond).Should(Succeed())
	}
	return g.says("c1", v1alpha1.ConditionAppsIngressReady, status, reason)
}

func (g guest) phase(phase v1alpha1.AppsIngressPhase, reason string) {
	g.t.Helper()
	sees(g.world, named(&v1alpha1.Infra{}, g.ns, "c1"), func(e Gomega, i *v1alpha1.Infra) {
		e.Expect(i.Status.AppsIngress).To(HaveValue(And(HaveField("Phase", phase), HaveField("Reason", reason))))
	})
}

// applies the manifest after the first line of dashes in a condition's message, as it stands.
func (g guest) applies(message string) {
	g.t.Helper()
	_, documents, printed := strings.Cut(message, "\n---\n")
	g.Expect(printed).To(BeTrue(), message)
	for document := range strings.SplitSeq(documents, "---\n") {
		u := &unstructured.Unstructured{}
		g.Expect(yaml.Unmarshal([]byte(document), &u.Object)).To(Succeed())
		g.Expect(g.inside.Apply(g.ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("oooi-advice"), client.ForceOwnership)).To(Succeed())
	}
}

func TestAppsIngressFromNoMetalLBToServing(t *testing.T) {
	g := withGuest(t)
	g.grants()
	g.publishes("")
	g.apps(metav1.ConditionFalse, "MetalLBNotInstalled")
	g.phase(v1alpha1.AppsPending, "MetalLBNotInstalled")
	g.installs()
	g.applies(g.apps(metav1.ConditionFalse, "MetalLBClassNotSet"))
	g.apps(metav1.ConditionFalse, "WaitingForExternalIP")
	s := g.awaitsService()
	g.Expect(s.Spec.LoadBalancerClass).To(HaveValue(Equal("metallb.io/metallb")))
	g.Expect(s.Spec.IPFamilyPolicy).To(HaveValue(Equal(corev1.IPFamilyPolicyPreferDualStack)))
	g.gives("192.168.100.200")
	g.apps(metav1.ConditionTrue, "Serving")
	g.phase(v1alpha1.AppsReady, "Serving")
	g.leadsTo("192.168.100.200", "192.168.100.200:443")

	ours := sees(g.world, named(&corev1.Service{}, g.ns, names.Service(names.Proxy, "c1-proxy")), func(e Gomega, s *corev1.Service) {
		e.Expect(s.Spec.Ports).To(ContainElements(HaveField("Port", BeEquivalentTo(80)), HaveField("Port", BeEquivalentTo(443))))
	})
	sees(g.world, named(&v1alpha1.DNSServer{}, g.ns, "c1-dns"), func(e Gomega, s *v1alpha1.DNSServer) {
		e.Expect(s.Spec.InternalEntries).To(ContainElements(
			v1alpha1.DNSEntry{Hostname: "*.apps.c1.example.com", IP: v1alpha1.IPAddress(ours.Spec.ClusterIP)}, HaveField("Hostname", BeEquivalentTo("api.c1.example.com"))))
	})
	sees(g.world, named(&v1alpha1.DHCPServer{}, g.ns, "c1-dhcp"), func(e Gomega, s *v1alpha1.DHCPServer) {
		e.Expect(s.Spec.ExcludeRanges).To(ContainElement(HaveField("Start", BeEquivalentTo("192.168.100.200"))))
	})
	g.Expect(slices.Compact(g.wire.dialed)).To(ConsistOf("kube-apiserver."+g.ns+"-c1.svc:6443"), "what the kubeconfig says is not dialled")
	g.gives("192.168.100.201")
	g.leadsTo("192.168.100.201", "192.168.100.201:443")
	g.silent()
}

// While MetalLB gives no address no event comes: the Infra is requeued.
func TestAnAddressIsWaitedForTwoMinutes(t *testing.T) {
	g := withGuest(t)
	g.publishesByMetalLB()
	g.apps(metav1.ConditionFalse, "WaitingForExternalIP")
	g.phase(v1alpha1.AppsPending, "WaitingForExternalIP")
	g.stop()
	i := sees(g.world, named(&v1alpha1.Infra{}, g.ns, "c1"), there)
	since := meta.FindStatusCondition(i.Status.Conditions, v1alpha1.ConditionAppsIngressReady).LastTransitionTime
	g.ahead = 2*time.Minute - 10*time.Second - time.Since(since.Time)
	g.start()
	g.phase(v1alpha1.AppsDegraded, "WaitingForExternalIP")
}

func TestAppsIngressHasAddressesOfBothFamilies(t *testing.T) {
	g := withGuest(t)
	g.stop()
	g.settings.ExtraEndpointCIDRs = []netip.Prefix{netip.MustParsePrefix("fd00:100::/64")} // the VLAN is IPv4
	g.start()
	g.publishesByMetalLB()
	g.gives("fd00:100::200", "192.168.100.200")
	g.apps(metav1.ConditionTrue, "Serving")
	sees(g.world, named(&v1alpha1.Infra{}, g.ns, "c1"), func(e Gomega, i *v1alpha1.Infra) {
		e.Expect(i.Status.AppsIngress.ExternalIPs).To(Equal([]v1alpha1.IPAddress{"192.168.100.200", "fd00:100::200"}))
	})
	sees(g.world, named(&v1alpha1.DNSServer{}, g.ns, "c1-dns"), func(e Gomega, s *v1alpha1.DNSServer) {
		e.Expect(wildcards(s.Spec.StaticEntries)).To(ConsistOf(HaveField("IP", BeEquivalentTo("192.168.100.200")), HaveField("IP", BeEquivalentTo("fd00:100::200"))))
	})
}

func TestAppsIngressWaitsUntilTheNamespaceIsGranted(t *testing.T) {
	g := withGuest(t)
	g.publishes("")
	g.Expect(g.apps(metav1.ConditionFalse, "NamespaceNotGranted")).To(And(ContainSubstring("kubectl apply -n "+g.ns+" -k config/components/apps-ingress"), ContainSubstring("appsIngress.namespaces")))
	g.grants()
	g.apps(metav1.ConditionFalse, "MetalLBNotInstalled")
}

func TestAHostedClusterThatIsAwayTakesNothingAway(t *testing.T) {
	g := withGuest(t)
	g.publishesByMetalLB()
	g.gives("192.168.100.200")
	g.apps(metav1.ConditionTrue, "Serving")
	g.wire.setCut(true)
	g.apps(metav1.ConditionFalse, "HostedClusterUnreachable")
	g.phase(v1alpha1.AppsDegraded, "HostedClusterUnreachable")
	g.settled("c1") // Ready does not depend on *.apps
	g.leadsTo("192.168.100.200", "192.168.100.200:443")

	g.stop()
	g.start() // with nothing in memory, and no hosted cluster to ask
	dns := sees(g.world, named(&v1alpha1.DNSServer{}, g.ns, "c1-dns"), there)
	g.silent()
	g.leadsTo("192.168.100.200", "192.168.100.200:443")
	g.Expect(sees(g.world, named(&v1alpha1.DNSServer{}, g.ns, "c1-dns"), there).Generation).To(Equal(dns.Generation))
	g.wire.setCut(false)
	g.apps(metav1.ConditionTrue, "Serving")
}

func TestAnAddressBeyondTheVLANIsRefusedAndTheOldOneStays(t *testing.T) {
	g := withGuest(t)
	g.publishesByMetalLB()
	g.gives("192.168.100.200")
	g.apps(metav1.ConditionTrue, "Serving")
	g.gives("10.0.0.5")
	g.Expect(g.apps(metav1.ConditionFalse, "ExternalIPOutsideNetwork")).To(ContainSubstring("10.0.0.5"))
	g.phase(v1alpha1.AppsDegraded, "ExternalIPOutsideNetwork")
	g.leadsTo("192.168.100.200", "192.168.100.200:443")
	g.gives()
	g.apps(metav1.ConditionFalse, "ExternalIPLost")
	g.leadsTo("192.168.100.200", "192.168.100.200:443")
}

func TestNodePortFollowsTheWorkers(t *testing.T) {
	g := withGuest(t)
	g.grants()
	worker := func(name, address string) *corev1.Node {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: g.ns + name}}
		g.Expect(g.inside.Create(g.ctx, n)).To(Succeed())
		g.t.Cleanup(func() { _ = g.inside.Delete(context.Background(), n) })
		n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address}}
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		g.Expect(g.inside.Status().Update(g.ctx, n)).To(Succeed())
		return n
	}
	router := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-ingress", Name: "router-nodeport-default"}, Spec: corev1.ServiceSpec{
		Type: corev1.ServiceTypeNodePort, Selector: map[string]string{"a": "b"},
		Ports: []corev1.ServicePort{{Name: "http", Port: 80, TargetPort: intstr.FromInt32(80)}, {Name: "https", Port: 443, TargetPort: intstr.FromInt32(443)}},
	}}
	g.publishes(v1alpha1.AppsNodePort)
	g.apps(metav1.ConditionFalse, "RouterNotFound")
	g.Expect(g.inside.Create(g.ctx, router)).To(Succeed())
	g.t.Cleanup(func() { g.Expect(g.inside.Delete(context.Background(), router)).To(Succeed()) })
	g.apps(metav1.ConditionFalse, "NoReadyWorkers")
	worker("a", "192.168.100.111")
	b := worker("b", "192.168.100.112")
	worker("c", "10.0.0.5")
	g.apps(metav1.ConditionTrue, "Serving")
	vip := sees(g.world, named(&v1alpha1.ProxyServer{}, g.ns, "c1-proxy"), there).Spec.NetworkConfig.ServerIP
	https := fmt.Sprint(":", router.Spec.Ports[1].NodePort)
	g.leadsTo(string(vip), "192.168.100.111"+https, "192.168.100.112"+https)
	g.Expect(g.inside.Delete(g.ctx, b)).To(Succeed())
	g.leadsTo(string(vip), "192.168.100.111"+https)
}

func (g guest) worker(name, address string) {
	g.t.Helper()
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: g.ns + name}}
	g.Expect(g.inside.Create(g.ctx, n)).To(Succeed())
	g.t.Cleanup(func() { _ = g.inside.Delete(context.Background(), n) })
	n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address}}
	g.Expect(g.inside.Status().Update(g.ctx, n)).To(Succeed())
}

// router makes a router pod that listens on its worker, as the ingress operator's Deployment does.
func (g guest) router(node string) *corev1.Pod {
	g.t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-ingress", Name: g.ns + node, Labels: map[string]string{"ingresscontroller.operator.openshift.io/deployment-ingresscontroller": "default"}},
		Spec: corev1.PodSpec{NodeName: g.ns + node, HostNetwork: true, AutomountServiceAccountToken: ptr.To(false), Containers: []corev1.Container{{
			Name: "router", Image: "x", Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080, HostPort: 8080}, {Name: "https", ContainerPort: 8443, HostPort: 8443}},
		}}},
	}
	g.Expect(g.inside.Create(g.ctx, pod)).To(Succeed())
	g.t.Cleanup(func() { _ = g.inside.Delete(context.Background(), pod, client.GracePeriodSeconds(0)) })
	return pod
}

func (g guest) becomesReady(pod *corev1.Pod) {
	g.t.Helper()
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	g.Expect(g.inside.Status().Update(g.ctx, pod)).To(Succeed())
}

// An IngressController that changes to HostNetwork changes nothing that serves. Once the mode is written in the Infra, MetalLB's address
// serves until the proxy leads to a router, and then our Service is removed.
func TestRoutersOnTheirWorkersTakeOverFromMetalLB(t *testing.T) {
	g := withGuest(t)
	g.publishesByMetalLB()
	g.gives("192.168.100.200")
	g.apps(metav1.ConditionTrue, "Serving")
	for _, text := range []string{
		`{apiVersion: v1, kind: Namespace, metadata: {name: openshift-ingress-operator}}`,
		`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: ingresscontrollers.operator.openshift.io}, spec: {
  group: operator.openshift.io, scope: Namespaced, names: {kind: IngressController, plural: ingresscontrollers},
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}}`,
		`{apiVersion: operator.openshift.io/v1, kind: IngressController, metadata: {name: default, namespace: openshift-ingress-operator},
  spec: {endpointPublishingStrategy: {type: HostNetwork, hostNetwork: {httpPort: 8080, httpsPort: 8443}}}}`,
	} {
		o := &unstructured.Unstructured{}
		g.Expect(yaml.Unmarshal([]byte(text), &o.Object)).To(Succeed())
		g.Eventually(func() error { return g.inside.Create(g.ctx, o) }).Should(Succeed()) // a new kind is not served at once
		if o.GetKind() == "CustomResourceDefinition" {
			g.t.Cleanup(func() { g.Expect(g.inside.Delete(context.Background(), o)).To(Succeed()) })
		}
	}
	g.worker("a", "192.168.100.111")
	router := g.router("a")
	g.apps(metav1.ConditionTrue, "ServedByMetalLB")
	infra := named(&v1alpha1.Infra{}, g.ns, "c1")
	g.changes(infra, func() { infra.Spec.AppsIngress.Mode = v1alpha1.AppsHostNetwork })
	g.apps(metav1.ConditionFalse, "NoReadyRouter")
	g.leadsTo("192.168.100.200", "192.168.100.200:443")
	g.Expect(g.hasService()).To(BeTrue())
	g.becomesReady(router)
	g.apps(metav1.ConditionTrue, "Serving")
	vip := sees(g.world, named(&v1alpha1.ProxyServer{}, g.ns, "c1-proxy"), there).Spec.NetworkConfig.ServerIP
	g.leadsTo(string(vip), "192.168.100.111:8443")
	g.noService()
}

func TestHostNetworkFollowsTheRouters(t *testing.T) {
	g := withGuest(t)
	g.grants()
	g.worker("a", "192.168.100.111")
	g.worker("b", "192.168.100.112")
	g.publishes(v1alpha1.AppsHostNetwork)
	g.apps(metav1.ConditionFalse, "RouterNotFound")
	first := g.router("a")
	g.apps(metav1.ConditionFalse, "NoReadyRouter")
	g.becomesReady(first)
	g.apps(metav1.ConditionTrue, "Serving")
	vip := sees(g.world, named(&v1alpha1.ProxyServer{}, g.ns, "c1-proxy"), there).Spec.NetworkConfig.ServerIP
	g.leadsTo(string(vip), "192.168.100.111:8443")
	g.Expect(g.inside.Delete(g.ctx, first, client.GracePeriodSeconds(0))).To(Succeed())
	second := g.router("b")
	g.apps(metav1.ConditionFalse, "NoReadyRouter")
	g.leadsTo(string(vip), "192.168.100.111:8443")
	g.becomesReady(second)
	g.leadsTo(string(vip), "192.168.100.112:8443")
	g.apps(metav1.ConditionTrue, "Serving")
}

func TestAppsIngressSwitchedOffLeavesNothingBehind(t *testing.T) {
	g := withGuest(t)
	g.publishesByMetalLB()
	g.gives("192.168.100.200")
	g.apps(metav1.ConditionTrue, "Serving")
	infra := named(&v1alpha1.Infra{}, g.ns, "c1")
	g.wire.setCut(true)
	g.changes(infra, func() { infra.Spec.AppsIngress.Enabled = false })
	g.phase(v1alpha1.AppsDegraded, "Removing")
	g.stop()
	g.start() // the status alone remembers that there is something to remove
	g.wire.setCut(false)
	g.noService()
	sees(g.world, infra, func(e Gomega, i *v1alpha1.Infra) {
		e.Expect(i.Status.AppsIngress).To(BeNil())
		e.Expect(meta.FindStatusCondition(i.Status.Conditions, v1alpha1.ConditionAppsIngressReady)).To(BeNil())
	})
	sees(g.world, named(&v1alpha1.DNSServer{}, g.ns, "c1-dns"), func(e Gomega, s *v1alpha1.DNSServer) {
		e.Expect(wildcards(append(s.Spec.StaticEntries, s.Spec.InternalEntries...))).To(BeEmpty())
	})
}

func TestAnInfraTakesItsServiceOutOfTheHostedCluster(t *testing.T) {
	g := withGuest(t)
	g.publishesByMetalLB()
	g.awaitsService()
	infra := named(&v1alpha1.Infra{}, g.ns, "c1")
	g.Expect(g.api.Delete(g.ctx, infra)).To(Succeed())
	g.gone(infra)
	g.Expect(g.hasService()).To(BeFalse(), "the Infra went before its Service")
}

func TestAHostedClusterThatGoesIsNotWaitedFor(t *testing.T) {
	g := withGuest(t)
	g.publishesByMetalLB()
	s := g.awaitsService()
	g.t.Cleanup(func() { _ = g.inside.Delete(context.Background(), s) })
	hc := named(&hyperv1.HostedCluster{}, g.ns, "c1")
	g.changes(hc, func() { hc.Finalizers = []string{finalizer} })
	g.wire.setCut(true)
	g.apps(metav1.ConditionFalse, "HostedClusterUnreachable")
	g.Expect(g.api.Delete(g.ctx, hc)).To(Succeed())
	infra, begun := named(&v1alpha1.Infra{}, g.ns, "c1"), time.Now()
	g.Expect(g.api.Delete(g.ctx, infra)).To(Succeed())
	g.gone(infra)
	g.Expect(time.Since(begun)).To(BeNumerically("<", time.Minute))
	g.changes(hc, func() { hc.Finalizers = nil })
	g.gone(hc)
}

func TestNothingIsWrittenIntoAHostedClusterThatMayNotBeLookedInto(t *testing.T) {
	t.Parallel() // otherwise all parallel tests would wait for its subtests
	for name, ends := range map[string]func(guest, *hyperv1.HostedCluster){
		"it is being deleted":              func(g guest, hc *hyperv1.HostedCluster) { g.Expect(g.api.Delete(g.ctx, hc)).To(Succeed()) },
		"it names no kubeconfig (anymore)": func(g guest, hc *hyperv1.HostedCluster) { g.reports(hc, func() { hc.Status.KubeConfig = nil }) },
	} {
		t.Run(name, func(t *testing.T) {
			g := withGuest(t)
			g.publishesByMetalLB()
			s := g.awaitsService()
			hc := named(&hyperv1.HostedCluster{}, g.ns, "c1")
			g.changes(hc, func() { hc.Finalizers = []string{finalizer} })
			t.Cleanup(func() { g.ctx = context.Background(); g.changes(hc, func() { hc.Finalizers = nil }) })
			g.apps(metav1.ConditionFalse, "WaitingForExternalIP")
			ends(g, hc)
			g.apps(metav1.ConditionFalse, "WaitingForKubeconfig")
			g.Expect(g.inside.Delete(g.ctx, s)).To(Succeed())
			g.Consistently(g.hasService, 3*time.Second).Should(BeFalse(), "it was made again")
		})
	}
}

func TestAPauseStopsWhatIsWrittenIntoTheHostedCluster(t *testing.T) {
	g := withGuest(t)
	g.publishesByMetalLB()
	s := g.awaitsService()
	infra := named(&v1alpha1.Infra{}, g.ns, "c1")
	g.changes(infra, func() { infra.Annotations = map[string]string{names.AnnotationPaused: "true"} })
	g.says("c1", v1alpha1.ConditionProgressing, metav1.ConditionFalse, "Paused")
	g.Expect(g.inside.Delete(g.ctx, s)).To(Succeed())
	g.Consistently(g.hasService, 3*time.Second).Should(BeFalse(), "it was made again")
	g.changes(infra, func() { infra.Annotations = nil })
	g.awaitsService()
}

func TestAHostedClusterThatNeverAnswersIsLeftWithAWarning(t *testing.T) {
	g := withGuest(t)
	g.stop()
	g.patience = 3 * time.Second
	g.start()
	g.publishesByMetalLB()
	s := g.awaitsService()
	g.t.Cleanup(func() { _ = g.inside.Delete(context.Background(), s) })
	g.wire.setCut(true)
	g.apps(metav1.ConditionFalse, "HostedClusterUnreachable")
	infra := named(&v1alpha1.Infra{}, g.ns, "c1")
	g.Expect(g.api.Delete(g.ctx, infra)).To(Succeed())
	g.gone(infra)
	g.warns("openshift-ingress/" + g.ns + "-apps")
}

// warns waits for the Event that says what may remain in the hosted cluster.
func (g guest) warns(words ...string) {
	g.t.Helper()
	for _, word := range words {
		g.Eventually(func(e Gomega) {
			all := &eventsv1.EventList{}
			e.Expect(g.api.List(g.ctx, all, client.InNamespace(g.ns))).To(Succeed())
			e.Expect(all.Items).To(ContainElement(And(HaveField("Reason", "GuestObjectsMayRemain"), HaveField("Type", "Warning"), HaveField("Note", ContainSubstring(word)))))
		}).Should(Succeed())
	}
}

func TestAServiceThatAFinalizerHoldsIsLeftWithAWarning(t *testing.T) {
	g := withGuest(t)
	g.stop()
	g.patience = 5 * time.Second
	g.start()
	g.publishesByMetalLB()
	s := g.awaitsService()
	hold := func(finalizers string) {
		patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":`+finalizers+`}}`))
		g.Expect(client.IgnoreNotFound(g.inside.Patch(context.Background(), s, patch))).To(Succeed())
	}
	hold(`["example.com/held"]`)
	t.Cleanup(func() { hold("null") })
	infra := named(&v1alpha1.Infra{}, g.ns, "c1")
	g.calls.lose("PATCH /apis/hostedcluster.densityops.com/v1alpha1/namespaces/" + g.ns + "/infras/c1")
	g.Expect(g.api.Delete(g.ctx, infra)).To(Succeed())
	g.warns("openshift-ingress/"+g.ns+"-apps", "a finalizer blocks its deletion")
	dials := g.wire.dials()
	g.Consistently(g.wire.dials, 3*time.Second).Should(Equal(dials), "the wait begins anew when the finalizer cannot be taken away")
	g.calls.lose("")
	g.gone(infra)
	g.Expect(g.hasService()).To(BeTrue())
}

func TestAHostedClusterThatMayNotBeLookedIntoIsLeftWithAWarning(t *testing.T) {
	g := withGuest(t)
	g.publishesByMetalLB()
	s := g.awaitsService()
	g.t.Cleanup(func() { _ = g.inside.Delete(context.Background(), s) })
	infra := named(&v1alpha1.Infra{}, g.ns, "c1")
	g.changes(infra, func() {
		infra.Spec.ExtraEndpoints = []v1alpha1.ExtraEndpoint{{Name: "mirror", Hostnames: []v1alpha1.DNSNameOrWildcard{"mirror.example.com"}, Port: 8443, Protocol: v1alpha1.ProtocolTLS,
			Target: v1alpha1.EndpointTarget{Service: "mirror", Namespace: "somebody-elses", Port: 8443}}}
	})
	g.says("c1", v1alpha1.ConditionAccepted, metav1.ConditionFalse, "RefNotPermitted")
	g.Expect(g.api.Delete(g.ctx, infra)).To(Succeed())
	g.gone(infra)
	g.warns("openshift-ingress/"+g.ns+"-apps", "may no longer refer")
}

func TestAnInfraThatGoesBeforeThereIsAKubeconfigWarnsOfNothing(t *testing.T) {
	g := withGuest(t)
	hc := named(&hyperv1.HostedCluster{}, g.ns, "c1")
	g.reports(hc, func() { hc.Status.KubeConfig = nil })
	g.publishes("")
	g.apps(metav1.ConditionFalse, "WaitingForKubeconfig")
	infra := named(&v1alpha1.Infra{}, g.ns, "c1")
	g.Expect(g.api.Delete(g.ctx, infra)).To(Succeed())
	g.gone(infra)
	g.Consistently(func(e Gomega) {
		all := &eventsv1.EventList{}
		e.Expect(g.api.List(g.ctx, all, client.InNamespace(g.ns))).To(Succeed())
		e.Expect(all.Items).NotTo(ContainElement(HaveField("Reason", "GuestObjectsMayRemain")))
	}, 2*time.Second).Should(Succeed())
}

func TestAppsIngressIsSwitchedOffWhateverElseIsWrong(t *testing.T) {
	g := withGuest(t)
	g.publishesByMetalLB()
	g.awaitsService()
	infra := named(&v1alpha1.Infra{}, g.ns, "c1")
	g.changes(infra, func() {
		infra.Spec.AppsIngress.Enabled = false
		infra.Spec.NetworkConfig.NetworkAttachmentDefinition = "gone"
	})
	g.says("c1", v1alpha1.ConditionNetworkReady, metav1.ConditionFalse, "NADNotFound")
	g.noService()
	sees(g.world, infra, func(e Gomega, i *v1alpha1.Infra) { e.Expect(i.Status.AppsIngress).To(BeNil()) })
}

func TestAForeignServiceOfOurNameIsLeftAlone(t *testing.T) {
	g := withGuest(t)
	g.grants()
	g.installs("--lb-class=metallb.io/metallb")
	theirs := g.service()
	theirs.Spec = corev1.ServiceSpec{Selector: map[string]string{"theirs": "true"}, Ports: []corev1.ServicePort{{Port: 1}}, IPFamilyPolicy: ptr.To(corev1.IPFamilyPolicySingleStack)}
	g.Expect(g.inside.Create(g.ctx, theirs)).To(Succeed())
	g.t.Cleanup(func() { g.Expect(g.inside.Delete(context.Background(), theirs)).To(Succeed()) })
	g.publishes("")
	g.apps(metav1.ConditionFalse, "ServiceNameTaken")
	g.Expect(g.awaitsService().Spec.Selector).To(Equal(map[string]string{"theirs": "true"}))
}
