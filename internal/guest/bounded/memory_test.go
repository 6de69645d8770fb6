package bounded

import (
	"testing"

	. "github.com/onsi/gomega"
)

// At the limit for all hosted clusters, only those with more than their share are refused.
func TestWhatIsKeptOfAllIsShared(t *testing.T) {
	g, r := NewWithT(t), &room{of: map[*share]int{}}
	var all []*allotment
	for i := range mostOfAll/MostBytes + 1 {
		all = append(all, &allotment{to: newShare("hosted")})
		err := r.take(all[i], MostBytes)
		if i < mostOfAll/MostBytes {
			g.Expect(err).NotTo(HaveOccurred())
		} else {
			g.Expect(err).To(And(MatchError(ErrTooMuch), MatchError(errShare)), "all is taken, and this has as much as the others")
			r.leave(all[i])
		}
	}
	modest := &allotment{to: newShare("hosted")}
	g.Expect(r.take(modest, mostOfAll/(len(all)+1))).To(Succeed(), "it has its share")
	g.Expect(r.take(all[0], 0)).To(Succeed(), "what only changes takes nothing")
	room, alone := &room{of: map[*share]int{}}, &allotment{to: newShare("hosted")}
	g.Expect(room.take(alone, MostBytes)).To(Succeed())
	g.Expect(room.take(alone, 1)).To(MatchError(ErrTooMuch), "no hosted cluster has more than its own bound")
	for _, a := range append(all, modest) {
		r.leave(a)
	}
	g.Expect(r.all).To(BeZero())
	g.Expect(r.of).To(BeEmpty())
}

func TestWhatIsKeptForAConnectionGoesWithIt(t *testing.T) {
	g, a := NewWithT(t), hostedAPI(nil)
	g.Expect(a.Keeps(100)).To(Succeed())
	g.Expect(kept.of).To(HaveKeyWithValue(a.to, 100))
	a.Close()
	g.Expect(kept.of).NotTo(HaveKey(a.to))
}
