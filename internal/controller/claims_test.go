package controller

import (
	"testing"

	. "github.com/onsi/gomega"
)

// A hundred bridges of one author that want one thing do not occupy the workers that other bridges wait for.
func TestBridgesThatWantOneThingHaveTheirTurns(t *testing.T) {
	g, c := NewWithT(t), &claims{taken: map[any]bool{}}
	first, taken := c.take("cluster", "namespace")
	g.Expect(taken).To(BeTrue())
	other, taken := c.take("another")
	g.Expect(taken).To(BeTrue())
	_, taken = c.take("a third", "namespace")
	g.Expect(taken).To(BeFalse(), "while the first is at it")
	first()
	next, taken := c.take("a third", "namespace")
	g.Expect(taken).To(BeTrue(), "who did not get all has taken nothing")
	next()
	other()
	g.Expect(c.taken).To(BeEmpty(), "users make up what they want: what nobody is at is forgotten")
}
