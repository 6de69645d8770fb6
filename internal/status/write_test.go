package status

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/api/v1alpha1"
)

// writerOfOne is a Writer, and one stored Infra.
func writerOfOne(t *testing.T) (*Writer, *v1alpha1.Infra) {
	t.Helper()
	scheme := runtime.NewScheme()
	NewWithT(t).Expect(v1alpha1.AddToScheme(scheme)).To(Succeed())
	live := &v1alpha1.Infra{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "c1", UID: "u1"}}
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(live).WithStatusSubresource(live).Build()
	return &Writer{Client: api, Events: events.NewFakeRecorder(10)}, live
}

// A late cache that shows the status before our last write brings no news.
func TestAWriteOfStatusOvertakesWhatWasReadBefore(t *testing.T) {
	g := NewWithT(t)
	w, live := writerOfOne(t)
	read := func() *v1alpha1.Infra {
		i := &v1alpha1.Infra{}
		g.Expect(w.Client.Get(t.Context(), client.ObjectKeyFromObject(live), i)).To(Succeed())
		return i
	}
	writes := func(of *v1alpha1.Infra, reason string) {
		_, err := w.Infra(t.Context(), of, v1alpha1.InfraStatus{Conditions: []metav1.Condition{{
			Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: reason, LastTransitionTime: metav1.Unix(1, 0),
		}}}, time.Now())
		g.Expect(err).NotTo(HaveOccurred())
	}

	first := read()
	g.Expect(w.Overtook(first)).To(BeFalse(), "nothing was written")
	writes(first, "NADNotFound")
	second := read()
	writes(second, "VLANInUse")
	g.Expect(w.Overtook(first)).To(BeTrue())
	g.Expect(w.Overtook(second)).To(BeTrue(), "it shows the first write, and not the second")
	g.Expect(w.Overtook(read())).To(BeFalse())
	g.Expect(w.Overtook(second)).To(BeFalse(), "nothing is remembered of what has been seen")
}

// The public operator's bug 180: a bridge is not judged by what is older than the last status that was written of it.
func TestAWriteOfABridgesStatusOvertakesWhatWasReadBefore(t *testing.T) {
	g, scheme := NewWithT(t), runtime.NewScheme()
	g.Expect(dpuv1.AddToScheme(scheme)).To(Succeed())
	live := &dpuv1.DPUHCPBridge{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "b1", UID: "u1"}}
	w := &Writer{Client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(live).WithStatusSubresource(live).Build(), Events: events.NewFakeRecorder(10)}
	read := func() *dpuv1.DPUHCPBridge {
		b := &dpuv1.DPUHCPBridge{}
		g.Expect(w.Client.Get(t.Context(), client.ObjectKeyFromObject(live), b)).To(Succeed())
		return b
	}
	before := read()
	g.Expect(w.Overtook(before)).To(BeFalse(), "nothing was written")
	g.Expect(w.Bridge(t.Context(), before, dpuv1.DPUHCPBridgeStatus{ObservedGeneration: 1})).To(Succeed())
	g.Expect(w.Overtook(before)).To(BeTrue())
	g.Expect(w.Overtook(read())).To(BeFalse())
}

// Counts alone are written once a second; any other change at once, together with the counts.
func TestCountsOfLeasesWaitForEachOther(t *testing.T) {
	g := NewWithT(t)
	w, live := writerOfOne(t)
	writes := func(active int32, reason string, at time.Duration) (shown int32, later time.Duration) {
		read := &v1alpha1.Infra{}
		g.Expect(w.Client.Get(t.Context(), client.ObjectKeyFromObject(live), read)).To(Succeed())
		later, err := w.Infra(t.Context(), read, v1alpha1.InfraStatus{Leases: &v1alpha1.LeaseCount{Active: active}, Conditions: []metav1.Condition{{
			Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: reason, LastTransitionTime: metav1.Unix(1, 0),
		}}}, noon.Add(at))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(w.Client.Get(t.Context(), client.ObjectKeyFromObject(live), read)).To(Succeed())
		return read.Status.Leases.Active, later
	}
	for _, c := range []struct {
		active    int32
		reason    string
		at, later time.Duration
		shown     int32
	}{
		{1, "NADNotFound", 0, 0, 1}, {2, "NADNotFound", 300 * time.Millisecond, 700 * time.Millisecond, 1}, {3, "NADNotFound", time.Second, 0, 3},
		{4, "VLANInUse", 1100 * time.Millisecond, 0, 4},
	} {
		shown, later := writes(c.active, c.reason, c.at)
		g.Expect(shown).To(Equal(c.shown), "%+v", c)
		g.Expect(later).To(Equal(c.later), "%+v", c)
	}
}
