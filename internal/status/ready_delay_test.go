package status

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cldmnky/oooi/api/v1alpha1"
)

func TestReadyStandsWhileAPodIsReplaced(t *testing.T) {
	ready := func(status metav1.ConditionStatus, reason string) v1alpha1.InfraStatus {
		return v1alpha1.InfraStatus{Conditions: []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: status, Reason: reason}}}
	}
	serves, replaced := ready(metav1.ConditionTrue, "Serving"), ready(metav1.ConditionFalse, "PodNotReady")
	g, w := NewWithT(t), &Writer{}
	infra := &v1alpha1.Infra{ObjectMeta: metav1.ObjectMeta{UID: "u"}, Status: serves}
	g.Expect(w.mayPass(infra, serves, morning)).To(BeZero())
	g.Expect(w.mayPass(infra, replaced, morning)).To(Equal(readyDelay))
	g.Expect(w.mayPass(infra, replaced, morning.Add(time.Second))).To(Equal(readyDelay - time.Second))
	g.Expect(w.mayPass(infra, replaced, morning.Add(readyDelay))).To(BeZero(), "it is said now")
	g.Expect(w.mayPass(infra, serves, morning.Add(6*time.Second))).To(BeZero())
	g.Expect(w.mayPass(infra, replaced, noon)).To(Equal(readyDelay), "another pod, another patience")
	for _, reason := range []string{"BackendsUnhealthy", "PoolExhausted", "VLANInUse", "NodeLost"} {
		g.Expect(w.mayPass(infra, ready(metav1.ConditionFalse, reason), noon)).To(BeZero(), reason)
	}
	w.Forget("u")
	g.Expect(w.unready).To(BeEmpty())
	g.Expect(w.mayPass(&v1alpha1.Infra{Status: replaced}, replaced, noon)).To(BeZero(), "it was not Ready before")
}

func TestWhatIsKeptIsKeptWhole(t *testing.T) {
	before := []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Serving", ObservedGeneration: 1}, {Type: "Degraded", Status: metav1.ConditionFalse}}
	now := []metav1.Condition{{Type: "Degraded", Status: metav1.ConditionTrue}, {Type: "Ready", Status: metav1.ConditionFalse, ObservedGeneration: 2}, {Type: "DNSReady"}}
	NewWithT(t).Expect(keeping(before, now, "Ready", "Degraded")).To(Equal([]metav1.Condition{before[1], before[0], now[2]}))
}
