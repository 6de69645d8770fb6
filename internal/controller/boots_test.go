package controller_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/boot"
	"github.com/cldmnky/oooi/internal/clusterapi"
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

func (w *world) counts(infra string, boots int) {
	w.t.Helper()
	w.Eventually(func() map[string]*dto.Histogram { return w.boots(infra) }).Should(HaveKeyWithValue(boot.LeaseToReady, HaveField("GetSampleCount()", BeEquivalentTo(boots))))
}

// getsAddress is what DHCP of c1 stores in a namespace of a virtual machine that got an address, and what a proxy saw of it.
func (w *world) getsAddress(namespace string, ip v1alpha1.IPv4Address, vm v1alpha1.VMReference, since time.Time) *v1alpha1.DHCPLease {
	w.t.Helper()
	const mac = "52:54:00:00:00:20"
	vm.UID = "of the virtual machine"
	l := &v1alpha1.DHCPLease{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "c1-dhcp-" + string(ip), Labels: map[string]string{names.LabelInfra: "c1"}},
		Spec: v1alpha1.DHCPLeaseSpec{IP: ip, MAC: mac, ServerRef: v1alpha1.ServerReference{Name: "c1-dhcp"}, State: v1alpha1.LeaseBound, VMRef: &vm,
			DurableUntilTime: metav1.NewMicroTime(since.Add(time.Hour)), LastTransitionTime: &metav1.Time{Time: since}},
	}
	w.creates(l)
	l.Status = v1alpha1.DHCPLeaseStatus{Client: mac, Stages: []v1alpha1.Stage{{Name: v1alpha1.StageAPIHello, FirstTime: metav1.NowMicro(), Result: v1alpha1.StageForwarded}}}
	w.Expect(w.api.Status().Update(w.ctx, l)).To(Succeed())
	return l
}

// machine makes a Machine as HyperShift's NodePool does, and says which virtual machine it runs on.
func (w *world) machine(cluster, vm string) (*unstructured.Unstructured, v1alpha1.VMReference) {
	w.t.Helper()
	at := w.controlPlane(cluster)
	m := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"clusterName": cluster, "bootstrap": map[string]any{"dataSecretName": "user-data"},
		"infrastructureRef": map[string]any{"apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha1", "kind": "KubevirtMachine", "name": vm, "namespace": at},
	}}}
	m.SetGroupVersionKind(clusterapi.GroupVersion.WithKind("Machine"))
	named(m, at, "m-"+vm)
	w.creates(m)
	return m, v1alpha1.VMReference{Namespace: v1alpha1.ObjectName(at), Name: v1alpha1.ObjectName(vm)}
}

// joins has Cluster API find a Machine's Node, and then whether it is Ready.
func (w *world) joins(m *unstructured.Unstructured, node, since time.Time, ready ...string) {
	w.t.Helper()
	for _, is := range ready {
		w.reports(m, func() {
			m.Object["status"] = map[string]any{
				"phase": "Running", "lastUpdated": node.UTC().Format(time.RFC3339), "nodeRef": map[string]any{"apiVersion": "v1", "kind": "Node", "name": m.GetName()},
				"conditions": []any{map[string]any{"type": "NodeHealthy", "status": is, "lastTransitionTime": since.UTC().Format(time.RFC3339)}},
			}
		})
	}
}

// became is when a lease says that its Node became Ready.
func became(l *v1alpha1.DHCPLease) time.Time {
	return l.Stages()[v1alpha1.StageNodeReady].FirstTime.Time
}

func TestABootIsTimedUntilItsNodeIsReady(t *testing.T) {
	w := newWorld(t)
	w.hosts("c1")
	w.hosts("c2")
	w.creates(w.smallest("c1"), w.smallest("c2"))
	w.counts("c1", 0) // an increase from 0 is one
	since := time.Now().Add(-time.Minute).Truncate(time.Second)
	ready := since.Add(40 * time.Second)
	machine, vm := w.machine("c1", "vm")
	lease := w.getsAddress(w.ns, "192.168.100.120", vm, since)
	before := lease.ResourceVersion
	twin, _ := w.machine("c2", "vm")
	other, otherVM := w.machine("c1", "other")
	otherLease := w.getsAddress(w.ns, "192.168.100.121", otherVM, since)

	w.joins(twin, since.Add(10*time.Second), since.Add(20*time.Second), "True") // of another control plane, with the same name
	w.joins(other, since.Add(10*time.Second), ready, "False", "True")
	sees(w, otherLease, func(e Gomega, l *v1alpha1.DHCPLease) { e.Expect(became(l)).To(BeTemporally("==", ready)) })
	w.counts("c1", 1)
	sees(w, lease, func(e Gomega, l *v1alpha1.DHCPLease) { e.Expect(l.Stages()).To(HaveLen(1)) })
	w.joins(machine, since.Add(10*time.Second), ready, "True")
	sees(w, lease, func(e Gomega, l *v1alpha1.DHCPLease) {
		e.Expect(l.Stages()).To(And(HaveLen(2), HaveKey(v1alpha1.StageAPIHello)))
		e.Expect(became(l)).To(BeTemporally("==", ready))
	})
	stale := lease.DeepCopy()
	stale.ResourceVersion = before
	w.Expect((&status.Writer{Client: w.api}).Stage(w.ctx, stale, v1alpha1.Stage{Name: v1alpha1.StageNameAsked, FirstTime: metav1.NowMicro()})).To(MatchError(apierrors.IsConflict, "a daemon has written"))
	w.counts("c1", 2)
	w.Expect(w.boots("c1")[boot.LeaseToReady].GetSampleSum()).To(Equal(80.0))

	w.stop()
	w.joins(other, since.Add(10*time.Second), time.Now(), "False", "True") // its kubelet was away
	w.start()
	third, thirdVM := w.machine("c1", "third")
	thirdLease := w.getsAddress(w.ns, "192.168.100.122", thirdVM, since)
	w.joins(third, since.Add(10*time.Second), ready, "True")
	sees(w, thirdLease, func(e Gomega, l *v1alpha1.DHCPLease) { e.Expect(became(l)).To(BeTemporally("==", ready)) })
	w.silent()
	w.counts("c1", 3)
	sees(w, otherLease, func(e Gomega, l *v1alpha1.DHCPLease) { e.Expect(became(l)).To(BeTemporally("==", ready)) })
	w.counts("c2", 0)

	infra := named(&v1alpha1.Infra{}, w.ns, "c1")
	w.changes(infra, func() { infra.Spec.InfraComponents.DHCP.Enabled = new(false) })
	w.Eventually(func() map[string]*dto.Histogram { return w.boots("c1") }).Should(BeEmpty(), "it leases none")
}
