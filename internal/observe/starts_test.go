package observe

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cldmnky/oooi/internal/plan/workload"
)

func TestAWorkloadStartsUntilItsPodHasHadItsTime(t *testing.T) {
	g, now := NewWithT(t), time.Now()
	made := func(ago time.Duration) *Pod {
		return &Pod{Pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(now.Add(-ago))}}}
	}
	g.Expect(starts(Rollout{Exists: true}, now)).To(BeTrue(), "its pod is being made")
	g.Expect(starts(Rollout{Exists: true, Pod: made(time.Minute)}, now)).To(BeTrue())
	g.Expect(starts(Rollout{Exists: true, Pod: made(workload.LongestStart)}, now)).To(BeFalse())
	g.Expect(starts(Rollout{Exists: true, Refused: "quota"}, now)).To(BeFalse())
	g.Expect(starts(Rollout{Exists: true, Stopped: true}, now)).To(BeFalse())
	g.Expect(starts(Rollout{}, now)).To(BeFalse())
	g.Expect(starts(Rollout{Exists: true, Ready: true}, now)).To(BeFalse())
}
