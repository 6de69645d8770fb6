package controller_test

import (
	"net/netip"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/api/v1alpha1"
	ac "github.com/cldmnky/oooi/api/v1alpha1/applyconfiguration/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/apply"
	"github.com/cldmnky/oooi/internal/daemon"
	"github.com/cldmnky/oooi/internal/nad"
	"github.com/cldmnky/oooi/internal/names"
)

// A second instance is created with its address and waits for its network; it is removed with the address, and so are its reports.
func TestAnInstanceComesAndGoesWithItsAddress(t *testing.T) {
	w := newWorld(t)
	w.creates(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.ns}})
	network := func(name, address string) client.Object {
		n := named(&nad.NetworkAttachmentDefinition{}, w.ns, name)
		n.Spec.Config = `{"cniVersion":"0.4.0","type":"bridge","bridge":"br1","ipam":{"type":"static","addresses":[{"address":"` + address + `/24"}]}}`
		return n
	}
	server := named(&v1alpha1.DNSServer{}, w.ns, "lone")
	server.Spec.HostedClusterDomain, server.Spec.CacheTTL.Duration = "c1.example.com", time.Hour
	server.Spec.NetworkConfig = v1alpha1.DNSNetworkConfig{ServerIP: "192.168.100.3", SecondaryNetworkCIDR: "192.168.100.0/24", Attachment: v1alpha1.Attachment{NetworkAttachmentDefinition: "vlan"}}
	w.creates(network("vlan", "192.168.100.3"), server)
	first, second := named(&appsv1.StatefulSet{}, w.ns, "dns-lone-deployment"), named(&appsv1.StatefulSet{}, w.ns, "dns-lone-deployment-1")
	sees(w, first, there)
	before := first.DeepCopy()

	w.changes(server, func() {
		server.Spec.NetworkConfig.AdditionalServerIPs = []v1alpha1.IPAddress{"192.168.100.4"}
	})
	sees(w, server, func(g Gomega, s *v1alpha1.DNSServer) {
		g.Expect(meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionReady)).To(HaveValue(HaveField("Message", ContainSubstring(w.ns+"/vlan-1 not found"))))
	})
	w.creates(network("vlan-1", "192.168.100.4"))
	sees(w, second, func(g Gomega, s *appsv1.StatefulSet) {
		g.Expect(s.Spec.Template.Spec.Containers[0].Args).To(ContainElement("--instance=1"))
	})
	sees(w, first, func(g Gomega, s *appsv1.StatefulSet) {
		g.Expect(s.Spec).To(Equal(before.Spec), "the first instance is as it was")
	})

	for _, s := range []*appsv1.StatefulSet{first, second} {
		w.reports(s, func() {
			s.Status = appsv1.StatefulSetStatus{ObservedGeneration: s.Generation, Replicas: 1, ReadyReplicas: 1, UpdatedReplicas: 1, CurrentRevision: "a", UpdateRevision: "a"}
		})
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: s.Name + "-0", Namespace: w.ns, Labels: s.Spec.Template.Labels}, Spec: s.Spec.Template.Spec}
		pod.Spec.NodeName = "n1"
		w.creates(pod)
		w.reports(pod, func() {
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		})
	}
	w.accept(server, 0)
	w.accept(server, 1)
	sees(w, server, func(g Gomega, s *v1alpha1.DNSServer) {
		g.Expect(meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionReady)).To(HaveValue(HaveField("Reason", "InstancesShareNode")), "%v", s.Status.Conditions)
		g.Expect(s.Status.Instances).To(ConsistOf(
			v1alpha1.Instance{IP: "192.168.100.3", Workload: first.Name, Ready: true, Node: "n1"}, v1alpha1.Instance{IP: "192.168.100.4", Workload: second.Name, Ready: true, Node: "n1"}))
	})

	w.changes(second, func() { second.Finalizers = []string{"example.com/still-there"} })
	w.changes(server, func() {
		server.Spec.NetworkConfig.AdditionalServerIPs = nil
	})
	sees(w, second, func(g Gomega, s *appsv1.StatefulSet) { g.Expect(s.DeletionTimestamp).NotTo(BeNil()) })
	sees(w, server, func(g Gomega, s *v1alpha1.DNSServer) {
		g.Expect(meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionReady)).To(HaveValue(HaveField("ObservedGeneration", s.Generation)))
		g.Expect(meta.FindStatusCondition(s.Status.Conditions, "ConfigAccepted1")).NotTo(BeNil(), "what a daemon says that may still run stays")
	})
	w.changes(second, func() { second.Finalizers = nil })
	w.gone(second)
	w.Expect(w.api.Delete(w.ctx, named(&corev1.Pod{}, w.ns, second.Name+"-0"), client.GracePeriodSeconds(0))).To(Succeed())
	sees(w, server, func(g Gomega, s *v1alpha1.DNSServer) {
		g.Expect(s.Status.Instances).To(ConsistOf(HaveField("Workload", first.Name)))
		g.Expect(meta.FindStatusCondition(s.Status.Conditions, "ConfigAccepted1")).To(BeNil())
	})
}

// accept plays the daemon of one instance.
func (w *world) accept(server *v1alpha1.DNSServer, instance int) {
	w.t.Helper()
	w.Expect(w.api.Get(w.ctx, client.ObjectKeyFromObject(server), server)).To(Succeed())
	said := metav1.Condition{Type: v1alpha1.InstanceCondition(v1alpha1.ConditionConfigAccepted, instance), Status: metav1.ConditionTrue, Reason: "Served", ObservedGeneration: server.Generation}
	status := ac.DNSServerStatus().WithConditions(daemon.Condition(nil, said)).WithInstances(daemon.Instance(server.Spec.NetworkConfig.ServerIPs()[instance], nil))
	w.Expect(w.api.Status().Apply(w.ctx, ac.DNSServer(server.Name, w.ns).WithStatus(status), client.FieldOwner(names.InstanceFieldOwner(names.DNSFieldOwner, instance)))).To(Succeed())
}

// A lease outlives its place in the pool, and the manager keeps none.
func TestASecondInstanceGetsNoAddressThatAMachineLeases(t *testing.T) {
	w := newWorld(t)
	w.hosts("c1")
	lease := &v1alpha1.DHCPLease{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: names.Lease("c1-dhcp", netip.MustParseAddr("192.168.100.4"))},
		Spec:       v1alpha1.DHCPLeaseSpec{IP: "192.168.100.4", MAC: "02:00:00:00:00:01", ServerRef: v1alpha1.ServerReference{Name: "c1-dhcp"}, State: v1alpha1.LeaseBound, DurableUntilTime: metav1.NewMicroTime(time.Now().Add(time.Hour))},
	}
	w.creates(lease, w.smallest("c1"))
	sees(w, named(&v1alpha1.DHCPServer{}, w.ns, "c1-dhcp"), func(g Gomega, s *v1alpha1.DHCPServer) {
		g.Expect(s.Spec.NetworkConfig.AdditionalServerIPs).To(Equal([]v1alpha1.IPv4Address{"192.168.100.5"}))
	})
	sees(w, named(&v1alpha1.DNSServer{}, w.ns, "c1-dns"), func(g Gomega, s *v1alpha1.DNSServer) {
		g.Expect(s.Spec.NetworkConfig.AdditionalServerIPs).To(Equal([]v1alpha1.IPAddress{"192.168.100.6"}))
	})
}

// The successor of a lost pod is made as soon as that is to end, and reads by its label where it was. A pod that has come in its place is
// another.
func TestALostPodIsToEndWithItsLabel(t *testing.T) {
	w := newWorld(t)
	w.creates(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.ns}})
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "proxy-x", Namespace: w.ns}}
	pod.Spec.NodeName, pod.Spec.Containers = "n1", []corev1.Container{{Name: "envoy", Image: "example.com/envoy"}}
	w.creates(pod)
	writer := &apply.Writer{Client: w.api}
	w.Expect(writer.Lost(w.ctx, client.ObjectKeyFromObject(pod), "another")).NotTo(Succeed())
	sees(w, pod, func(g Gomega, p *corev1.Pod) {
		g.Expect(p.DeletionTimestamp).To(BeNil())
		g.Expect(p.Labels).To(BeEmpty())
	})
	w.Expect(writer.Lost(w.ctx, client.ObjectKeyFromObject(pod), pod.UID)).To(Succeed())
	sees(w, pod, func(g Gomega, p *corev1.Pod) {
		g.Expect(p.Labels).To(HaveKeyWithValue(names.LabelLost, "true"))
		g.Expect(p.DeletionGracePeriodSeconds).To(HaveValue(BeEquivalentTo(1)), "its kubelet cannot end it")
	})
	w.Expect(w.api.Delete(w.ctx, pod, client.GracePeriodSeconds(0))).To(Succeed())
	w.gone(pod)
	w.Expect(writer.Lost(w.ctx, client.ObjectKeyFromObject(pod), pod.UID)).To(Succeed(), "it is gone")
}

// While the pod of a lost node cannot end, its Deployment keeps the template of the successor, and the Infra says what to do.
func TestATemplateWaitsForTheEndOfALostPod(t *testing.T) {
	w := newWorld(t)
	w.hosts("c1")
	infra := w.smallest("c1")
	infra.Spec.InfraComponents.Proxy.Replicas = 1 // no template waits for another instance
	w.creates(infra)
	w.settled("c1")
	proxy := sees(w, named(&appsv1.Deployment{}, w.ns, "c1-proxy-deployment"), func(g Gomega, d *appsv1.Deployment) {
		g.Expect(d.Annotations).To(HaveKey(names.AnnotationServed))
	})
	before := proxy.Spec.Template
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "lost", Namespace: w.ns, Labels: before.Labels}}
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "r", UID: "r", Controller: new(true)}}
	pod.Spec.NodeName, pod.Spec.Containers = "n2", []corev1.Container{{Name: "envoy", Image: "example.com/envoy"}}
	w.creates(pod)
	w.Expect((&apply.Writer{Client: w.api}).Lost(w.ctx, client.ObjectKeyFromObject(pod), pod.UID)).To(Succeed())
	sees(w, pod, func(g Gomega, p *corev1.Pod) { g.Expect(p.DeletionTimestamp).NotTo(BeNil()) })

	w.changes(infra, func() { infra.Spec.InfraComponents.Proxy.PriorityClassName = "system-cluster-critical" })
	said := w.says("c1", v1alpha1.ConditionProgressing, metav1.ConditionTrue, "WaitingForLostPod")
	w.Expect(said).To(And(ContainSubstring("pod lost cannot end while its node n2 does not report"), ContainSubstring("kubectl taint nodes n2 node.kubernetes.io/out-of-service=nodeshutdown:NoExecute")))
	sees(w, proxy, func(g Gomega, d *appsv1.Deployment) { g.Expect(d.Spec.Template).To(Equal(before)) })

	w.Expect(w.api.Delete(w.ctx, pod, client.GracePeriodSeconds(0))).To(Succeed())
	sees(w, proxy, func(g Gomega, d *appsv1.Deployment) {
		g.Expect(d.Spec.Template.Spec.PriorityClassName).To(Equal("system-cluster-critical"))
	})
}
