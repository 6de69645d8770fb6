package dhcp

import (
	"context"
	"log/slog"
	"testing"

	"github.com/insomniacslk/dhcp/dhcpv4"
	. "github.com/onsi/gomega"

	"github.com/cldmnky/oooi/internal/dhcp/pool"
)

// leaving is an instance that has so many beside it, and how it is told to end.
func leaving(t *testing.T, others int) (l *lab, tell func(), serving context.Context) {
	l = newLab(t, 4)
	l.reconfigure(func(c *pool.Config) {
		for n := range others {
			c.Instances = append(c.Instances, at(byte(200+n)))
		}
	})
	i := newInstance(Options{Log: slog.New(slog.DiscardHandler)}, nil)
	i.server = l.server
	told, tell := context.WithCancel(t.Context())
	serving, end := i.leaves(told)
	t.Cleanup(end)
	return l, tell, serving
}

// Another instance does not answer who asks for an OFFER of this one.
func TestWhoHasAnOfferIsAnsweredWhileItsServerEnds(t *testing.T) {
	g := NewWithT(t)
	l, tell, serving := leaving(t, 1)
	offered := yours(l.discover("01"))
	tell()
	g.Eventually(func() *dhcpv4.DHCPv4 { return l.discover("02") }).Should(BeNil(), "a client that is offered nothing turns to the other")
	g.Expect(serving.Err()).NotTo(HaveOccurred())
	acked(t, l.selects("01", offered))
	g.Eventually(serving.Done()).WithTimeout(2 * offerStands).Should(BeClosed())
}

func TestAServerThatOwesNobodyAnAnswerEndsAtOnce(t *testing.T) {
	g := NewWithT(t)
	_, tell, serving := leaving(t, 1)
	tell()
	g.Eventually(serving.Done()).WithTimeout(offerStands/2).Should(BeClosed(), "it has offered nothing")

	l, tell, serving := leaving(t, 0)
	l.discover("01")
	tell()
	g.Eventually(serving.Done()).WithTimeout(offerStands/2).Should(BeClosed(), "clients of an only server wait for its successor")
	g.Expect(l.discover("02")).NotTo(BeNil())
}
