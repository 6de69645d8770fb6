package controller_test

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/names"
)

// The kubelet of a lost node ends no pod, and nobody else may. The Infra reports that, keeps nothing elsewhere, and is deleted all the same.
func TestAnInfraOnALostNodeSaysSoAndEnds(t *testing.T) {
	w := newWorld(t)
	w.hosts("c1")
	w.creates(w.smallest("c1"))
	w.settled("c1")
	lease := w.leases("c1", "192.168.100.50")
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: w.ns + "-lost"}}
	pod := w.runsDHCP("c1", node.Name)
	w.creates(node)
	w.reports(node, func() {
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown}}
	})
	t.Cleanup(func() { w.Expect(w.api.Delete(context.Background(), node)).To(Succeed()) })
	policies := func() int {
		all := &networkingv1.NetworkPolicyList{}
		w.Expect(w.api.List(w.ctx, all, client.InNamespace(w.controlPlane("c1")), client.MatchingLabels{names.LabelInfra: "c1"})).To(Succeed())
		return len(all.Items)
	}
	w.Expect(policies()).NotTo(BeZero())

	infra := named(&v1alpha1.Infra{}, w.ns, "c1")
	w.Expect(w.api.Delete(w.ctx, infra)).To(Succeed())
	said := w.says("c1", v1alpha1.ConditionDegraded, metav1.ConditionTrue, "NodeLost")
	w.Expect(said).To(And(ContainSubstring("c1-dhcp-deployment-0"), ContainSubstring(node.Name)))
	w.Eventually(policies).Should(BeZero(), "what lies in other namespaces waits for a lost node")
	w.Expect(w.api.Get(w.ctx, client.ObjectKeyFromObject(lease), lease)).To(Succeed(), "the leases are forgotten while the pod may write them")
	w.gone(named(&v1alpha1.ProxyServer{}, w.ns, "c1-proxy"))

	w.stop()
	w.ahead = 11 * time.Minute
	w.start()
	w.gone(infra)
	w.gone(lease)
	w.gone(named(&v1alpha1.DHCPServer{}, w.ns, "c1-dhcp"))
	w.Eventually(func(g Gomega) {
		all := &eventsv1.EventList{}
		g.Expect(w.api.List(w.ctx, all, client.InNamespace(w.ns))).To(Succeed())
		g.Expect(all.Items).To(ContainElement(And(HaveField("Reason", "DHCPPodMayStillRun"), HaveField("Note", ContainSubstring(node.Name)))))
	}).Should(Succeed())

	again := w.smallest("c1") // its StatefulSet waits for the old pod
	w.creates(again)
	sees(w, named(&v1alpha1.DHCPServer{}, w.ns, "c1-dhcp"), func(g Gomega, s *v1alpha1.DHCPServer) {
		ready := meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionReady)
		g.Expect(ready).To(HaveField("Message", ContainSubstring("is still being deleted")))
	})
	w.Expect(w.api.Delete(w.ctx, pod, client.GracePeriodSeconds(0))).To(Succeed())
	sees(w, named(&appsv1.StatefulSet{}, w.ns, "c1-dhcp-deployment"), func(g Gomega, s *appsv1.StatefulSet) { g.Expect(s.DeletionTimestamp).To(BeNil()) })
}

// If a pod stays, by a finalizer or on a lost node, the manager checks it seldom, and for ten minutes only.
func TestAnInfraThatCannotEndIsLookedAtSeldom(t *testing.T) {
	w := newWorld(t)
	w.hosts("c1")
	w.creates(w.smallest("c1"))
	w.settled("c1")
	pod := w.runsDHCP("c1", w.ns+"-gone")
	w.changes(pod, func() { pod.Finalizers = []string{"example.com/never"} })
	t.Cleanup(func() {
		pod.Finalizers = nil
		w.Expect(client.IgnoreNotFound(w.api.Patch(context.Background(), pod, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))))).To(Succeed())
		w.Expect(client.IgnoreNotFound(w.api.Delete(context.Background(), pod, client.GracePeriodSeconds(0)))).To(Succeed())
	})
	infra := named(&v1alpha1.Infra{}, w.ns, "c1")
	w.Expect(w.api.Delete(w.ctx, infra)).To(Succeed())
	w.stop()
	w.ahead = 4 * time.Minute
	w.start()
	w.says("c1", v1alpha1.ConditionDegraded, metav1.ConditionTrue, "NodeLost")
	w.silent()
	before := w.passes(infra)
	w.Consistently(func() int { return w.passes(infra) }, 8*time.Second, time.Second).Should(BeNumerically("<=", before+2))

	w.stop()
	w.ahead = 11 * time.Minute
	w.start()
	w.gone(infra)
}

func (w *world) leases(infra, ip string) *v1alpha1.DHCPLease {
	w.t.Helper()
	lease := &v1alpha1.DHCPLease{
		ObjectMeta: metav1.ObjectMeta{Name: infra + "-dhcp-" + ip, Namespace: w.ns, Labels: map[string]string{names.LabelInfra: infra, names.LabelInfraNamespace: w.ns}},
		Spec: v1alpha1.DHCPLeaseSpec{IP: v1alpha1.IPv4Address(ip), MAC: "52:54:00:00:00:01", ServerRef: v1alpha1.ServerReference{Name: v1alpha1.ObjectName(infra + "-dhcp")}, State: v1alpha1.LeaseBound,
			DurableUntilTime: metav1.NewMicroTime(time.Now().Add(time.Hour))},
	}
	w.creates(lease)
	return lease
}

// runsDHCP makes the pod of an Infra's DHCP server, as the StatefulSet's controller and the scheduler do.
func (w *world) runsDHCP(infra, node string) *corev1.Pod {
	w.t.Helper()
	set := sees(w, named(&appsv1.StatefulSet{}, w.ns, names.Workload(names.DHCP, names.DHCPServer(infra))), there)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: set.Name + "-0", Namespace: w.ns, Labels: set.Spec.Template.Labels,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("StatefulSet"))}},
		Spec: corev1.PodSpec{NodeName: node, TerminationGracePeriodSeconds: ptr.To[int64](1), Containers: []corev1.Container{{Name: "dhcp", Image: "example.com/oooi:1"}}},
	}
	w.creates(pod)
	return pod
}
