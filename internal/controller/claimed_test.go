package controller_test

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/endpoint"
	"github.com/cldmnky/oooi/internal/nad"
	"github.com/cldmnky/oooi/internal/names"
)

// squatted is the victim's hosted cluster: prod-c1 of namespace w1, with control-plane namespace w1-prod-c1.
const squatted = "prod-c1"

// squatter has namespace w1-prod, whose HostedCluster c1 leads to the same control-plane namespace.
type squatter struct {
	lodger
	vlan *nad.NetworkAttachmentDefinition
}

func newSquatter(t *testing.T) squatter {
	w := newWorld(t)
	w.hosts(squatted)
	victim := sees(w, named(&hyperv1.HostedCluster{}, w.ns, squatted), there)
	s := squatter{lodger: lodger{world: w, infra: w.smallest("c1"), hc: victim.DeepCopy()}, vlan: sees(w, named(&nad.NetworkAttachmentDefinition{}, w.ns, squatted+"-vlan"), there)}
	s.infra.Namespace = w.ns + "-prod"
	for o, name := range map[client.Object]string{s.hc: "c1", s.vlan: "c1-vlan"} {
		withoutIdentity(o)
		o.SetNamespace(s.infra.Namespace)
		o.SetName(name)
	}
	s.vlan.Spec.Config = `{"cniVersion":"0.3.1","name":"vlan","type":"bridge","bridge":"` + s.infra.Namespace + `"}`
	t.Cleanup(func() { // the next test on this API server would see them written
		for _, o := range []client.Object{s.infra, s.hc} {
			w.Expect(client.IgnoreNotFound(w.api.Delete(context.Background(), o))).To(Succeed())
			w.Eventually(func() error { return w.api.Get(context.Background(), client.ObjectKeyFromObject(o), o) }).Should(MatchError(apierrors.IsNotFound, "it is gone"))
		}
	})
	w.Eventually(time.Now).Should(BeTemporally(">=", victim.CreationTimestamp.Add(time.Second)), "the API server tells seconds apart")
	w.creates(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.infra.Namespace}}, s.vlan, s.hc)
	s.hc.Status = victim.Status
	w.Expect(w.api.Status().Update(w.ctx, s.hc)).To(Succeed())
	return s
}

// makesControlPlane makes a HostedControlPlane, as HyperShift does, in a namespace that may exist.
func (w *world) makesControlPlane(hc *hyperv1.HostedCluster, namespace string) {
	w.t.Helper()
	made := &hyperv1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: hc.Name, Annotations: map[string]string{names.AnnotationHostedCluster: hc.Namespace + "/" + hc.Name},
	}}
	made.Spec = hyperv1.HostedControlPlaneSpec{
		ReleaseImage: hc.Spec.Release.Image, Platform: hc.Spec.Platform, DNS: hc.Spec.DNS, Networking: hc.Spec.Networking, Etcd: hc.Spec.Etcd, Services: hc.Spec.Services,
		PullSecret: hc.Spec.PullSecret, InfraID: hc.Spec.InfraID,
	}
	w.creates(made)
}

// A later HostedCluster's Infra is refused, and nothing is made in the shared control-plane namespace, until the older one is gone.
func TestAnInfraGetsNoNamespaceOfAnOlderHostedCluster(t *testing.T) {
	s := newSquatter(t)
	s.creates(s.infra)
	s.refused()
	s.silent()
	s.Expect(s.has(s.controlPlane(squatted))).To(BeEmpty())

	victim := sees(s.world, named(&hyperv1.HostedCluster{}, s.ns, squatted), there)
	again := victim.DeepCopy()
	s.Expect(s.api.Delete(s.ctx, victim)).To(Succeed())
	s.Expect(s.api.Delete(s.ctx, named(&hyperv1.HostedControlPlane{}, s.controlPlane(squatted), squatted))).To(Succeed())
	s.makesControlPlane(s.hc, s.controlPlane(squatted))
	s.Eventually(func() []string { return s.has(s.controlPlane(squatted)) }).ShouldNot(BeEmpty(), "it is heard that the older one is gone")

	status := again.Status
	withoutIdentity(again)
	s.creates(again, s.smallest(squatted))
	again.Status = status
	s.Expect(s.api.Status().Update(s.ctx, again)).To(Succeed())
	s.says(squatted, v1alpha1.ConditionAccepted, metav1.ConditionFalse, "RefNotPermitted")
	s.Expect(s.api.Delete(s.ctx, s.hc)).To(Succeed())
	s.makesControlPlane(again, s.controlPlane(squatted))
	s.says(squatted, v1alpha1.ConditionAccepted, metav1.ConditionTrue, "Valid")
}

// A later HostedCluster does not block the older one, even with a control plane there, and gets nothing there.
func TestALaterHostedClusterHoldsNobodyBack(t *testing.T) {
	s := newSquatter(t)
	s.creates(s.smallest(squatted))
	s.settled(squatted)
	s.makesControlPlane(s.hc, s.controlPlane(squatted)) // beside the existing one
	s.creates(s.infra)
	s.refused()
	s.silent()
	s.Expect(s.has(s.controlPlane(squatted))).To(BeEmpty())
	infra := named(&v1alpha1.Infra{}, s.ns, squatted)
	s.changes(infra, func() { infra.Spec.InfraComponents.DNS.Enabled = new(bool) })
	s.gone(named(&v1alpha1.DNSServer{}, s.ns, names.DNSServer(squatted)))
	s.silent()
	s.Expect(meta.IsStatusConditionTrue(sees(s.world, infra, there).Status.Conditions, v1alpha1.ConditionAccepted)).To(BeTrue())
}

// HostedCluster db of namespace team stands for namespace team-db, which may be somebody else's: until HyperShift puts a control plane there,
// nothing in it is the Infra's, not even a network.
func TestAnInfraGetsNoNamespaceThatIsNoControlPlane(t *testing.T) {
	w := newWorld(t)
	w.hosts("c1")
	hc := sees(w, named(&hyperv1.HostedCluster{}, w.ns, "c1"), there)
	w.isSomebodys("c1")
	network := sees(w, named(&nad.NetworkAttachmentDefinition{}, w.ns, "c1-vlan"), there).DeepCopy()
	withoutIdentity(network)
	network.Namespace, network.Name = w.controlPlane("c1"), "theirs"
	w.creates(network)
	infra := w.smallest("c1")
	infra.Spec.NetworkConfig.NetworkAttachmentDefinition, infra.Spec.NetworkConfig.NetworkAttachmentNamespace = "theirs", v1alpha1.ObjectName(network.Namespace)
	infra.Spec.ExtraEndpoints = []v1alpha1.ExtraEndpoint{{
		Name: "theirs", Hostnames: []v1alpha1.DNSNameOrWildcard{"theirs.example.com"}, Port: 443, Protocol: v1alpha1.ProtocolTLS, Target: v1alpha1.EndpointTarget{Service: "ignition-server-proxy", Namespace: v1alpha1.ObjectName(network.Namespace), Port: 443},
	}}
	w.creates(infra)
	w.Expect(w.says("c1", v1alpha1.ConditionAccepted, metav1.ConditionFalse, "RefNotPermitted")).To(ContainSubstring("namespace " + network.Namespace + " has no control plane of HostedCluster " + w.ns + "/c1"))
	w.silent()
	own := w.calls.touching(network.Namespace)
	w.Expect(own).To(BeEmpty())
	w.gone(named(&v1alpha1.ProxyServer{}, w.ns, names.ProxyServer("c1")))
	w.Expect(sees(w, infra, there).Status.Endpoints).To(BeEmpty())

	w.makesControlPlane(hc, network.Namespace)
	w.says("c1", v1alpha1.ConditionAccepted, metav1.ConditionTrue, "Valid")
	sees(w, named(&v1alpha1.ProxyServer{}, w.ns, names.ProxyServer("c1")), there)
}

// isSomebodys puts somebody else's namespace where HyperShift would put the control plane of a cluster.
func (w *world) isSomebodys(cluster string) {
	w.t.Helper()
	w.Expect(w.api.Delete(w.ctx, named(&hyperv1.HostedControlPlane{}, w.controlPlane(cluster), cluster))).To(Succeed())
	namespace := named(&corev1.Namespace{}, "", w.controlPlane(cluster))
	w.changes(namespace, func() { delete(namespace.Labels, endpoint.ControlPlaneLabel) })
}

// What an older release made for an Infra in such a namespace is removed.
func TestWhatAnInfraHasInANamespaceThatIsNoControlPlaneGoes(t *testing.T) {
	w := newWorld(t)
	w.hosts("c1")
	w.creates(w.smallest("c1"))
	w.settled("c1")
	l := lodger{world: w, infra: w.smallest("c1")}
	w.Expect(l.has(w.controlPlane("c1"))).NotTo(BeEmpty())
	w.isSomebodys("c1")
	w.says("c1", v1alpha1.ConditionAccepted, metav1.ConditionFalse, "RefNotPermitted")
	w.Eventually(func() []string { return l.has(w.controlPlane("c1")) }).Should(BeEmpty())
	sees(w, named(&v1alpha1.ProxyServer{}, w.ns, names.ProxyServer("c1")), there)
}

// If HyperShift's label on the namespace shows that the control plane is about to come, the Infra keeps its place on the VLAN; if the
// namespace is somebody else's, without the label, the Infra has no place.
func TestWhoWaitsForHisControlPlaneKeepsHisPlace(t *testing.T) {
	for name, marked := range map[string]bool{"a namespace that HyperShift has marked": true, "somebody's namespace": false} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.hosts("c1")
			w.hosts("c2")
			hc := sees(w, named(&hyperv1.HostedCluster{}, w.ns, "c1"), there)
			w.isSomebodys("c1")
			reason := "RefNotPermitted"
			if marked {
				namespace := named(&corev1.Namespace{}, "", w.controlPlane("c1"))
				w.changes(namespace, func() { namespace.Labels[endpoint.ControlPlaneLabel] = "true" })
				reason = "WaitingForControlPlane"
			}
			w.creates(w.smallest("c1"))
			w.says("c1", v1alpha1.ConditionAccepted, metav1.ConditionFalse, reason)
			newcomer := w.smallest("c2")
			newcomer.Spec.NetworkConfig.NetworkAttachmentDefinition = "c1-vlan"
			w.creates(newcomer)
			if marked {
				w.says("c2", v1alpha1.ConditionAccepted, metav1.ConditionFalse, "VLANInUse")
			} else {
				w.says("c2", v1alpha1.ConditionAccepted, metav1.ConditionTrue, "Valid")
			}
			w.silent()
			w.Expect(w.calls.touching(w.controlPlane("c1"))).To(BeEmpty(), "nothing is read or made there while it waits")

			w.makesControlPlane(hc, w.controlPlane("c1"))
			if marked {
				w.says("c1", v1alpha1.ConditionAccepted, metav1.ConditionTrue, "Valid")
			} else {
				w.says("c1", v1alpha1.ConditionAccepted, metav1.ConditionFalse, "VLANInUse")
			}
		})
	}
}
