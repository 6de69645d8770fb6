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
	"github.com/cldmnky/oooi/internal/nad"
	"github.com/cldmnky/oooi/internal/names"
)

// squatted is the victim's hosted cluster: prod-c1 of namespace w1, whose control plane is in w1-prod-c1.
const squatted = "prod-c1"

// squatter has a namespace, w1-prod, whose HostedCluster c1 gives the same.
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

// makesControlPlanes as HyperShift does: the later one's beside that which is there.
func (s squatter) makesControlPlanes() {
	s.t.Helper()
	for _, hc := range []*hyperv1.HostedCluster{s.hc, sees(s.world, named(&hyperv1.HostedCluster{}, s.ns, squatted), there)} {
		made := &hyperv1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{
			Namespace: s.controlPlane(squatted), Name: hc.Name, Annotations: map[string]string{names.AnnotationHostedCluster: hc.Namespace + "/" + hc.Name},
		}}
		made.Spec = hyperv1.HostedControlPlaneSpec{
			ReleaseImage: hc.Spec.Release.Image, Platform: hc.Spec.Platform, DNS: hc.Spec.DNS, Networking: hc.Spec.Networking, Etcd: hc.Spec.Etcd, Services: hc.Spec.Services,
			PullSecret: hc.Spec.PullSecret, InfraID: hc.Spec.InfraID,
		}
		s.creates(made)
	}
}

// Who comes later waits before anything is made where his control plane would be, until the other is gone.
func TestAnInfraGetsNoNamespaceOfAnOlderHostedCluster(t *testing.T) {
	s := newSquatter(t)
	s.creates(s.infra)
	s.refused()
	s.silent()
	s.Expect(s.has(s.controlPlane(squatted))).To(BeEmpty())

	victim := sees(s.world, named(&hyperv1.HostedCluster{}, s.ns, squatted), there)
	again := victim.DeepCopy()
	s.Expect(s.api.Delete(s.ctx, victim)).To(Succeed())
	s.Eventually(func() []string { return s.has(s.controlPlane(squatted)) }).ShouldNot(BeEmpty(), "it is heard that the older one is gone")

	status := again.Status
	withoutIdentity(again)
	s.creates(again, s.smallest(squatted))
	again.Status = status
	s.Expect(s.api.Status().Update(s.ctx, again)).To(Succeed())
	s.says(squatted, v1alpha1.ConditionAccepted, metav1.ConditionFalse, "RefNotPermitted")
	s.Expect(s.api.Delete(s.ctx, s.hc)).To(Succeed())
	s.says(squatted, v1alpha1.ConditionAccepted, metav1.ConditionTrue, "Valid")
}

// Who comes later holds nobody back, with a control plane there, too, and gets nothing there.
func TestALaterHostedClusterHoldsNobodyBack(t *testing.T) {
	s := newSquatter(t)
	s.creates(s.smallest(squatted))
	s.settled(squatted)
	s.makesControlPlanes()
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
