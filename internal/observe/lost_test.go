package observe

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/component"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/plan/workload"
)

// What says that a proxy's pod is lost: how long it has been there, whether its node reports, and what the Infra's own DNS instances say of it.
func TestWhatTellsOfALostPodIsRead(t *testing.T) {
	g, s := NewWithT(t), newStage(t, "tenant")
	cache := s.Reader.(client.WithWatch)
	proxies, _ := component.OfKind("ProxyServer")
	infra := &v1alpha1.Infra{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant", Name: "own", UID: "u1"}}
	owned := func(o client.Object, name string) client.Object {
		o.SetNamespace("tenant")
		o.SetName(name)
		o.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(infra, v1alpha1.GroupVersion.WithKind("Infra"))})
		return o
	}
	dns := owned(&v1alpha1.DNSServer{}, "own-dns").(*v1alpha1.DNSServer)
	dns.Spec.NetworkConfig.ServerIP, dns.Spec.NetworkConfig.AdditionalServerIPs = "192.168.100.2", []v1alpha1.IPAddress{"192.168.100.5"}
	says := []v1alpha1.Health{{IP: "192.168.100.4", State: v1alpha1.HealthLost}}
	dns.Status.Instances = []v1alpha1.Instance{{IP: "192.168.100.5", Health: says}, {IP: "192.168.100.99", Health: says}}
	proxy := owned(&v1alpha1.ProxyServer{}, "own-proxy")
	silent := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "silent"}}
	silent.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, LastTransitionTime: metav1.NewTime(time.Now().Add(-workload.UnreachableSeconds * time.Second))}}
	fresh := silent.DeepCopy()
	fresh.Name, fresh.Status.Conditions[0].LastTransitionTime = "fresh", metav1.Now()
	for _, o := range []client.Object{infra, dns, proxy, silent, fresh} {
		g.Expect(cache.Create(t.Context(), o)).To(Succeed())
	}
	reports := fresh.DeepCopy()
	reports.Name, reports.ResourceVersion, reports.Status.Conditions[0].Status = "reports", "", corev1.ConditionTrue
	g.Expect(cache.Create(t.Context(), reports)).To(Succeed())
	for number, node := range []string{"silent", "reports"} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant", Name: "dns-on-" + node, Labels: map[string]string{names.LabelApp: names.DNS, names.LabelInstance: "own-dns"}}}
		if pod.Spec.NodeName = node; number > 0 {
			pod.Labels[names.LabelOrdinal] = "1"
		}
		g.Expect(cache.Create(t.Context(), pod)).To(Succeed())
	}
	for name, node := range map[string]string{"a": "silent", "b": "fresh", "c": "gone", "d": "", "e": "silent", "f": "silent", "g": "reports", "h": "fresh", "i": "fresh"} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant", Name: name, UID: types.UID("uid-" + name)}}
		pod.Labels = map[string]string{names.LabelApp: names.Proxy, names.LabelInstance: "own-proxy"}
		pod.Spec.NodeName, pod.CreationTimestamp = node, metav1.NewTime(time.Now().Add(-time.Hour))
		if name == "f" { // whose labels somebody else wrote
			pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "n", UID: "n", Controller: new(true)}}
		} else {
			pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "r", UID: "r", Controller: new(true)}}
		}
		if name == "b" || name == "h" || name == "i" {
			pod.CreationTimestamp = metav1.Now()
		}
		if since := map[string]time.Duration{"h": settles, "i": settles / 2}[name]; since > 0 {
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(time.Now().Add(-since))}}
		}
		ends := name == "e" || name == "g" // already
		if ends {
			pod.Finalizers = []string{"example.com/kept"}
		}
		g.Expect(cache.Create(t.Context(), pod)).To(Succeed())
		if ends {
			g.Expect(cache.Delete(t.Context(), pod)).To(Succeed())
		}
	}
	seen, err := s.Child(t.Context(), proxies, types.NamespacedName{Namespace: "tenant", Name: "own-proxy"})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(seen.Pods).To(ConsistOf(
		workload.RunningPod{NamespacedName: types.NamespacedName{Namespace: "tenant", Name: "a"}, UID: "uid-a", Settled: true, Stranded: true},
		workload.RunningPod{NamespacedName: types.NamespacedName{Namespace: "tenant", Name: "b"}, UID: "uid-b"},
		workload.RunningPod{NamespacedName: types.NamespacedName{Namespace: "tenant", Name: "c"}, UID: "uid-c", Settled: true},
		workload.RunningPod{NamespacedName: types.NamespacedName{Namespace: "tenant", Name: "h"}, UID: "uid-h", Settled: true},
		workload.RunningPod{NamespacedName: types.NamespacedName{Namespace: "tenant", Name: "i"}, UID: "uid-i"},
	))
	g.Expect(seen.Now.Ending).To(Equal(workload.EndingPod{Name: "e", Node: "silent"}), "and not the one whose node ends it")
	g.Expect(seen.Lookouts).To(Equal([]workload.Lookout{{}, {Node: "reports", Said: v1alpha1.Instance{IP: "192.168.100.5", Health: says}}}), "one for each address that is wanted")

	lost := &corev1.Pod{}
	g.Expect(cache.Get(t.Context(), types.NamespacedName{Namespace: "tenant", Name: "g"}, lost)).To(Succeed())
	lost.Labels[names.LabelLost] = "true"
	g.Expect(cache.Update(t.Context(), lost)).To(Succeed())
	stranger := dns.DeepCopy()
	stranger.OwnerReferences = nil
	g.Expect(cache.Update(t.Context(), stranger)).To(Succeed())
	seen, err = s.Child(t.Context(), proxies, types.NamespacedName{Namespace: "tenant", Name: "own-proxy"})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(seen.Now.Ending.Name).To(Equal("g"), "Kubernetes takes its node for sound a while longer")
	g.Expect(seen.Lookouts).To(BeEmpty(), "of a DNSServer by hand")
}

// A pod on a lost node is Ready until Kubernetes notices.
func TestTheNodeOfAnInstanceIsThatOfThePodThatStays(t *testing.T) {
	on := func(node string) corev1.Pod {
		p := corev1.Pod{Spec: corev1.PodSpec{NodeName: node}}
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		return p
	}
	lost, stays := on("lost"), on("stays")
	lost.DeletionTimestamp = new(metav1.Now())
	NewWithT(t).Expect(nodeOf([]corev1.Pod{lost, stays})).To(Equal("stays"))
	NewWithT(t).Expect(nodeOf([]corev1.Pod{lost})).To(BeEmpty())
}
