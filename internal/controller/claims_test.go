package controller

import (
	"testing"
	"testing/synctest"

	. "github.com/onsi/gomega"
)

func TestBridgesThatWantOneThingHaveTheirTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, c := NewWithT(t), &claims{wanted: map[any]*claim{}}
		first := c.take("namespace")
		c.take("another")()
		next := make(chan func())
		go func() { next <- c.take("namespace") }()
		synctest.Wait()
		g.Expect(next).NotTo(Receive(), "while the first is at it")
		first()
		release := <-next
		release()
		g.Expect(c.wanted).To(BeEmpty(), "users make up what they want: what nobody waits for is forgotten")
	})
}
