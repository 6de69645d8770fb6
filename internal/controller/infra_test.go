package controller_test

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/nad"
	"github.com/cldmnky/oooi/internal/names"
)

func TestAnInfraBecomesThreeServersThatRun(t *testing.T) {
	w := newWorld(t)
	w.hosts("c1")
	w.creates(w.smallest("c1"))
	w.says("c1", v1alpha1.ConditionReady, metav1.ConditionFalse, "Progressing")
	w.settled("c1")
	w.says("c1", v1alpha1.ConditionReady, metav1.ConditionTrue, "Serving")
	w.says("c1", v1alpha1.ConditionProgressing, metav1.ConditionFalse, "Settled")
	w.says("c1", v1alpha1.ConditionDegraded, metav1.ConditionFalse, "AsExpected")

	service := sees(w, named(&corev1.Service{}, w.ns, names.Service(names.Proxy, "c1-proxy")), there)
	sees(w, named(&v1alpha1.DNSServer{}, w.ns, "c1-dns"), func(g Gomega, s *v1alpha1.DNSServer) {
		g.Expect(s.Spec.InternalEntries).To(ContainElement(HaveField("IP", BeEquivalentTo(service.Spec.ClusterIP))))
	})
	proxy := sees(w, named(&appsv1.Deployment{}, w.ns, "c1-proxy-deployment"), there)
	w.Expect(proxy.Spec.Template.Annotations[names.AnnotationNetworks]).To(ContainSubstring(`"name":"c1-proxy"`))
	attachment := sees(w, named(&nad.NetworkAttachmentDefinition{}, w.ns, "c1-proxy"), there)
	w.Expect(attachment.Spec.Config).To(ContainSubstring("203.0.113.10/32"))
}

func TestChildrenOfOneNameLiveSideBySide(t *testing.T) {
	w := newWorld(t)
	w.hosts("c1")
	vlan, edge := v1alpha1.Attachment{NetworkAttachmentDefinition: "c1-vlan"}, metav1.ObjectMeta{Namespace: w.ns, Name: "edge"}
	dhcp := &v1alpha1.DHCPServer{ObjectMeta: edge, Spec: v1alpha1.DHCPServerSpec{
		NetworkConfig: v1alpha1.DHCPNetworkConfig{Attachment: vlan, CIDR: "192.168.100.0/24", ServerIP: "192.168.100.2"},
		LeaseConfig:   v1alpha1.DHCPLeaseConfig{RangeStart: "192.168.100.10", RangeEnd: "192.168.100.20", LeaseTime: metav1.Duration{Duration: time.Hour}},
	}}
	dns := &v1alpha1.DNSServer{ObjectMeta: edge, Spec: v1alpha1.DNSServerSpec{
		NetworkConfig:       v1alpha1.DNSNetworkConfig{Attachment: vlan, SecondaryNetworkCIDR: "192.168.100.0/24", ServerIP: "192.168.100.3"},
		HostedClusterDomain: "c1.example.com", CacheTTL: metav1.Duration{Duration: time.Hour},
	}}
	proxy := &v1alpha1.ProxyServer{ObjectMeta: edge, Spec: v1alpha1.ProxyServerSpec{
		NetworkConfig: v1alpha1.ProxyNetworkConfig{Attachment: vlan, ServerIP: "192.168.100.4"},
		Backends:      []v1alpha1.ProxyBackend{{Name: "a", Port: 443, Views: v1alpha1.ViewVLANAndPods, TargetService: "s", TargetPort: 443, TargetNamespace: v1alpha1.ObjectName(w.ns)}},
	}}
	w.creates(dhcp, dns, proxy)
	rollingOut := ContainElement(And(HaveField("Type", v1alpha1.ConditionReady), HaveField("Reason", "Progressing")))
	sees(w, dhcp, func(g Gomega, s *v1alpha1.DHCPServer) { g.Expect(s.Status.Conditions).To(rollingOut) })
	sees(w, dns, func(g Gomega, s *v1alpha1.DNSServer) {
		g.Expect(s.Status.Conditions).To(rollingOut)
		g.Expect(s.Status.ServiceName).To(Equal("dns-edge-svc"))
	})
	sees(w, proxy, func(g Gomega, s *v1alpha1.ProxyServer) {
		g.Expect(s.Status.Conditions).To(rollingOut)
		g.Expect([]string{s.Status.DeploymentName, s.Status.ServiceName, s.Status.ConfigMapName}).To(Equal([]string{"edge-deployment", "edge-svc", "envoy-bootstrap-edge"}))
	})
	for account, reads := range map[string]string{"dhcp-edge": "dhcpservers", "dns-edge": "dnsservers", "proxy-edge": "proxyservers"} {
		role := sees(w, named(&rbacv1.Role{}, w.ns, account), there)
		w.Expect(role.Rules).To(ContainElement(And(HaveField("Resources", ConsistOf(reads)), HaveField("ResourceNames", ConsistOf("edge")))))
		binding := sees(w, named(&rbacv1.RoleBinding{}, w.ns, account), there)
		w.Expect(binding.Subjects).To(ConsistOf(HaveField("Name", account)))
	}
	runs := func(account string) OmegaMatcher { return HaveField("Spec.Template.Spec.ServiceAccountName", account) }
	w.Expect(sees(w, named(&appsv1.StatefulSet{}, w.ns, "dhcp-edge-deployment"), there)).To(runs("dhcp-edge"))
	w.Expect(sees(w, named(&appsv1.StatefulSet{}, w.ns, "dns-edge-deployment"), there)).To(runs("dns-edge"))
	w.Expect(sees(w, named(&appsv1.Deployment{}, w.ns, "edge-deployment"), there)).To(runs("proxy-edge"))
}

func TestReadyMeansThatPodsServe(t *testing.T) {
	w := newWorld(t)
	w.hosts("c1")
	w.creates(w.withOneOfEach("c1"))
	w.settled("c1")
	dns := named(&appsv1.StatefulSet{}, w.ns, "c1-dns-deployment")
	w.Expect(w.api.Get(w.ctx, client.ObjectKeyFromObject(dns), dns)).To(Succeed())
	dns.Status.ReadyReplicas = 0
	w.Expect(w.api.Status().Update(w.ctx, dns)).To(Succeed())
	w.says("c1", v1alpha1.ConditionDNSReady, metav1.ConditionFalse, "PodNotReady")
	w.says("c1", v1alpha1.ConditionReady, metav1.ConditionFalse, "PodNotReady")
	w.says("c1", v1alpha1.ConditionDegraded, metav1.ConditionTrue, "PodNotReady")
}

func TestPodsAreAdmittedUnderPodSecurityRestricted(t *testing.T) {
	w := newWorld(t)
	w.hosts("c1")
	w.creates(w.smallest("c1"))
	w.settled("c1")
	restricted := w.ns + "-restricted"
	w.creates(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: restricted, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}}})
	dhcp, dns := sees(w, named(&appsv1.StatefulSet{}, w.ns, "c1-dhcp-deployment"), there), sees(w, named(&appsv1.StatefulSet{}, w.ns, "c1-dns-deployment"), there)
	proxy := sees(w, named(&appsv1.Deployment{}, w.ns, "c1-proxy-deployment"), there)
	for name, spec := range map[string]corev1.PodSpec{"dhcp": dhcp.Spec.Template.Spec, "dns": dns.Spec.Template.Spec, "proxy": proxy.Spec.Template.Spec} {
		w.Expect(spec.SecurityContext.RunAsUser).To(BeNil(), "OpenShift gives each namespace its own range of uids")
		w.Expect(w.api.Create(w.ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: restricted}, Spec: spec}, client.DryRunAll)).To(Succeed())
		spec.Containers[0].SecurityContext.Capabilities.Drop = nil
		w.Expect(w.api.Create(w.ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: restricted}, Spec: spec}, client.DryRunAll)).
			To(MatchError(ContainSubstring("violates PodSecurity")), "this test could not fail")
	}
}

// The cache may show late what is written, as under load.
func TestATransitionIsOneEvent(t *testing.T) {
	w := newWorld(t)
	w.stop()
	w.faults.delay("/infras")
	w.start()
	w.hosts("c1")
	w.creates(w.smallest("c1"))
	w.settled("c1")
	w.Eventually(func(g Gomega) {
		all := &eventsv1.EventList{}
		g.Expect(w.api.List(w.ctx, all, client.InNamespace(w.ns))).To(Succeed())
		var told []string
		for _, e := range all.Items {
			if e.Regarding.Kind == "Infra" && e.Action == v1alpha1.ConditionReady && strings.Contains(e.Note, "Ready is True") {
				told = append(told, e.Reason)
			}
		}
		g.Expect(told).To(Equal([]string{"Serving"}))
	}).Should(Succeed())
}

// A refusal may have more words than an Event may hold (events.k8s.io/v1: 1 kB).
func TestARefusalOfManyWordsIsAnEvent(t *testing.T) {
	w := newWorld(t)
	w.hosts("c1")
	w.creates(w.smallest("c1"))
	w.says("c1", v1alpha1.ConditionAccepted, metav1.ConditionTrue, "Valid")
	infra := named(&v1alpha1.Infra{}, w.ns, "c1")
	w.changes(infra, func() {
		infra.Spec.ExtraEndpoints = nil
		for i := range 20 {
			infra.Spec.ExtraEndpoints = append(infra.Spec.ExtraEndpoints, v1alpha1.ExtraEndpoint{
				Name: fmt.Sprint("mirror-", i), Hostnames: []v1alpha1.DNSNameOrWildcard{v1alpha1.DNSNameOrWildcard(fmt.Sprintf("mirror-%d.example.com", i))}, Port: 8443, Protocol: v1alpha1.ProtocolTLS,
				Target: v1alpha1.EndpointTarget{Service: "mirror", Namespace: v1alpha1.ObjectName(fmt.Sprint("somebody-elses-", i)), Port: 8443},
			})
		}
	})
	said := w.says("c1", v1alpha1.ConditionAccepted, metav1.ConditionFalse, "RefNotPermitted")
	w.Expect(len(said)).To(BeNumerically(">", 1024), "this test could not fail")
	w.Eventually(func(g Gomega) {
		all := &eventsv1.EventList{}
		g.Expect(w.api.List(w.ctx, all, client.InNamespace(w.ns))).To(Succeed())
		g.Expect(all.Items).To(ContainElement(HaveField("Note", HavePrefix("Accepted is False: "+said[:900]))))
	}).Should(Succeed())
}

func TestNothingIsWrittenWhenNothingChanges(t *testing.T) {
	w := newWorld(t)
	w.hosts("c1")
	w.creates(w.smallest("c1"))
	w.settled("c1")
	before := w.silent()

	// Others' own objects, and fields that we do not read, lead to no write.
	w.changes(named(&hyperv1.HostedCluster{}, w.ns, "c1"), func() {})
	infra := named(&v1alpha1.Infra{}, w.ns, "c1")
	w.changes(infra, func() { infra.Annotations["somebody"] = "else" })
	dns := named(&appsv1.StatefulSet{}, w.ns, "c1-dns-deployment")
	w.changes(dns, func() { dns.Annotations["somebody"] = "else" })
	account := named(&corev1.ServiceAccount{}, w.ns, "c1-dns")
	w.changes(account, func() { account.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "as-openshift-does"}} })
	w.Expect(w.silent()).To(Equal(before), "written: %v", w.calls.written())

	// Nor does a restart of the manager.
	w.stop()
	w.start()
	w.Expect(w.silent()).To(Equal(before), "written: %v", w.calls.written())
}

func TestDriftIsCorrected(t *testing.T) {
	w := newWorld(t)
	w.hosts("c1")
	w.creates(w.smallest("c1"))
	w.settled("c1")

	t.Run("a changed field", func(*testing.T) {
		dns := named(&v1alpha1.DNSServer{}, w.ns, "c1-dns")
		w.changes(dns, func() { dns.Spec.HostedClusterDomain = "evil.example.com" })
		sees(w, dns, func(g Gomega, s *v1alpha1.DNSServer) {
			g.Expect(s.Spec.HostedClusterDomain).To(BeEquivalentTo("c1.example.com"))
		})
	})
	t.Run("an image of a workload", func(*testing.T) {
		proxy := named(&appsv1.Deployment{}, w.ns, "c1-proxy-deployment")
		w.changes(proxy, func() { proxy.Spec.Replicas = ptr.To[int32](2) })
		sees(w, proxy, func(g Gomega, d *appsv1.Deployment) { g.Expect(d.Spec.Replicas).To(HaveValue(BeEquivalentTo(1))) })
	})
	t.Run("a selector that somebody widened", func(*testing.T) {
		service := named(&corev1.Service{}, w.ns, "c1-proxy-svc")
		w.changes(service, func() { delete(service.Spec.Selector, names.LabelInstance) })
		sees(w, service, func(g Gomega, s *corev1.Service) {
			g.Expect(s.Spec.Selector).To(HaveKeyWithValue(names.LabelInstance, "c1-proxy"))
		})
	})
	t.Run("a rule that somebody added", func(*testing.T) {
		policy := named(&networkingv1.NetworkPolicy{}, w.controlPlane("c1"), "oooi."+w.ns+".c1-proxy.ignition-server-proxy")
		w.changes(policy, func() { policy.Spec.Ingress = append(policy.Spec.Ingress, networkingv1.NetworkPolicyIngressRule{}) })
		sees(w, policy, func(g Gomega, p *networkingv1.NetworkPolicy) { g.Expect(p.Spec.Ingress).To(HaveLen(1)) })
	})
	t.Run("what somebody added", func(*testing.T) {
		service := named(&corev1.Service{}, w.ns, "c1-proxy-svc")
		w.changes(service, func() { service.Spec.Ports = append(service.Spec.Ports, corev1.ServicePort{Name: "more", Port: 22}) })
		proxy := named(&appsv1.Deployment{}, w.ns, "c1-proxy-deployment")
		w.changes(proxy, func() {
			pod := &proxy.Spec.Template
			pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: "more", Image: "example.com/more"})
			pod.Spec.ShareProcessNamespace = ptr.To(true)
			pod.Annotations["kubectl.kubernetes.io/restartedAt"] = "now"
		})
		binding := named(&rbacv1.RoleBinding{}, w.controlPlane("c1"), "oooi."+w.ns+".c1-proxy")
		w.changes(binding, func() {
			binding.Subjects = append(binding.Subjects, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: "User", Name: "more"})
		})
		backends := named(&v1alpha1.ProxyServer{}, w.ns, "c1-proxy")
		w.changes(backends, func() {
			more := backends.Spec.Backends[0].DeepCopy()
			more.Name, more.Hostname, more.CatchAll = "more", "more.example.com", false
			backends.Spec.Backends = append(backends.Spec.Backends, *more)
		})
		sees(w, service, func(g Gomega, s *corev1.Service) { g.Expect(s.Spec.Ports).To(HaveLen(1)) })
		sees(w, proxy, func(g Gomega, d *appsv1.Deployment) {
			g.Expect(d.Spec.Template.Spec.Containers).To(HaveLen(2))
			g.Expect(d.Spec.Template.Spec.ShareProcessNamespace).To(BeNil())
			g.Expect(d.Spec.Template.Annotations).To(HaveKey("kubectl.kubernetes.io/restartedAt"), "anybody may restart pods")
		})
		sees(w, binding, func(g Gomega, b *rbacv1.RoleBinding) { g.Expect(b.Subjects).To(HaveLen(1)) })
		sees(w, backends, func(g Gomega, s *v1alpha1.ProxyServer) {
			g.Expect(s.Spec.Backends).NotTo(ContainElement(HaveField("Name", "more")))
		})
		w.silent()
	})
	t.Run("a deleted object", func(*testing.T) {
		for _, o := range []client.Object{
			named(&v1alpha1.ProxyServer{}, w.ns, "c1-proxy"), named(&policyv1.PodDisruptionBudget{}, w.ns, "c1-dns"),
			named(&rbacv1.Role{}, w.controlPlane("c1"), "oooi."+w.ns+".c1-proxy"), named(&nad.NetworkAttachmentDefinition{}, w.ns, "c1-dhcp"),
		} {
			w.Expect(w.api.Get(w.ctx, client.ObjectKeyFromObject(o), o)).To(Succeed())
			was := o.GetUID()
			w.Expect(w.api.Delete(w.ctx, o)).To(Succeed())
			sees(w, o, func(g Gomega, o client.Object) { g.Expect(o.GetUID()).NotTo(Equal(was)) })
		}
	})
	t.Run("our label taken off", func(*testing.T) {
		budget := named(&policyv1.PodDisruptionBudget{}, w.ns, "c1-dhcp")
		w.changes(budget, func() { budget.Labels = nil })
		sees(w, budget, func(g Gomega, b *policyv1.PodDisruptionBudget) {
			g.Expect(b.Labels).To(HaveKeyWithValue(names.LabelManagedBy, names.ManagedBy))
		})
	})
}

func TestAnEndpointThatChangesIsFollowed(t *testing.T) {
	w := newWorld(t)
	w.hosts("c1")
	w.creates(w.smallest("c1"))
	w.settled("c1")
	w.silent() // a pending reconcile must not hide that a watch is missing

	hc := named(&hyperv1.HostedCluster{}, w.ns, "c1")
	w.Expect(w.api.Get(w.ctx, client.ObjectKeyFromObject(hc), hc)).To(Succeed())
	hc.Status.IgnitionEndpoint = "ignition.moved.example.com"
	w.Expect(w.api.Status().Update(w.ctx, hc)).To(Succeed())
	sees(w, named(&v1alpha1.ProxyServer{}, w.ns, "c1-proxy"), func(g Gomega, s *v1alpha1.ProxyServer) {
		g.Expect(s.Spec.Backends).To(ContainElement(And(HaveField("Name", "ignition"), HaveField("Hostname", BeEquivalentTo("ignition.moved.example.com")))))
	})
	sees(w, named(&v1alpha1.DNSServer{}, w.ns, "c1-dns"), func(g Gomega, s *v1alpha1.DNSServer) {
		g.Expect(s.Spec.StaticEntries).To(ContainElement(HaveField("Hostname", BeEquivalentTo("ignition.moved.example.com"))))
	})

	w.silent()
	service := named(&corev1.Service{}, w.controlPlane("c1"), "ignition-server-proxy")
	w.changes(service, func() { service.Spec.Ports[0].TargetPort = intstr.FromInt32(9443) })
	sees(w, named(&networkingv1.NetworkPolicy{}, w.controlPlane("c1"), "oooi."+w.ns+".c1-proxy.ignition-server-proxy"), func(g Gomega, p *networkingv1.NetworkPolicy) {
		g.Expect(p.Spec.Ingress[0].Ports[0].Port).To(HaveValue(Equal(intstr.FromInt32(9443))))
	})
}

// A pod gets its addresses from its network: if they change, it must be replaced.
func TestACapturedAddressThatChangesReplacesTheProxysPod(t *testing.T) {
	w := newWorld(t)
	w.hosts("c1")
	w.creates(w.smallest("c1"))
	w.settled("c1")
	proxy, dhcp := named(&appsv1.Deployment{}, w.ns, "c1-proxy-deployment"), named(&appsv1.StatefulSet{}, w.ns, "c1-dhcp-deployment")
	w.Expect(w.api.Get(w.ctx, client.ObjectKeyFromObject(proxy), proxy)).To(Succeed())
	w.Expect(w.api.Get(w.ctx, client.ObjectKeyFromObject(dhcp), dhcp)).To(Succeed())

	hc := named(&hyperv1.HostedCluster{}, w.ns, "c1")
	w.Expect(w.api.Get(w.ctx, client.ObjectKeyFromObject(hc), hc)).To(Succeed())
	hc.Status.ControlPlaneEndpoint.Host = "203.0.113.99"
	w.Expect(w.api.Status().Update(w.ctx, hc)).To(Succeed())
	before := proxy.Spec.Template.Annotations[names.AnnotationNetwork]
	sees(w, proxy, func(g Gomega, d *appsv1.Deployment) {
		g.Expect(d.Spec.Template.Annotations[names.AnnotationNetwork]).NotTo(Equal(before))
	})
	w.settled("c1")
	generation := dhcp.Generation
	w.Expect(w.api.Get(w.ctx, client.ObjectKeyFromObject(dhcp), dhcp)).To(Succeed())
	w.Expect(dhcp.Generation).To(Equal(generation), "DHCP's pod keeps its address, and stays")
}

func TestAComponentThatIsSwitchedOffDisappears(t *testing.T) {
	w := newWorld(t)
	w.hosts("c1")
	w.creates(w.smallest("c1"))
	w.settled("c1")
	lease := &v1alpha1.DHCPLease{
		ObjectMeta: metav1.ObjectMeta{Name: "c1-dhcp-192.168.100.50", Namespace: w.ns, Labels: map[string]string{names.LabelInfra: "c1", names.LabelInfraNamespace: w.ns}},
		Spec:       v1alpha1.DHCPLeaseSpec{IP: "192.168.100.50", MAC: "52:54:00:00:00:01", ServerRef: v1alpha1.ServerReference{Name: "c1-dhcp"}, State: v1alpha1.LeaseBound, DurableUntilTime: metav1.NewMicroTime(time.Now().Add(time.Hour))},
	}
	w.creates(lease)

	infra := named(&v1alpha1.Infra{}, w.ns, "c1")
	w.changes(infra, func() { infra.Spec.InfraComponents.DHCP.Enabled = ptr.To(false) })
	for _, o := range []client.Object{
		named(&v1alpha1.DHCPServer{}, w.ns, "c1-dhcp"), named(&appsv1.StatefulSet{}, w.ns, "c1-dhcp-deployment"),
		named(&corev1.ServiceAccount{}, w.ns, "c1-dhcp"), named(&nad.NetworkAttachmentDefinition{}, w.ns, "c1-dhcp"),
		named(&rbacv1.Role{}, w.controlPlane("c1"), "oooi."+w.ns+".c1-dhcp"), named(&rbacv1.RoleBinding{}, w.controlPlane("c1"), "oooi."+w.ns+".c1-dhcp"),
	} {
		w.gone(o)
	}
	sees(w, infra, func(g Gomega, i *v1alpha1.Infra) {
		g.Expect(i.Status.Conditions).NotTo(ContainElement(HaveField("Type", v1alpha1.ConditionDHCPReady)))
		g.Expect(i.Status.Leases).To(BeNil())
	})
	sees(w, lease, there)
	sees(w, named(&appsv1.StatefulSet{}, w.ns, "c1-dns-deployment"), there)
	sees(w, named(&appsv1.Deployment{}, w.ns, "c1-proxy-deployment"), there)
}

func TestAPolicyThatNoPodNeedsAnyMoreGoes(t *testing.T) {
	w := newWorld(t)
	w.hosts("c1")
	w.creates(w.smallest("c1"))
	policy := sees(w, named(&networkingv1.NetworkPolicy{}, w.controlPlane("c1"), "oooi."+w.ns+".c1-proxy.oauth-openshift"), there)
	w.Expect(w.api.Delete(w.ctx, named(&networkingv1.NetworkPolicy{}, w.controlPlane("c1"), "same-namespace"))).To(Succeed())
	w.gone(policy)
}

// A network plugin may check a daemon's traffic against the pod behind a Service's address.
func TestADaemonMayGoWhereItsResolversPodsListen(t *testing.T) {
	w := newWorld(t)
	w.hosts("c1")
	infra := w.smallest("c1")
	infra.Spec.NetworkConfig.DNSServers = []v1alpha1.IPAddress{"10.20.0.53"}
	w.creates(infra)
	lets := func(number int32, yes bool) {
		t.Helper()
		has := ContainElement(HaveField("Ports", ContainElement(HaveField("Port.IntVal", number))))
		if !yes {
			has = Not(has)
		}
		sees(w, named(&networkingv1.NetworkPolicy{}, w.ns, "c1-dns"), func(g Gomega, p *networkingv1.NetworkPolicy) { g.Expect(p.Spec.Egress).To(has) })
	}
	w.settled("c1") // a child that waits for its pod is polled
	lets(53, true)
	lets(5300, false)
	resolver := named(&corev1.Service{}, w.ns, "resolver")
	resolver.Spec = corev1.ServiceSpec{ExternalIPs: []string{"10.20.0.53"}, Ports: []corev1.ServicePort{{Name: "dns", Port: 53, Protocol: corev1.ProtocolUDP, TargetPort: intstr.FromString("dns")}}}
	behind := named(&discoveryv1.EndpointSlice{}, w.ns, "resolver-1")
	behind.Labels = map[string]string{discoveryv1.LabelServiceName: resolver.Name}
	behind.AddressType = discoveryv1.AddressTypeIPv4
	behind.Ports = []discoveryv1.EndpointPort{{Name: ptr.To("dns"), Port: ptr.To[int32](5300), Protocol: ptr.To(corev1.ProtocolUDP)}}
	w.creates(resolver, behind)
	lets(5300, true)
	w.changes(behind, func() { behind.Ports[0].Port = ptr.To[int32](5301) })
	lets(5301, true)
	lets(5300, false)
	w.Expect(w.api.Delete(w.ctx, resolver)).To(Succeed())
	lets(5301, false)
}

func TestAForeignObjectOfOurNameIsReportedAndLeftAlone(t *testing.T) {
	w := newWorld(t)
	w.hosts("c1")
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "c1-proxy-svc", Namespace: w.ns},
		Spec:       corev1.ServiceSpec{Selector: map[string]string{"app": "somebody-else"}, Ports: []corev1.ServicePort{{Port: 1234}}},
	}
	budget := &policyv1.PodDisruptionBudget{ // of a kind of which the cache has only ours
		ObjectMeta: metav1.ObjectMeta{Name: "c1-dns", Namespace: w.ns},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "somebody-else"}}},
	}
	policy := &networkingv1.NetworkPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "oooi." + w.ns + ".c1-proxy.oauth-openshift", Namespace: w.controlPlane("c1")},
		Spec:       networkingv1.NetworkPolicySpec{PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{"app": "somebody-else"}}},
	}
	foreign := []client.Object{service, budget, policy}
	w.creates(foreign...)
	w.creates(w.smallest("c1"))
	w.Expect(w.says("c1", v1alpha1.ConditionReady, metav1.ConditionFalse, "NameTaken")).To(ContainSubstring(policy.Name))
	w.Eventually(func(g Gomega) {
		for _, c := range []struct {
			kind  client.Object
			taken string
		}{{named(&v1alpha1.ProxyServer{}, w.ns, "c1-proxy"), "c1-proxy-svc"}, {named(&v1alpha1.DNSServer{}, w.ns, "c1-dns"), "PodDisruptionBudget"}} {
			g.Expect(w.api.Get(w.ctx, client.ObjectKeyFromObject(c.kind), c.kind)).To(Succeed())
			g.Expect(conditionsOf(c.kind)).To(ContainElement(And(HaveField("Reason", "NameTaken"), HaveField("Message", ContainSubstring(c.taken)))))
		}
	}).Should(Succeed())
	for _, o := range foreign {
		before := o.DeepCopyObject().(client.Object)
		w.Expect(w.api.Get(w.ctx, client.ObjectKeyFromObject(o), o)).To(Succeed())
		w.Expect(o.GetResourceVersion()).To(Equal(before.GetResourceVersion()), "%s was touched", o.GetName())
	}

	// Nor is it removed with the Infra.
	w.Expect(w.api.Delete(w.ctx, named(&v1alpha1.Infra{}, w.ns, "c1"))).To(Succeed())
	w.gone(named(&v1alpha1.Infra{}, w.ns, "c1"))
	for _, o := range foreign {
		sees(w, o, there)
	}
}

func conditionsOf(o client.Object) []metav1.Condition {
	switch s := o.(type) {
	case *v1alpha1.DHCPServer:
		return s.Status.Conditions
	case *v1alpha1.DNSServer:
		return s.Status.Conditions
	case *v1alpha1.ProxyServer:
		return s.Status.Conditions
	}
	return nil
}

// inventory is everything in the cluster that an Infra made, except Events.
func (w *world) inventory(infra string) []string {
	w.t.Helper()
	var all []string
	for _, list := range []client.ObjectList{
		&v1alpha1.DHCPServerList{}, &v1alpha1.DNSServerList{}, &v1alpha1.ProxyServerList{}, &v1alpha1.DHCPLeaseList{}, &nad.List{},
		&networkingv1.NetworkPolicyList{}, &rbacv1.RoleList{}, &rbacv1.RoleBindingList{}, &rbacv1.ClusterRoleList{}, &rbacv1.ClusterRoleBindingList{},
		&corev1.ServiceAccountList{}, &corev1.ServiceList{}, &corev1.ConfigMapList{}, &appsv1.StatefulSetList{}, &appsv1.DeploymentList{}, &policyv1.PodDisruptionBudgetList{},
	} {
		w.Expect(w.api.List(w.ctx, list)).To(Succeed())
		for _, o := range items(list) {
			ours := o.GetNamespace() == w.ns && strings.HasPrefix(o.GetName(), infra+"-") && !strings.HasSuffix(o.GetName(), "-vlan")
			if ours || o.GetLabels()[names.LabelInfraNamespace] == w.ns && o.GetLabels()[names.LabelInfra] == infra || strings.HasPrefix(o.GetName(), "oooi."+w.ns+"."+infra+"-") {
				kind, err := w.api.GroupVersionKindFor(o)
				w.Expect(err).NotTo(HaveOccurred())
				all = append(all, kind.Kind+" "+client.ObjectKeyFromObject(o).String())
			}
		}
	}
	slices.Sort(all)
	return all
}

func TestNothingIsLeftOfAnInfraDeletedWhileTheManagerWasDown(t *testing.T) {
	w := newWorld(t)
	w.hosts("c1")
	w.creates(w.smallest("c1"))
	w.settled("c1")
	w.creates(&v1alpha1.DHCPLease{
		ObjectMeta: metav1.ObjectMeta{Name: "c1-dhcp-192.168.100.50", Namespace: w.ns, Labels: map[string]string{names.LabelInfra: "c1", names.LabelInfraNamespace: w.ns}},
		Spec:       v1alpha1.DHCPLeaseSpec{IP: "192.168.100.50", MAC: "52:54:00:00:00:01", ServerRef: v1alpha1.ServerReference{Name: "c1-dhcp"}, State: v1alpha1.LeaseBound, DurableUntilTime: metav1.NewMicroTime(time.Now().Add(time.Hour))},
	})
	w.Expect(len(w.inventory("c1"))).To(BeNumerically(">", 30), "%v", w.inventory("c1"))

	w.stop()
	w.Expect(w.api.Delete(w.ctx, named(&v1alpha1.Infra{}, w.ns, "c1"))).To(Succeed())
	w.start()
	w.gone(named(&v1alpha1.Infra{}, w.ns, "c1"))
	w.Eventually(func() []string { return w.inventory("c1") }).Should(BeEmpty())
}

func TestLeasesOutliveThePodsThatWriteThem(t *testing.T) {
	w := newWorld(t)
	w.hosts("c1")
	w.creates(w.smallest("c1"))
	w.settled("c1")
	lease := &v1alpha1.DHCPLease{
		ObjectMeta: metav1.ObjectMeta{Name: "c1-dhcp-192.168.100.50", Namespace: w.ns, Labels: map[string]string{names.LabelInfra: "c1", names.LabelInfraNamespace: w.ns}},
		Spec:       v1alpha1.DHCPLeaseSpec{IP: "192.168.100.50", MAC: "52:54:00:00:00:01", ServerRef: v1alpha1.ServerReference{Name: "c1-dhcp"}, State: v1alpha1.LeaseBound, DurableUntilTime: metav1.NewMicroTime(time.Now().Add(time.Hour))},
	}
	set := named(&appsv1.StatefulSet{}, w.ns, "c1-dhcp-deployment")
	w.Expect(w.api.Get(w.ctx, client.ObjectKeyFromObject(set), set)).To(Succeed())
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "c1-dhcp-deployment-0", Namespace: w.ns, Finalizers: []string{"example.com/still-running"},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("StatefulSet"))}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "dhcp", Image: "example.com/oooi:1"}}},
	}
	w.creates(lease, pod)

	w.Expect(w.api.Delete(w.ctx, named(&v1alpha1.Infra{}, w.ns, "c1"))).To(Succeed())
	sees(w, pod, func(g Gomega, p *corev1.Pod) { g.Expect(p.DeletionTimestamp).NotTo(BeNil()) })
	w.Consistently(func() error { return w.api.Get(w.ctx, client.ObjectKeyFromObject(lease), lease) }).WithTimeout(3 * time.Second).Should(Succeed())
	w.changes(pod, func() { pod.Finalizers = nil })
	w.gone(lease)
	w.gone(named(&v1alpha1.Infra{}, w.ns, "c1"))
}

func TestARestoreWithNewUIDsKeepsAddresses(t *testing.T) {
	w := newWorld(t)
	w.hosts("c1")
	infra := w.smallest("c1")
	infra.Spec.NetworkConfig.CIDR = "192.168.100.0/28"
	w.creates(infra)
	w.settled("c1")
	dhcp, dns, proxy := named(&v1alpha1.DHCPServer{}, w.ns, "c1-dhcp"), named(&v1alpha1.DNSServer{}, w.ns, "c1-dns"), named(&v1alpha1.ProxyServer{}, w.ns, "c1-proxy")
	backup := []client.Object{infra, dhcp, dns, proxy}
	for _, o := range backup {
		w.Expect(w.api.Get(w.ctx, client.ObjectKeyFromObject(o), o)).To(Succeed())
	}
	before := []any{dhcp.Spec.DeepCopy(), dns.Spec.DeepCopy(), proxy.Spec.DeepCopy()}
	// An address that no allocation would give: only the restored child has it.
	dhcp.Spec.NetworkConfig.ServerIP, before[0].(*v1alpha1.DHCPServerSpec).NetworkConfig.ServerIP = "192.168.100.9", "192.168.100.9"
	policy := sees(w, named(&networkingv1.NetworkPolicy{}, w.controlPlane("c1"), "oooi."+w.ns+".c1-proxy.oauth-openshift"), there)

	w.Expect(w.api.Delete(w.ctx, named(&v1alpha1.Infra{}, w.ns, "c1"))).To(Succeed())
	w.gone(named(&v1alpha1.Infra{}, w.ns, "c1"))
	w.gone(named(&v1alpha1.ProxyServer{}, w.ns, "c1-proxy"))
	w.gone(named(&v1alpha1.DNSServer{}, w.ns, "c1-dns"))
	w.gone(named(&v1alpha1.DHCPServer{}, w.ns, "c1-dhcp"))
	w.stop()
	for _, o := range append(backup, policy) {
		withoutIdentity(o)
		w.creates(o)
	}
	w.start()
	for _, child := range []client.Object{dhcp, dns, proxy} {
		sees(w, child, func(g Gomega, o client.Object) {
			g.Expect(metav1.IsControlledBy(o, infra)).To(BeTrue(), "%s is not adopted", o.GetName())
			g.Expect(o.GetLabels()).To(HaveKeyWithValue(names.LabelOwnerUID, string(infra.UID)))
		})
	}
	w.Expect(dhcp.Spec.NetworkConfig.ServerIP).To(Equal(before[0].(*v1alpha1.DHCPServerSpec).NetworkConfig.ServerIP))
	w.Expect(cmp.Diff(before[1].(*v1alpha1.DNSServerSpec).NetworkConfig.Attachment, dns.Spec.NetworkConfig.Attachment)).To(BeEmpty())
	w.Expect(cmp.Diff(before[2].(*v1alpha1.ProxyServerSpec).NetworkConfig, proxy.Spec.NetworkConfig)).To(BeEmpty())
	sees(w, policy, func(g Gomega, p *networkingv1.NetworkPolicy) {
		g.Expect(p.Labels).To(HaveKeyWithValue(names.LabelOwnerUID, string(infra.UID)))
	})
}

// A restored Infra has no finalizer. If it waits for something, its deletion must still remove what it made before.
func TestNothingIsLeftOfARestoredInfraThatWaited(t *testing.T) {
	w := newWorld(t)
	w.hosts("c1")
	infra := w.smallest("c1")
	infra.Spec.NetworkConfig.NetworkAttachmentDefinition = "gone"
	lease := &v1alpha1.DHCPLease{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "c1-dhcp-192.168.100.9", Labels: map[string]string{names.LabelInfra: "c1", names.LabelInfraNamespace: w.ns, names.LabelOwnerUID: "of-an-earlier-life"}},
		Spec:       v1alpha1.DHCPLeaseSpec{IP: "192.168.100.9", MAC: "52:54:00:00:00:09", ServerRef: v1alpha1.ServerReference{Name: "c1-dhcp"}, State: v1alpha1.LeaseBound, DurableUntilTime: metav1.NowMicro()},
	}
	w.creates(lease)
	w.creates(infra)
	w.says("c1", v1alpha1.ConditionNetworkReady, metav1.ConditionFalse, "NADNotFound")
	w.Expect(w.api.Delete(w.ctx, named(&v1alpha1.Infra{}, w.ns, "c1"))).To(Succeed())
	w.gone(named(&v1alpha1.Infra{}, w.ns, "c1"))
	w.gone(named(&v1alpha1.DHCPLease{}, w.ns, lease.Name))
}

// withoutIdentity leaves of an object what a backup tool keeps.
func withoutIdentity(o client.Object) {
	o.SetUID("")
	o.SetResourceVersion("")
	o.SetGeneration(0)
	o.SetCreationTimestamp(metav1.Time{})
	o.SetManagedFields(nil)
	o.SetOwnerReferences(nil)
	o.SetFinalizers(nil)
}

func TestAHostedClusterOfAnotherNamespaceNeedsPermission(t *testing.T) {
	w := newWorld(t)
	w.hosts("c1")
	w.stop()
	w.calls = &ledger{}
	w.start()
	intruders := w.ns + "-intruders"
	theirs := w.smallest("theirs")
	theirs.Namespace = intruders
	theirs.Spec.HostedClusterRef = &v1alpha1.HostedClusterReference{Name: "c1", Namespace: v1alpha1.ObjectName(w.ns)}
	theirs.Spec.NetworkConfig.NetworkAttachmentNamespace, theirs.Spec.NetworkConfig.NetworkAttachmentDefinition = v1alpha1.ObjectName(w.ns), "c1-vlan"
	w.creates(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: intruders}}, theirs)
	refused := func(g Gomega, i *v1alpha1.Infra) {
		g.Expect(i.Status.Conditions).To(ContainElement(And(HaveField("Type", v1alpha1.ConditionAccepted), HaveField("Reason", "RefNotPermitted"))))
	}
	sees(w, theirs, refused)
	w.silent()
	// Writes, and uncached reads. Cached reads make no call; internal/observe/permission_test.go checks those.
	w.Expect(w.calls.touching(w.controlPlane("c1"))).To(BeEmpty())
	for _, list := range []client.ObjectList{&v1alpha1.DHCPServerList{}, &v1alpha1.ProxyServerList{}, &nad.List{}} {
		w.Expect(w.api.List(w.ctx, list, client.InNamespace(intruders))).To(Succeed())
		w.Expect(items(list)).To(BeEmpty())
	}

	// The owner's grant is enough, and withdrawing it stops the writes.
	hc := named(&hyperv1.HostedCluster{}, w.ns, "c1")
	w.changes(hc, func() { hc.Annotations = map[string]string{names.AnnotationAllowedNamespaces: intruders} })
	vlan := named(&nad.NetworkAttachmentDefinition{}, w.ns, "c1-vlan")
	w.changes(vlan, func() { vlan.Annotations = map[string]string{names.AnnotationAllowedNamespaces: intruders} })
	sees(w, named(&appsv1.Deployment{}, intruders, "theirs-proxy-deployment"), there)
	w.changes(hc, func() { hc.Annotations = nil })
	sees(w, theirs, refused)
	w.Expect(w.api.Delete(w.ctx, theirs)).To(Succeed())
	w.gone(theirs)
}

func TestTwoInfrasOfOneNamespaceNeverMix(t *testing.T) {
	w := newWorld(t)
	w.hosts("c1")
	w.hosts("c2")
	w.creates(w.smallest("c1"), w.smallest("c2"))
	w.settled("c1")
	w.settled("c2")
	for _, mine := range []string{"c1", "c2"} {
		other := map[string]string{"c1": "c2", "c2": "c1"}[mine]
		proxy := named(&v1alpha1.ProxyServer{}, w.ns, mine+"-proxy")
		w.Expect(w.api.Get(w.ctx, client.ObjectKeyFromObject(proxy), proxy)).To(Succeed())
		for _, b := range proxy.Spec.Backends {
			w.Expect(b.TargetNamespace).To(BeEquivalentTo(w.controlPlane(mine)))
		}
		service := named(&corev1.Service{}, w.ns, mine+"-proxy-svc")
		w.Expect(w.api.Get(w.ctx, client.ObjectKeyFromObject(service), service)).To(Succeed())
		deployment := named(&appsv1.Deployment{}, w.ns, other+"-proxy-deployment")
		w.Expect(w.api.Get(w.ctx, client.ObjectKeyFromObject(deployment), deployment)).To(Succeed())
		w.Expect(service.Spec.Selector).NotTo(Equal(deployment.Spec.Template.Labels))
		w.Expect(deployment.Spec.Template.Labels).NotTo(HaveKeyWithValue(names.LabelInstance, service.Spec.Selector[names.LabelInstance]))
	}
	w.Expect(w.api.Delete(w.ctx, named(&v1alpha1.Infra{}, w.ns, "c1"))).To(Succeed())
	w.gone(named(&v1alpha1.Infra{}, w.ns, "c1"))
	w.Eventually(func() []string { return w.inventory("c1") }).Should(BeEmpty())
	w.Expect(len(w.inventory("c2"))).To(BeNumerically(">", 30))
}

func TestTwoInfrasOfOneVLANAreNotGivenOneAddress(t *testing.T) {
	w := newWorld(t)
	w.hosts("c1")
	w.hosts("c2")
	one, two := w.smallest("c1"), w.smallest("c2")
	two.Spec.NetworkConfig.NetworkAttachmentDefinition = "c1-vlan"
	for _, i := range []*v1alpha1.Infra{one, two} {
		i.Spec.InfraComponents.DHCP.Enabled = ptr.To(false)
	}
	w.creates(one, two)
	taken := map[v1alpha1.IPAddress]string{}
	for _, name := range []string{"c1", "c2"} {
		infra := sees(w, named(&v1alpha1.Infra{}, w.ns, name), func(g Gomega, i *v1alpha1.Infra) { g.Expect(i.Status.Addresses).To(HaveLen(4)) })
		for _, a := range infra.Status.Addresses {
			w.Expect(taken).NotTo(HaveKey(a.IP), "given to %s too", name)
			taken[a.IP] = name
		}
	}
}

func TestANADThatMovesIsJudgedByThoseOnBothVLANs(t *testing.T) {
	w := newWorld(t)
	w.hosts("c1")
	w.hosts("c2")
	older, newer := w.smallest("c1"), w.smallest("c2")
	newer.Spec.NetworkConfig.CIDR = "192.168.101.0/24"
	w.creates(older)
	w.settled("c1")
	w.creates(newer)
	w.settled("c2")
	w.silent()

	vlan := named(&nad.NetworkAttachmentDefinition{}, w.ns, "c1-vlan")
	w.Expect(w.api.Get(w.ctx, client.ObjectKeyFromObject(vlan), vlan)).To(Succeed())
	was := vlan.Spec.Config
	w.changes(vlan, func() { vlan.Spec.Config = strings.Replace(was, w.ns+"-c1", w.ns+"-c2", 1) })
	w.says("c2", v1alpha1.ConditionAccepted, metav1.ConditionFalse, "VLANInUse")
	w.changes(vlan, func() { vlan.Spec.Config = was })
	w.says("c2", v1alpha1.ConditionAccepted, metav1.ConditionTrue, "Valid")
}

func TestANADThatIsMissingIsReportedAndFollowed(t *testing.T) {
	w := newWorld(t)
	w.hosts("c1")
	infra := w.smallest("c1")
	infra.Spec.NetworkConfig.NetworkAttachmentDefinition = "later"
	w.creates(infra)
	w.says("c1", v1alpha1.ConditionNetworkReady, metav1.ConditionFalse, "NADNotFound")
	w.says("c1", v1alpha1.ConditionDHCPReady, metav1.ConditionUnknown, "NotCreated")
	w.Expect(w.inventory("c1")).To(BeEmpty())
	w.creates(&nad.NetworkAttachmentDefinition{ObjectMeta: metav1.ObjectMeta{Name: "later", Namespace: w.ns}, Spec: nad.Spec{Config: `{"cniVersion":"0.3.1","name":"l","type":"bridge","bridge":"later"}`}})
	w.settled("c1")
}

func TestTheClustersNetworksAreFollowed(t *testing.T) {
	w := newWorld(t)
	w.hosts("c1")
	w.creates(w.smallest("c1"))
	w.settled("c1")
	denies := func(zone string, yes bool) {
		t.Helper()
		has := ContainElement(BeEquivalentTo(zone))
		if !yes {
			has = Not(has)
		}
		sees(w, named(&v1alpha1.DNSServer{}, w.ns, "c1-dns"), func(g Gomega, s *v1alpha1.DNSServer) { g.Expect(s.Spec.DeniedZones).To(has) })
	}
	services := named(&networkingv1.ServiceCIDR{}, "", "more")
	services.Spec.CIDRs = []string{"10.111.7.0/24"}
	node := named(&corev1.Node{}, "", "n1")
	openshift := named(&configv1.Network{}, "", "cluster")
	t.Cleanup(func() {
		w.Expect(client.IgnoreNotFound(w.api.Delete(context.Background(), openshift))).To(Succeed())
		w.Expect(client.IgnoreNotFound(w.api.Delete(context.Background(), services))).To(Succeed())
		w.Expect(client.IgnoreNotFound(w.api.Delete(context.Background(), node))).To(Succeed())
	})
	// Before each change nothing is pending: a reconcile for another reason would hide a missing watch.
	rests := func() (written, passes int) {
		t.Helper()
		w.settled("c1")
		did := func() (written, passes int) { return len(w.calls.written()), w.passes(&v1alpha1.Infra{}) }
		w.quiet(func() int { written, passes := did(); return written + passes }, "the manager is not at rest")
		return did()
	}
	rests()
	w.creates(services)
	denies("7.111.10.in-addr.arpa", true)
	rests()
	w.creates(node)
	w.changes(node, func() { node.Spec.PodCIDR, node.Spec.PodCIDRs = "10.112.7.0/24", []string{"10.112.7.0/24"} })
	denies("7.112.10.in-addr.arpa", true)

	written, passes := rests()
	for beat := range 3 {
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.Unix(int64(beat), 0)}}
		w.Expect(w.api.Status().Update(w.ctx, node)).To(Succeed())
	}
	w.Expect(w.silent()).To(Equal(written), func() string { return fmt.Sprint(w.calls.written()[written:]) })
	w.Expect(w.passes(&v1alpha1.Infra{})).To(Equal(passes), "what Nodes report concerns nobody")

	// OpenShift's Network takes precedence, and its networks may be widened.
	openshift.Status.ClusterNetwork = []configv1.ClusterNetworkEntry{{CIDR: "10.114.7.0/24"}}
	w.creates(openshift)
	denies("7.114.10.in-addr.arpa", true)
	denies("7.112.10.in-addr.arpa", false)
	rests()
	w.changes(openshift, func() { openshift.Status.ClusterNetwork[0].CIDR = "10.114.6.0/23" })
	denies("6.114.10.in-addr.arpa", true)
	w.Expect(w.api.Delete(w.ctx, openshift)).To(Succeed())
	denies("7.112.10.in-addr.arpa", true)

	w.Expect(w.api.Delete(w.ctx, node)).To(Succeed())
	denies("7.112.10.in-addr.arpa", false)

	// If a flag gives the networks, Nodes are read only for bridges.
	w.stop()
	w.groups.Bridges = nil
	w.settings.PodCIDRs, w.calls = []netip.Prefix{netip.MustParsePrefix("10.113.7.0/24")}, &ledger{}
	w.start()
	denies("7.113.10.in-addr.arpa", true)
	w.Expect(w.calls.read()).NotTo(ContainElement(ContainSubstring("/nodes")))
}

// Before garbage collection the first child's objects still exist; afterwards those that the second child took over stay.
func TestAComponentThatIsSwitchedOnAgainTakesOverWhatIsLeft(t *testing.T) {
	w := newWorld(t)
	w.hosts("c1")
	w.creates(w.smallest("c1"))
	w.settled("c1")
	infra, deployment := named(&v1alpha1.Infra{}, w.ns, "c1"), named(&appsv1.Deployment{}, w.ns, "c1-proxy-deployment")
	first := sees(w, deployment, there).DeepCopy()
	goOn, err := w.cluster.PauseCollector()
	w.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { w.Expect(goOn()).To(Succeed()) })
	w.changes(infra, func() { infra.Spec.InfraComponents.Proxy.Enabled = ptr.To(false) })
	w.gone(named(&v1alpha1.ProxyServer{}, w.ns, "c1-proxy"))
	w.changes(infra, func() { infra.Spec.InfraComponents.Proxy.Enabled = nil })
	proxy := sees(w, named(&v1alpha1.ProxyServer{}, w.ns, "c1-proxy"), there)
	sees(w, deployment, func(g Gomega, d *appsv1.Deployment) { g.Expect(metav1.IsControlledBy(d, proxy)).To(BeTrue()) })
	w.settled("c1")
	w.Expect(goOn()).To(Succeed())
	w.silent()
	sees(w, deployment, there)
	w.Expect(deployment.UID).To(Equal(first.UID))
	w.Expect(deployment.Spec.Template).To(Equal(first.Spec.Template), "its pod serves on")
}

func TestWhatRunsStaysWhileTheSpecIsInvalid(t *testing.T) {
	w := newWorld(t)
	w.hosts("c1")
	w.creates(w.smallest("c1"))
	w.settled("c1")
	before := w.silent()
	infra := named(&v1alpha1.Infra{}, w.ns, "c1")
	w.changes(infra, func() { infra.Spec.InfraComponents.DNS.Image = "example.com/other:1" })
	w.Expect(w.says("c1", v1alpha1.ConditionAccepted, metav1.ConditionFalse, "ImageOverrideNotAllowed")).To(ContainSubstring("dns.image"))
	w.says("c1", v1alpha1.ConditionDNSReady, metav1.ConditionTrue, "Serving")
	w.silent()
	for _, call := range w.calls.written()[before:] {
		w.Expect(call).To(ContainSubstring("/infras/c1/status"))
	}
}

func TestWhatIsSwitchedOffGoesEvenWhileTheSpecIsInvalid(t *testing.T) {
	w := newWorld(t)
	w.hosts("c1")
	w.creates(w.smallest("c1"))
	w.settled("c1")
	w.Expect(w.inControlPlane("c1", "proxy")).NotTo(BeEmpty())
	before, lasting := w.silent(), w.inControlPlane("c1", "dhcp")
	infra := named(&v1alpha1.Infra{}, w.ns, "c1")
	w.changes(infra, func() {
		infra.Spec.InfraComponents.DNS.Image = "example.com/other:1"
		infra.Spec.InfraComponents.Proxy.Enabled = ptr.To(false)
	})
	w.says("c1", v1alpha1.ConditionAccepted, metav1.ConditionFalse, "ImageOverrideNotAllowed")
	w.gone(named(&v1alpha1.ProxyServer{}, w.ns, "c1-proxy"))
	w.gone(named(&nad.NetworkAttachmentDefinition{}, w.ns, "c1-proxy"))
	w.Eventually(func() []string { return w.inControlPlane("c1", "proxy") }).Should(BeEmpty())
	w.silent()
	for _, call := range w.calls.written()[before:] {
		w.Expect(call).To(Or(ContainSubstring("c1-proxy"), ContainSubstring("/infras/c1/status")))
	}
	w.Expect(w.inControlPlane("c1", "dhcp")).To(Equal(lasting))
	sees(w, infra, func(g Gomega, i *v1alpha1.Infra) { g.Expect(i.Status.Addresses).To(HaveLen(4)) })
}

// inControlPlane are the objects that a component of an Infra has in the control-plane namespace.
func (w *world) inControlPlane(infra, component string) (all []string) {
	w.t.Helper()
	for _, list := range []client.ObjectList{&rbacv1.RoleList{}, &rbacv1.RoleBindingList{}, &networkingv1.NetworkPolicyList{}} {
		w.Expect(w.api.List(w.ctx, list, client.InNamespace(w.controlPlane(infra)))).To(Succeed())
		for _, o := range items(list) {
			if strings.HasPrefix(o.GetName(), "oooi."+w.ns+"."+infra+"-"+component) {
				all = append(all, fmt.Sprintf("%T %s", o, o.GetName()))
			}
		}
	}
	return all
}

func TestWhatTheAPIServerRejectsIsSaid(t *testing.T) {
	w := newWorld(t)
	w.hosts("c1")
	infra := w.smallest("c1")
	infra.Spec.InfraComponents.DNS.Resources = &corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}, Limits: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")},
	}
	w.creates(infra)
	w.Expect(w.says("c1", v1alpha1.ConditionDNSReady, metav1.ConditionFalse, "Rejected")).To(ContainSubstring("cpu"))
	w.changes(infra, func() { infra.Spec.InfraComponents.DNS.Resources = nil })
	w.settled("c1")
}

func TestAPauseStopsOurWritesAndNotTheService(t *testing.T) {
	w := newWorld(t)
	w.hosts("c1")
	w.creates(w.smallest("c1"))
	w.settled("c1")
	infra := named(&v1alpha1.Infra{}, w.ns, "c1")
	for name, pause := range map[string]struct{ begin, end func() }{
		"by annotation": {
			func() {
				w.changes(infra, func() { infra.Annotations = map[string]string{names.AnnotationPaused: "true"} })
			},
			func() { w.changes(infra, func() { infra.Annotations = nil }) },
		},
		"by the HostedCluster": {
			func() {
				hc := named(&hyperv1.HostedCluster{}, w.ns, "c1")
				w.changes(hc, func() { hc.Spec.PausedUntil = ptr.To("true") })
			},
			func() {
				hc := named(&hyperv1.HostedCluster{}, w.ns, "c1")
				w.changes(hc, func() { hc.Spec.PausedUntil = nil })
			},
		},
		"by the HostedCluster, for a while": {
			func() {
				hc := named(&hyperv1.HostedCluster{}, w.ns, "c1")
				w.changes(hc, func() { hc.Spec.PausedUntil = ptr.To(time.Now().Add(8 * time.Second).UTC().Format(time.RFC3339)) })
			},
			func() {},
		},
	} {
		t.Run(name, func(*testing.T) {
			w.t = t
			pause.begin()
			w.says("c1", v1alpha1.ConditionProgressing, metav1.ConditionFalse, "Paused")
			before := w.silent()
			policy := named(&networkingv1.NetworkPolicy{}, w.controlPlane("c1"), "oooi."+w.ns+".c1-proxy.oauth-openshift")
			budget := named(&policyv1.PodDisruptionBudget{}, w.ns, "c1-dns")
			w.Expect(w.api.Delete(w.ctx, policy)).To(Succeed())
			w.Expect(w.api.Delete(w.ctx, budget)).To(Succeed())
			if name != "by the HostedCluster, for a while" {
				w.silent()
				for _, call := range w.calls.written()[before:] {
					w.Expect(call).To(ContainSubstring("/status"))
				}
			}
			pause.end()
			sees(w, policy, there)
			sees(w, budget, there)
			w.says("c1", v1alpha1.ConditionReady, metav1.ConditionTrue, "Serving")
		})
	}
}

func TestANewManagerAloneRestartsNoPod(t *testing.T) {
	w := newWorld(t)
	w.hosts("c1")
	w.creates(w.smallest("c1"))
	w.settled("c1")
	w.plays()
	before := w.silent()
	w.stop()
	w.settings.Image, w.settings.EnvoyImage, w.settings.MetricsNamespaces = "example.com/oooi:2", "example.com/envoy:2", []string{"watching"}
	w.start()

	policy := sees(w, named(&networkingv1.NetworkPolicy{}, w.ns, "c1-proxy"), there)
	sees(w, policy, func(g Gomega, p *networkingv1.NetworkPolicy) {
		g.Expect(p.Spec.Ingress[0].From[0].NamespaceSelector.MatchExpressions[0].Values).To(Equal([]string{"watching"}), "the new manager is at work")
	})
	sees(w, named(&v1alpha1.ProxyServer{}, w.ns, "c1-proxy"), func(g Gomega, p *v1alpha1.ProxyServer) {
		g.Expect(p.Status.Conditions).To(ContainElements(
			And(HaveField("Type", v1alpha1.ConditionProgressing), HaveField("Status", metav1.ConditionFalse), HaveField("Reason", "TemplateUpdatePending")),
			And(HaveField("Type", v1alpha1.ConditionReady), HaveField("Status", metav1.ConditionTrue))))
	})
	w.silent()
	for _, call := range w.calls.written()[before:] {
		w.Expect(call).NotTo(Or(ContainSubstring("/statefulsets"), ContainSubstring("/deployments")))
	}

	// A change by hand is reverted to the template that was updated last.
	image := func(want string) func(Gomega, *appsv1.StatefulSet) {
		return func(g Gomega, s *appsv1.StatefulSet) {
			g.Expect(s.Spec.Template.Spec.Containers[0].Image).To(Equal(want))
		}
	}
	dns, dhcp := named(&appsv1.StatefulSet{}, w.ns, "c1-dns-deployment"), named(&appsv1.StatefulSet{}, w.ns, "c1-dhcp-deployment")
	w.changes(dhcp, func() { dhcp.Spec.Template.Spec.Containers[0].Image = "example.com/evil" })
	sees(w, dhcp, image("example.com/oooi:1"))
	w.restored("DHCPServer c1-dhcp", "StatefulSet "+w.ns+"/c1-dhcp-deployment")
	server := named(&v1alpha1.DHCPServer{}, w.ns, "c1-dhcp")
	w.changes(server, func() { server.Spec.LeaseConfig.LeaseTime.Duration = 17 * time.Minute })
	w.restored("Infra c1", "DHCPServer "+w.ns+"/c1-dhcp")

	// A change that replaces a pod anyway brings the new template, to that pod only.
	infra := named(&v1alpha1.Infra{}, w.ns, "c1")
	w.changes(infra, func() { infra.Spec.InfraComponents.DNS.NodeSelector = map[string]string{"vlan": "yes"} })
	sees(w, dns, image("example.com/oooi:2"))
	w.silent()
	sees(w, dhcp, image("example.com/oooi:1"))

	// So does the command that the status names.
	w.changes(dhcp, func() { delete(dhcp.Annotations, names.AnnotationSeal) })
	sees(w, dhcp, image("example.com/oooi:2"))

	// Nothing else was restored, and who takes the seal off where nothing is pending has changed nothing.
	w.silent()
	w.changes(dhcp, func() { delete(dhcp.Annotations, names.AnnotationSeal) })
	sees(w, dhcp, func(g Gomega, s *appsv1.StatefulSet) { g.Expect(s.Annotations).To(HaveKey(names.AnnotationSeal)) })
	w.silent()
	w.restored("DHCPServer c1-dhcp", "StatefulSet "+w.ns+"/c1-dhcp-deployment")
	w.restored("Infra c1", "DHCPServer "+w.ns+"/c1-dhcp")
}

func TestAnImageThatIsWrittenReachesTheWorkload(t *testing.T) {
	w := newWorld(t)
	w.hosts("c1")
	w.creates(w.smallest("c1"))
	w.settled("c1")
	w.plays()
	w.stop()
	w.settings.AllowImageOverride = true
	w.start()
	infra := named(&v1alpha1.Infra{}, w.ns, "c1")
	w.changes(infra, func() { infra.Spec.InfraComponents.Proxy.ProxyImage = "example.com/envoy:mine" })
	sees(w, named(&appsv1.Deployment{}, w.ns, "c1-proxy-deployment"), func(g Gomega, d *appsv1.Deployment) {
		g.Expect(d.Spec.Template.Spec.Containers).To(ContainElement(And(HaveField("Name", "envoy"), HaveField("Image", "example.com/envoy:mine"))))
		g.Expect(d.Spec.Strategy.Type).To(Equal(appsv1.RecreateDeploymentStrategyType))
	})
}

func TestAKindThatAppearsLaterIsWatchedWithoutARestart(t *testing.T) {
	w := newBareWorld(t)
	w.creates(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.ns}}, w.smallest("c1"))
	w.says("c1", v1alpha1.ConditionNetworkReady, metav1.ConditionFalse, "NADNotFound")
	standby := w.standby()
	w.Expect(w.cluster.InstallForeign()).To(Succeed())
	w.Eventually(func() bool { return standby.Kinds.Served(&hyperv1.HostedCluster{}) }).Should(BeTrue(), "its admission would pass what the leader refuses")
	w.hosts("c1")
	w.SetDefaultEventuallyTimeout(15 * time.Second)
	sees(w, named(&v1alpha1.ProxyServer{}, w.ns, "c1-proxy"), there)
	w.SetDefaultEventuallyTimeout(time.Minute)
	w.settled("c1")
	begun := time.Now().Truncate(time.Second)
	machine, vm := w.machine("c1", "vm")
	lease := w.getsAddress(w.ns, "192.168.100.120", vm, begun)
	w.joins(machine, begun, begun, "True")
	sees(w, lease, func(g Gomega, l *v1alpha1.DHCPLease) { g.Expect(became(l)).To(BeTemporally("==", begun)) })
	w.hosts("c2")
	w.puts(strings.Replace(w.nodePool("c2", w.ns+"/c2-vlan"), "clusterName: c1", "clusterName: c2", 1))
	w.annotates("c2", names.AnnotationInfra, names.InfraAuto)
	w.settled("c2")
}
