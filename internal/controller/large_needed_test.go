package controller_test

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/metallb"
	"github.com/cldmnky/oooi/internal/nad"
	"github.com/cldmnky/oooi/internal/names"
)

// swells makes an object too large while something is done, and then restores it.
func (w *world) swells(o client.Object, meanwhile func()) {
	w.t.Helper()
	w.Expect(w.api.Get(w.ctx, client.ObjectKeyFromObject(o), o)).To(Succeed())
	was := o.GetLabels()
	w.changes(o, func() {
		labels := swollen()
		for key, value := range was {
			labels[key] = value
		}
		o.SetLabels(labels)
	})
	meanwhile()
	w.changes(o, func() { o.SetLabels(was) })
}

// An object that an Infra is planned from, or has made, is named once if it is too large to be kept; the Infra goes on as it is, and follows
// changes when the object is smaller.
func TestWhatAnInfraNeedsIsToldWhenItIsTooLarge(t *testing.T) {
	w := newWorld(t)
	w.hosts("c1")
	w.puts(w.nodePool("workers", w.ns+"/c1-vlan"))
	infra := w.smallest("c1")
	w.creates(infra)
	deployment := sees(w, named(&appsv1.Deployment{}, w.ns, "c1-proxy-deployment"), there)
	w.silent()
	upstream := func(want []v1alpha1.IPAddress) {
		sees(w, named(&v1alpha1.DNSServer{}, w.ns, "c1-dns"), func(g Gomega, s *v1alpha1.DNSServer) { g.Expect(s.Spec.UpstreamDNS).To(Equal(want)) })
	}
	var before []v1alpha1.IPAddress
	for i, c := range []struct {
		object    client.Object
		called    string
		condition string
	}{
		{named(&hyperv1.HostedCluster{}, w.ns, "c1"), "HostedCluster " + w.ns + "/c1", v1alpha1.ConditionAccepted},
		{named(&hyperv1.NodePool{}, w.ns, "workers"), "NodePool " + w.ns + "/workers", v1alpha1.ConditionAccepted},
		{named(&nad.NetworkAttachmentDefinition{}, w.ns, "c1-vlan"), "NetworkAttachmentDefinition " + w.ns + "/c1-vlan", v1alpha1.ConditionAccepted},
		{named(&corev1.Service{}, w.controlPlane("c1"), "kube-apiserver"), "Service " + w.controlPlane("c1") + "/kube-apiserver", v1alpha1.ConditionEndpointsResolved},
	} {
		after := []v1alpha1.IPAddress{v1alpha1.IPAddress(fmt.Sprintf("192.168.100.%d", 50+i))}
		w.swells(c.object, func() {
			w.Expect(w.says("c1", c.condition, metav1.ConditionFalse, "ObjectTooLarge")).To(HavePrefix(c.called + " is too large to be read: it"))
			w.silent() // it is reported once
			w.changes(infra, func() { infra.Spec.NetworkConfig.DNSServers = after })
			w.silent()
			upstream(before)
		})
		w.says("c1", v1alpha1.ConditionAccepted, metav1.ConditionTrue, "Valid")
		upstream(after)
		before = after
	}
	w.Expect(sees(w, deployment, there).Generation).To(Equal(deployment.Generation))
}

// Many objects that are too large are reported in one order, whatever the cache's is: each other order would be another status, with each
// change there. One Event reports them, and no more of them than fit a condition.
func TestManyThatAreTooLargeAreToldOnce(t *testing.T) {
	w := newWorld(t)
	w.hosts("c1")
	for i := range 20 {
		policy := named(&networkingv1.NetworkPolicy{}, w.controlPlane("c1"), fmt.Sprintf("large-%02d", i))
		policy.Labels, policy.Spec.PolicyTypes = swollen(), []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}
		w.creates(policy)
	}
	w.creates(w.smallest("c1"))
	w.settled("c1")
	w.silent()
	message := w.says("c1", v1alpha1.ConditionEndpointsResolved, metav1.ConditionTrue, "ObjectTooLarge")
	w.Expect(message).To(HavePrefix("NetworkPolicy " + w.controlPlane("c1") + "/large-00 is too large"))
	before := w.passes(&v1alpha1.Infra{})
	written := w.silent()
	service := named(&corev1.Service{}, w.controlPlane("c1"), "kube-apiserver")
	for i := range 5 {
		w.changes(service, func() { service.Annotations = map[string]string{"example.com/pass": fmt.Sprint(i)} })
		w.Eventually(func() int { return w.passes(&v1alpha1.Infra{}) }).Should(BeNumerically(">", before))
		before = w.passes(&v1alpha1.Infra{})
	}
	w.silent()
	w.Expect(w.calls.written()[written:]).NotTo(ContainElement(ContainSubstring("/infras/c1/status")))
	all := &eventsv1.EventList{}
	w.Expect(w.api.List(w.ctx, all, client.InNamespace(w.ns))).To(Succeed())
	var told []string
	for _, e := range all.Items {
		if e.Reason == "ObjectTooLarge" {
			told = append(told, e.Note)
		}
	}
	w.Expect(len(told)).To(BeNumerically("<=", 1), "%q", told)
}

// A workload that somebody has made too large is reported by its child, and stays.
func TestAWorkloadThatIsTooLargeIsTold(t *testing.T) {
	w := newWorld(t)
	w.hosts("c1")
	w.creates(w.smallest("c1"))
	deployment := sees(w, named(&appsv1.Deployment{}, w.ns, names.Workload(names.Proxy, "c1-proxy")), there)
	w.silent()
	accepted := func(status metav1.ConditionStatus, reason, message string) {
		sees(w, named(&v1alpha1.ProxyServer{}, w.ns, "c1-proxy"), func(g Gomega, s *v1alpha1.ProxyServer) {
			g.Expect(s.Status.Conditions).To(ContainElement(And(HaveField("Type", v1alpha1.ConditionAccepted), HaveField("Status", status), HaveField("Reason", reason), HaveField("Message", HavePrefix(message)))))
		})
	}
	w.swells(deployment, func() {
		accepted(metav1.ConditionFalse, "ObjectTooLarge", "Deployment "+w.ns+"/"+deployment.Name+" is too large to be read: it takes ")
		w.silent()
	})
	accepted(metav1.ConditionTrue, "Valid", "")
}

// A bridge that is too large, or has such objects, is frozen, and its hosted cluster stays; DPUs that are too large are named.
func TestWhatABridgeNeedsIsToldWhenItIsTooLarge(t *testing.T) {
	w := newDPUWorld(t)
	w.bridged()
	hc := sees(w.world, named(&hyperv1.HostedCluster{}, w.ns, "b1"), there)
	w.hyperShift("b1", "first")
	w.saysOf("b1", dpuv1.ConditionCSRAutoApprovalActive, metav1.ConditionTrue, "Watching")
	for _, c := range []struct {
		object            client.Object
		condition, called string
	}{
		{named(&dpuv1.DPUHCPBridge{}, w.ns, "b1"), dpuv1.ConditionReady, "DPUHCPBridge " + w.ns + "/b1"},
		{named(&hyperv1.NodePool{}, w.ns, "b1"), dpuv1.ConditionReady, "NodePool " + w.ns + "/b1"},
		{named(&metallb.L2Advertisement{}, "metallb-system", names.Qualified(w.ns, "b1")), dpuv1.ConditionMetalLBConfigured, "L2Advertisement metallb-system/" + names.Qualified(w.ns, "b1")},
	} {
		w.swells(c.object, func() {
			w.Expect(w.saysOf("b1", c.condition, metav1.ConditionFalse, "ObjectTooLarge")).To(HavePrefix(c.called + " is too large to be read: its metadata takes "))
		})
		sees(w.world, named(&dpuv1.DPUHCPBridge{}, w.ns, "b1"), func(g Gomega, b *dpuv1.DPUHCPBridge) {
			g.Expect(b.Status.Conditions).NotTo(ContainElement(HaveField("Reason", "ObjectTooLarge")))
		})
	}
	dpu := w.dpu("d", "d1")
	w.creates(dpu)
	w.swells(dpu, func() {
		w.Expect(w.saysOf("b1", dpuv1.ConditionCSRAutoApprovalActive, metav1.ConditionTrue, "ObjectTooLarge")).To(HavePrefix("DPUs that are too large to be read: " + w.ns + "/d; "))
	})
	w.saysOf("b1", dpuv1.ConditionCSRAutoApprovalActive, metav1.ConditionTrue, "Watching")
	w.Expect(sees(w.world, hc, there).UID).To(Equal(hc.UID))
}
