package controller

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/guest/appsingress"
)

// Whoever may write a Node can have any lease of its own Infra say that its Node is Ready, once, and no longer ago than that lease, nor later than
// we saw it.
func TestANodeIsBelievedWithinBounds(t *testing.T) {
	begun := time.Date(2026, 11, 27, 20, 0, 0, 0, time.UTC)
	seen, since := begun.Add(3*time.Minute), metav1.NewTime(begun)
	const mac = "52:54:00:00:00:01"
	noted := v1alpha1.DHCPLeaseStatus{Client: mac, Stages: []v1alpha1.Stage{{Name: v1alpha1.StageNodeReady, FirstTime: metav1.NewMicroTime(begun)}}}
	anothers := noted
	anothers.Client = "52:54:00:00:00:02"
	for name, c := range map[string]struct {
		state  v1alpha1.LeaseState
		since  *metav1.Time
		status v1alpha1.DHCPLeaseStatus
		node   appsingress.Joined
		took   time.Duration // negative: it is not noted
	}{
		"as it says":                       {v1alpha1.LeaseBound, &since, v1alpha1.DHCPLeaseStatus{}, appsingress.Joined{Created: begun.Add(time.Minute), Says: begun.Add(2 * time.Minute)}, 2 * time.Minute},
		"it says nothing":                  {v1alpha1.LeaseBound, &since, v1alpha1.DHCPLeaseStatus{}, appsingress.Joined{Created: begun}, 3 * time.Minute},
		"it says a time that is to come":   {v1alpha1.LeaseBound, &since, v1alpha1.DHCPLeaseStatus{}, appsingress.Joined{Created: begun, Says: seen.Add(time.Hour)}, 3 * time.Minute},
		"it says a time before its lease":  {v1alpha1.LeaseBound, &since, v1alpha1.DHCPLeaseStatus{}, appsingress.Joined{Created: begun, Says: begun.Add(-time.Hour)}, 3 * time.Minute},
		"the address had another holder":   {v1alpha1.LeaseBound, &since, anothers, appsingress.Joined{Created: begun}, 3 * time.Minute},
		"it is noted":                      {v1alpha1.LeaseBound, &since, noted, appsingress.Joined{Created: begun}, -1},
		"the lease is over":                {v1alpha1.LeaseReleased, &since, v1alpha1.DHCPLeaseStatus{}, appsingress.Joined{Created: begun}, -1},
		"an older release wrote the lease": {v1alpha1.LeaseBound, nil, v1alpha1.DHCPLeaseStatus{}, appsingress.Joined{Created: begun}, -1},
		"the Node is older than the lease": {v1alpha1.LeaseBound, &since, v1alpha1.DHCPLeaseStatus{}, appsingress.Joined{Created: begun.Add(-time.Second)}, -1},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			l := &v1alpha1.DHCPLease{Spec: v1alpha1.DHCPLeaseSpec{MAC: mac, State: c.state, LastTransitionTime: c.since}, Status: c.status}
			c.node.Seen = seen
			stage, took, is := becameReady(l, c.node)
			g.Expect(is).To(Equal(c.took >= 0))
			if is {
				g.Expect(took).To(Equal(c.took))
				g.Expect(stage).To(Equal(v1alpha1.Stage{Name: v1alpha1.StageNodeReady, FirstTime: metav1.NewMicroTime(begun.Add(c.took))}))
			}
		})
	}
}
