package controller_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/boot"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/status"
)

// boots are the series of an Infra that the manager exports, by stage.
func (w *world) boots(infra string) map[string]*dto.Histogram {
	families, err := ctrlmetrics.Registry.(prometheus.Gatherer).Gather()
	w.Expect(err).NotTo(HaveOccurred())
	all := map[string]*dto.Histogram{}
	for _, f := range families {
		for _, m := range f.Metric {
			if f.GetName() == "oooi_boot_seconds" && m.Label[0].GetValue() == w.ns+"/"+infra {
				all[m.Label[1].GetValue()] = m.Histogram
			}
		}
	}
	return all
}

// getsAddress is what DHCP stores of a worker that got an address, and what a proxy saw of it.
func (w *world) getsAddress(ip v1alpha1.IPv4Address, since time.Time) *v1alpha1.DHCPLease {
	w.t.Helper()
	const mac = "52:54:00:00:00:20"
	l := &v1alpha1.DHCPLease{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "c1-dhcp-" + string(ip), Labels: map[string]string{names.LabelInfra: "c1"}},
		Spec: v1alpha1.DHCPLeaseSpec{IP: ip, MAC: mac, ServerRef: v1alpha1.ServerReference{Name: "c1-dhcp"}, State: v1alpha1.LeaseBound,
			DurableUntilTime: metav1.NewMicroTime(since.Add(time.Hour)), LastTransitionTime: &metav1.Time{Time: since}},
	}
	w.creates(l)
	l.Status = v1alpha1.DHCPLeaseStatus{Client: mac, Stages: []v1alpha1.Stage{{Name: v1alpha1.StageAPIHello, FirstTime: metav1.NowMicro(), Result: v1alpha1.StageForwarded}}}
	w.Expect(w.api.Status().Update(w.ctx, l)).To(Succeed())
	return l
}

// The manager sees in the hosted cluster that a Node is Ready, and tells it where the worker's other stages are. It needs no right for it that its
// daemons have not (internal/rbac).
func TestABootIsTimedUntilItsNodeIsReady(t *testing.T) {
	g := withGuest(t)
	g.grants()
	g.publishes(v1alpha1.AppsNodePort)
	g.apps(metav1.ConditionFalse, "RouterNotFound")
	g.Expect(g.boots("c1")).To(HaveKeyWithValue(boot.LeaseToReady, HaveField("GetSampleCount()", BeEquivalentTo(0))), "an increase from 0 is one")
	since := time.Now().Add(-time.Minute).Truncate(time.Second)
	lease := g.getsAddress("192.168.100.120", since)
	before, watched := lease.ResourceVersion, time.Now()
	g.Eventually(time.Now).Should(BeTemporally(">", watched.Truncate(time.Second).Add(time.Second))) // creation times have whole seconds

	g.worker("a", "192.168.100.120")
	g.worker("b", "192.168.100.121") // it has no lease
	node := named(&corev1.Node{}, "", g.ns+"a")
	begun := time.Now()
	for _, is := range []corev1.ConditionStatus{corev1.ConditionFalse, corev1.ConditionTrue} {
		g.Expect(g.inside.Get(g.ctx, client.ObjectKeyFromObject(node), node)).To(Succeed())
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: is}}
		g.Expect(g.inside.Status().Update(g.ctx, node)).To(Succeed())
	}
	sees(g.world, lease, func(e Gomega, l *v1alpha1.DHCPLease) {
		e.Expect(l.Stages()).To(And(HaveLen(2), HaveKey(v1alpha1.StageAPIHello)))
		e.Expect(l.Stages()[v1alpha1.StageNodeReady].FirstTime.Time).To(BeTemporally("~", begun, 20*time.Second))
	})
	stale := lease.DeepCopy()
	stale.ResourceVersion = before
	g.Expect((&status.Writer{Client: g.api}).Stage(g.ctx, stale, v1alpha1.Stage{Name: v1alpha1.StageNameAsked, FirstTime: metav1.NowMicro()})).To(MatchError(apierrors.IsConflict, "a daemon has written"))
	g.Eventually(func() uint64 { return g.boots("c1")[boot.LeaseToReady].GetSampleCount() }).Should(BeEquivalentTo(1))
	g.Expect(g.boots("c1")[boot.LeaseToReady].GetSampleSum()).To(BeNumerically("~", time.Since(since).Seconds(), 20))

	infra := named(&v1alpha1.Infra{}, g.ns, "c1")
	g.changes(infra, func() { infra.Spec.AppsIngress.Enabled = false })
	g.Eventually(func() map[string]*dto.Histogram { return g.boots("c1") }).Should(BeEmpty(), "nobody watches it")
}
