package dhcp

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/dhcp/pool"
)

func TestAFullPoolIsSaidAtOnceAndRoomWhenItLasts(t *testing.T) {
	g, w, start := NewWithT(t), &watched{}, time.Now()
	full, free, looked := pool.Room{None: true, Leased: 3}, pool.Room{}, 0
	sees := func(second int, r pool.Room) bool {
		w.look(start.Add(time.Duration(second)*time.Second), func() pool.Room { looked++; return r })
		return w.None
	}
	g.Expect(sees(0, full)).To(BeTrue())
	g.Expect(sees(1, free)).To(BeTrue())
	g.Expect(looked).To(Equal(1), "it may be long to walk")
	g.Expect(sees(2, free)).To(BeTrue(), "who takes and releases the last address turns nothing")
	g.Expect(sees(4, full)).To(BeTrue())
	g.Expect(sees(6, free)).To(BeTrue())
	g.Expect(sees(9, free)).To(BeFalse())
}

// The counts in status lag by 0.6 s at most: 0.4 s as tested here, and 0.2 s until the next look.
func TestTheCountsOfLeasesAreSaidInTime(t *testing.T) {
	g, said, start, last, writes := NewWithT(t), &reported{}, time.Now(), 0, 0
	for n := 1; n <= 50; n++ { // each look finds another count
		next := said.next(report{server: &v1alpha1.DHCPServer{}, synced: true, at: start.Add(time.Duration(n) * looksEvery), counts: counts{active: n}})
		if active := int(*next.Status.ActiveLeases); active != last {
			last, writes = active, writes+1
		}
		g.Expect(time.Duration(n-last) * looksEvery).To(BeNumerically("<=", 400*time.Millisecond))
	}
	g.Expect(writes).To(BeNumerically("<=", 20), "in ten seconds")
}

// An instance that has not read the leases yet has nothing to say of them, and the other may have.
func TestUntilTheLeasesAreReadTheCountsStay(t *testing.T) {
	g, said, server := NewWithT(t), &reported{}, &v1alpha1.DHCPServer{}
	server.Status = v1alpha1.DHCPServerStatus{ActiveLeases: 7, TotalLeases: 9, PoolSize: 200}
	next := said.next(report{server: server, at: time.Now(), counts: counts{size: 200}})
	g.Expect([]int32{*next.Status.ActiveLeases, *next.Status.TotalLeases, *next.Status.PoolSize}).To(Equal([]int32{7, 9, 200}))
	next = said.next(report{server: server, at: time.Now(), synced: true, counts: counts{8, 10, 200}})
	g.Expect([]int32{*next.Status.ActiveLeases, *next.Status.TotalLeases, *next.Status.PoolSize}).To(Equal([]int32{8, 10, 200}))
}

func TestTheStatusSaysWhetherAddressesAreLeft(t *testing.T) {
	g := NewWithT(t)
	r := report{server: &v1alpha1.DHCPServer{}, serves: true, steady: true}
	said := func() *metav1.Condition {
		all := (&reported{}).next(r)
		for _, c := range all.Status.Conditions {
			if *c.Type == v1alpha1.ConditionAddressesLeft {
				return &metav1.Condition{Type: *c.Type, Status: *c.Status, Reason: *c.Reason, Message: *c.Message}
			}
		}
		return nil
	}
	g.Expect(meta.IsStatusConditionTrue([]metav1.Condition{*said()}, v1alpha1.ConditionAddressesLeft)).To(BeTrue())
	r.room = pool.Room{Reserved: true, Closed: 4}
	g.Expect(said()).To(HaveValue(And(HaveField("Status", metav1.ConditionTrue), HaveField("Message", "all addresses of the pool are reserved: a machine without a reservation gets none"))))
	r.room = pool.Room{None: true, Leased: 8, Resting: 2, Closed: 4}
	g.Expect(said()).To(HaveValue(And(HaveField("Reason", "PoolExhausted"), HaveField("Message", And(ContainSubstring("8 are leased, 2 are set aside"), ContainSubstring("4 are reserved or excluded"), ContainSubstring("widen"))))))
}

func TestManyClientsWithoutAnAddressAreOneEvent(t *testing.T) {
	l := newLab(t, 1)
	l.binds("aa")
	var told []Event
	l.server.Happened = func(h Event) { told = append(told, h) }
	ignored(t, l.discover("bb"))
	ignored(t, l.discover("cc"))
	g := NewWithT(t)
	g.Expect(told).To(HaveLen(2), "each is counted")
	g.Expect(told[0].Type).To(Equal(PoolExhausted))
	g.Expect(told[0].String()).To(Equal(told[1].String()), "and both are one sentence, which is told once in ten minutes")
	g.Expect(told[0].Warns()).To(BeTrue())
}
