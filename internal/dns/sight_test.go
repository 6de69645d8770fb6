package dns

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cldmnky/oooi/api/v1alpha1"
)

// Two instances, of which one hears nothing, as the API server passes on what they say. One is lost only if nobody who reaches the API server
// hears it.
func TestAnAddressIsLostWhenNobodyHearsIt(t *testing.T) {
	const answers, silent, lost, confirmed = v1alpha1.HealthAnswers, v1alpha1.HealthSilent, v1alpha1.HealthLost, v1alpha1.HealthConfirmed
	for name, c := range map[string]struct {
		hears        [2]bool
		reaches      [2]time.Duration // the API server, from then on
		after        time.Duration
		first, other v1alpha1.HealthState
	}{
		"both hear it":                           {[2]bool{true, true}, [2]time.Duration{}, time.Minute, answers, answers},
		"neither does, for a second":             {[2]bool{}, [2]time.Duration{}, time.Second, answers, answers},
		"neither does, for three":                {[2]bool{}, [2]time.Duration{}, 3 * time.Second, silent, silent},
		"neither does, for five":                 {[2]bool{}, [2]time.Duration{}, 5 * time.Second, lost, lost},
		"the other does, for three":              {[2]bool{false, true}, [2]time.Duration{}, 3 * time.Second, silent, confirmed},
		"the other does, for a minute":           {[2]bool{false, true}, [2]time.Duration{}, time.Minute, silent, confirmed},
		"the other's node is lost, too":          {[2]bool{false, true}, [2]time.Duration{0, time.Hour}, 5 * time.Second, lost, answers},
		"the API server is away":                 {[2]bool{}, [2]time.Duration{time.Hour, time.Hour}, time.Minute, silent, silent},
		"the API server comes back":              {[2]bool{}, [2]time.Duration{time.Minute, time.Minute}, time.Minute + time.Second, silent, silent},
		"the API server is back, for long":       {[2]bool{}, [2]time.Duration{time.Minute, time.Minute}, time.Minute + 3*time.Second, lost, lost},
		"it is back, and the other confirms":     {[2]bool{false, true}, [2]time.Duration{time.Minute, time.Minute}, 2 * time.Minute, silent, confirmed},
		"it is back for the one that is cut off": {[2]bool{false, true}, [2]time.Duration{time.Minute, 0}, time.Minute + time.Second, silent, confirmed},
	} {
		t.Run(name, func(t *testing.T) {
			both, stored := [2]*sight{{}, {}}, [2]v1alpha1.HealthState{}
			const step = 300 * time.Millisecond
			for at := time.Duration(0); at <= c.after; at += step {
				now := time.Unix(0, 0).Add(at)
				for i, s := range both {
					if c.hears[i] || at == 0 {
						s.heard, s.met = now, true
					}
					s.state = s.next(now)
				}
				for i, s := range both {
					if at >= c.reaches[i] {
						stored[i] = s.state
					}
				}
				for i, s := range both {
					if at >= c.reaches[i] { // whoever is cut off sees what was there before
						s.own, s.others = stored[i], []v1alpha1.HealthState{stored[1-i]}
					}
				}
			}
			NewWithT(t).Expect([]v1alpha1.HealthState{both[0].state, both[1].state}).To(Equal([]v1alpha1.HealthState{c.first, c.other}))
		})
	}
}

// An instance that starts again as a proxy is lost would have the other one wait for it.
func TestWhoHasJustBegunConfirmsNothing(t *testing.T) {
	g, now := NewWithT(t), time.Now()
	s := &sight{heard: now, others: []v1alpha1.HealthState{v1alpha1.HealthSilent}}
	g.Expect(s.next(now)).To(Equal(v1alpha1.HealthAnswers))
	s.hears()
	g.Expect(s.next(now)).To(Equal(v1alpha1.HealthConfirmed))
}

// What is lost and heard again is not lost; a dispute that ends is waited for anew.
func TestWhatIsHeardAgainIsNotLost(t *testing.T) {
	g, now := NewWithT(t), time.Unix(100, 0)
	s := &sight{heard: now.Add(-time.Minute), own: v1alpha1.HealthLost, told: now.Add(-time.Minute)}
	g.Expect(s.next(now)).To(Equal(v1alpha1.HealthLost))
	s.others = []v1alpha1.HealthState{v1alpha1.HealthConfirmed}
	g.Expect(s.next(now)).To(Equal(v1alpha1.HealthSilent))
	s.others = nil
	g.Expect(s.next(now)).To(Equal(v1alpha1.HealthSilent))
	g.Expect(s.next(now.Add(disputeTime))).To(Equal(v1alpha1.HealthLost))
	s.heard = now.Add(disputeTime)
	g.Expect(s.next(now.Add(disputeTime))).To(Equal(v1alpha1.HealthAnswers))
}
