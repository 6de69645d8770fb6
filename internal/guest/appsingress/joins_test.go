package appsingress

import (
	"context"
	"fmt"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cldmnky/oooi/internal/boot"
	"github.com/cldmnky/oooi/internal/plan/input"
)

// told is what Boots were told, and when.
type told struct {
	all []Joined
	at  []time.Time
}

func (t *told) Follows(types.NamespacedName) {}
func (t *told) Leaves(types.NamespacedName)  {}
func (t *told) Joined(_ context.Context, _ types.NamespacedName, n Joined) {
	t.all, t.at = append(t.all, n), append(t.at, time.Now())
}

func watching(since time.Time) *visit {
	a := &agent{boots: &told{}, began: since, joined: make(chan struct{}, 1), turns: rate.NewLimiter(joinsPerSecond, joinsAtOnce)}
	return &visit{agent: a}
}

func of(name string, ready bool, created time.Time, addresses ...string) node {
	n := node{GuestNode: input.GuestNode{Name: name, Ready: ready}, created: created}
	for _, a := range addresses {
		n.Addresses = append(n.Addresses, netip.MustParseAddr(a))
	}
	return n
}

func where(all []Joined) (addresses []string) {
	for _, n := range all {
		addresses = append(addresses, n.Address.String())
	}
	return addresses
}

func TestANodeJoinsOnceAndOnlyIfAllItsLifeWasWatched(t *testing.T) {
	g, now := NewWithT(t), time.Now()
	began := now.Add(-time.Hour)
	v := watching(began)
	before := of("a-before", false, began.Add(-time.Second), "192.168.100.10")
	young := of("b-young", false, now.Add(-time.Minute), "fd00::11", "192.168.100.11", "192.168.100.99")
	nowhere := of("d-nowhere", true, now, "fd00::13")
	v.haveNodes([]node{before, young, nowhere})
	g.Expect(v.joining).To(BeEmpty())

	before.Ready, young.Ready, young.ready = true, true, now.Add(-time.Second)
	v.haveNodes([]node{before, young, nowhere})
	g.Expect(where(v.joining)).To(Equal([]string{"192.168.100.11"}), "one address of one Node: a lease is read for each")
	g.Expect(v.joining[0].Says).To(Equal(young.ready))
	g.Expect(v.joining[0].Created).To(Equal(young.created))
	g.Expect(v.joining[0].Seen).To(BeTemporally("~", time.Now(), time.Minute))
	v.haveNodes([]node{before, young, nowhere})
	g.Expect(v.joining).To(HaveLen(1), "nothing is new")
	young.Ready = false
	v.haveNodes([]node{before, young, nowhere})
	young.Ready = true
	v.haveNodes([]node{before, young, nowhere})
	g.Expect(v.joining).To(HaveLen(1), "its kubelet was away")
	g.Expect(v.seen.Nodes).To(HaveLen(3))

	again := &visit{agent: v.agent} // after the hosted cluster was away
	again.haveNodes([]node{before, young, of("e-meanwhile", true, now, "192.168.100.14")})
	g.Expect(where(v.joining)).To(Equal([]string{"192.168.100.11", "192.168.100.14"}))

	long := watching(now.Add(-2 * boot.Longest))
	long.haveNodes([]node{of("old", true, now.Add(-boot.Longest-time.Minute), "192.168.100.12")})
	g.Expect(long.joining).To(BeEmpty(), "it would not be counted")
}

// Nodes that come and go cost the management cluster so much, and no more.
func TestNodesAreLookedUpInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		v := watching(time.Now().Add(-time.Minute))
		var all []node
		for i := range mostJoining + 50 {
			all = append(all, of(fmt.Sprintf("n-%05d", i), true, time.Now(), fmt.Sprintf("10.0.%d.%d", i/250, i%250)))
		}
		v.haveNodes(all)
		g.Expect(v.joining).To(HaveLen(mostJoining))
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- v.tellJoined(ctx) }()
		time.Sleep(10 * time.Second)
		synctest.Wait()
		to := v.boots.(*told)
		g.Expect(len(to.all)).To(BeNumerically("~", joinsAtOnce+10*joinsPerSecond, 2))
		g.Expect(to.all[0].Address.String()).To(Equal("10.0.0.0"))
		time.Sleep(time.Hour)
		synctest.Wait()
		g.Expect(to.all).To(HaveLen(mostJoining))
		v.update(func() { v.haveNodes(append(all, of("z", true, time.Now(), "10.1.0.0"))) })
		synctest.Wait()
		g.Expect(to.all).To(HaveLen(mostJoining+1), "it waits for the next")
		stop()
		g.Expect(<-ended).To(MatchError(context.Canceled))
	})
}

// A Node's author writes any time that the API server takes, of which not all can be read.
func TestANodesWordIsReadOrLeft(t *testing.T) {
	for says, want := range map[string]time.Time{
		`"2026-11-27T20:00:00Z"`:      time.Date(2026, 11, 27, 20, 0, 0, 0, time.UTC),
		`"10000-01-01T11:59:59Z"`:     {}, // what the API server makes of 9999-12-31T23:59:59-12:00
		`null`:                        {},
		`"0000-01-01T00:00:00-12:00"`: time.Date(0, 1, 1, 12, 0, 0, 0, time.UTC),
	} {
		t.Run(says, func(t *testing.T) {
			g := NewWithT(t)
			n, err := nodes.Of([]byte(`{"metadata":{"name":"w","creationTimestamp":"2026-11-27T19:00:00Z"},"status":{"conditions":[{"type":"Ready","status":"True","lastTransitionTime":` + says + `}]}}`))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(n.Ready).To(BeTrue())
			g.Expect(n.ready).To(BeTemporally("==", want))
			g.Expect(n.created).To(BeTemporally("==", time.Date(2026, 11, 27, 19, 0, 0, 0, time.UTC)))
			g.Expect(n.Weight()).To(BeNumerically(">", 0))
		})
	}
}
