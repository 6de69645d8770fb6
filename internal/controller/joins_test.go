package controller

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/boot"
	"github.com/cldmnky/oooi/internal/clusterapi"
	"github.com/cldmnky/oooi/internal/observe"
)

var (
	begun = time.Date(2026, 11, 27, 20, 0, 0, 0, time.UTC)
	since = metav1.NewTime(begun)
)

func TestAStageIsNotedOnceAndWithinItsLease(t *testing.T) {
	const mac = "52:54:00:00:00:01"
	seen := begun.Add(3 * time.Minute)
	noted := v1alpha1.DHCPLeaseStatus{Client: mac, Stages: []v1alpha1.Stage{{Name: v1alpha1.StageNodeReady, FirstTime: metav1.NewMicroTime(begun)}}}
	anothers := noted
	anothers.Client = "52:54:00:00:00:02"
	for name, c := range map[string]struct {
		status v1alpha1.DHCPLeaseStatus
		of     joined
		took   time.Duration // negative: it is not noted
	}{
		"as the Machine says":              {v1alpha1.DHCPLeaseStatus{}, joined{node: begun.Add(time.Minute), ready: begun.Add(2 * time.Minute)}, 2 * time.Minute},
		"by a clock that is ahead":         {v1alpha1.DHCPLeaseStatus{}, joined{node: begun, ready: seen.Add(time.Hour)}, 3 * time.Minute},
		"by a clock that is behind":        {v1alpha1.DHCPLeaseStatus{}, joined{node: begun, ready: begun.Add(-time.Hour)}, 3 * time.Minute},
		"the address had another holder":   {anothers, joined{node: begun, ready: seen}, 3 * time.Minute},
		"it is noted":                      {noted, joined{node: begun, ready: seen}, -1},
		"the Node is older than the lease": {v1alpha1.DHCPLeaseStatus{}, joined{node: begun.Add(-time.Second), ready: seen}, -1},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			c.of.seen = seen
			stage, took, is := becameReady(&v1alpha1.DHCPLease{Spec: v1alpha1.DHCPLeaseSpec{MAC: mac, State: v1alpha1.LeaseBound, LastTransitionTime: &since}, Status: c.status}, c.of)
			g.Expect(is).To(Equal(c.took >= 0))
			if is {
				g.Expect(took).To(Equal(c.took))
				g.Expect(stage).To(Equal(v1alpha1.Stage{Name: v1alpha1.StageNodeReady, FirstTime: metav1.NewMicroTime(begun.Add(c.took))}))
			}
		})
	}
}

// DHCP writes into a lease which virtual machine has it. Whoever may write leases of his namespace may write any there.
func TestALeaseIsOfTheMachinesOwnVirtualMachine(t *testing.T) {
	g := NewWithT(t)
	lease := func(name, namespace string, state v1alpha1.LeaseState, since *metav1.Time) v1alpha1.DHCPLease {
		l := v1alpha1.DHCPLease{Spec: v1alpha1.DHCPLeaseSpec{VMRef: &v1alpha1.VMReference{Namespace: v1alpha1.ObjectName(namespace), Name: "vm"}, State: state, LastTransitionTime: since}}
		l.Name = name
		return l
	}
	later := metav1.NewTime(begun.Add(time.Minute))
	m := &clusterapi.Machine{}
	m.Namespace = "clusters-c1"
	found := func(all ...v1alpha1.DHCPLease) string {
		if l := leaseOf(m, all); l != nil {
			return l.Name
		}
		return ""
	}
	g.Expect(found(lease("anothers", "clusters-c2", v1alpha1.LeaseBound, &since), lease("over", "clusters-c1", v1alpha1.LeaseReleased, &since), lease("of an older release", "clusters-c1", v1alpha1.LeaseBound, nil))).To(BeEmpty())
	g.Expect(found(v1alpha1.DHCPLease{Spec: v1alpha1.DHCPLeaseSpec{State: v1alpha1.LeaseBound, LastTransitionTime: &since}})).To(BeEmpty())
	first, second := lease("first", "clusters-c1", v1alpha1.LeaseBound, &since), lease("second", "clusters-c1", v1alpha1.LeaseBound, &later)
	g.Expect(found(first, second)).To(Equal("second"))
	g.Expect(found(second, first)).To(Equal("second"), "a boot is counted of one")
}

func TestOnlyAVirtualMachineThatJoinedLatelyIsLookedUp(t *testing.T) {
	g := NewWithT(t)
	m := virtual("a")
	for ago, want := range map[time.Duration]bool{time.Minute: true, boot.Longest: true, boot.Longest + time.Second: false} {
		n, is := joinedAt(m, begun.Add(ago))
		g.Expect(is).To(Equal(want), "%s", ago)
		g.Expect(n).To(Equal(joined{begun, begun, begun.Add(ago)}))
	}
	m.Spec.InfrastructureRef.Kind = "AgentMachine"
	_, is := joinedAt(m, begun)
	g.Expect(is).To(BeFalse())
}

// Cluster API writes a Machine again for whatever its Node reports, and DHCP may learn late whose lease it is.
func TestAMachineIsLookedUpUntilItHasALease(t *testing.T) {
	g := NewWithT(t)
	lookups, refused, now := 0, errors.New("refused"), begun
	leased := []v1alpha1.DHCPLease{}
	live := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{List: func(_ context.Context, _ client.WithWatch, all client.ObjectList, _ ...client.ListOption) error {
		lookups++
		all.(*v1alpha1.DHCPLeaseList).Items = leased
		return refused
	}}).Build()
	j := joins{parts{observe: &observe.Observer{Live: live, Now: func() time.Time { return now }}}, map[types.NamespacedName]lookedUp{}}
	infra := types.NamespacedName{Namespace: "clusters", Name: "c1"}
	// looks has each Machine seen some time after its Node came, and returns how many were looked up.
	looks := func(after, again time.Duration, all ...clusterapi.Machine) int {
		t.Helper()
		now, lookups = begun.Add(after), 0
		next, err := j.look(t.Context(), infra, all)
		if refused == nil {
			g.Expect(err).NotTo(HaveOccurred())
		} else {
			g.Expect(err).To(MatchError(refused))
		}
		g.Expect(next).To(Equal(ctrl.Result{RequeueAfter: again}))
		return lookups
	}
	a, b := *virtual("a"), *virtual("b")
	g.Expect(looks(0, 0, a)).To(Equal(1))
	refused = apierrors.NewConflict(schema.GroupResource{Resource: "dhcpleases"}, "a", nil)
	_, err := j.look(t.Context(), infra, []clusterapi.Machine{a})
	g.Expect(err).NotTo(HaveOccurred(), "a daemon wrote it meanwhile")
	refused = nil
	g.Expect(looks(0, time.Minute, a)).To(Equal(1), "it failed")
	g.Expect(looks(20*time.Second, 40*time.Second, a)).To(BeZero(), "Cluster API wrote")
	g.Expect(looks(10*time.Minute, 10*time.Minute, a)).To(Equal(1), "it had no lease")
	g.Expect(looks(11*time.Minute, 9*time.Minute, a, b)).To(Equal(1), "it is another")

	since := metav1.NewTime(begun.Add(time.Second)) // after the Node, of which nothing is noted then
	leased = []v1alpha1.DHCPLease{{Spec: v1alpha1.DHCPLeaseSpec{VMRef: &v1alpha1.VMReference{Name: "vm"}, State: v1alpha1.LeaseBound, LastTransitionTime: &since}}}
	g.Expect(looks(20*time.Minute, 2*time.Minute, a, b)).To(Equal(1), "it has a lease")
	g.Expect(looks(boot.Longest, 0, a, b)).To(Equal(1), "the other has one, too")
	g.Expect(looks(boot.Longest, 0, a, b)).To(BeZero())
	g.Expect(looks(boot.Longest, 0)).To(BeZero())
	g.Expect(j.noted[infra]).To(BeEmpty(), "they are gone")
}

// virtual is a Machine whose Node was there, and Ready, when all began.
func virtual(uid types.UID) *clusterapi.Machine {
	m := &clusterapi.Machine{Spec: clusterapi.MachineSpec{InfrastructureRef: clusterapi.Reference{Kind: "KubevirtMachine", Name: "vm"}}}
	m.UID = uid
	m.Status = clusterapi.MachineStatus{Phase: "Running", LastUpdated: begun.Format(time.RFC3339), Conditions: []clusterapi.Condition{{Type: "NodeHealthy", Status: "True", LastTransitionTime: begun.Format(time.RFC3339)}}}
	return m
}
