package controller

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
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

// Cluster API writes a Machine again for whatever its Node reports.
func TestAMachineIsLookedUpOnce(t *testing.T) {
	g := NewWithT(t)
	lookups, refused := 0, errors.New("refused")
	live := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
		lookups++
		return refused
	}}).Build()
	j := joins{parts{observe: &observe.Observer{Live: live, Now: func() time.Time { return begun }}}, map[types.NamespacedName]map[types.UID]bool{}}
	infra := types.NamespacedName{Namespace: "clusters", Name: "c1"}
	g.Expect(j.look(t.Context(), infra, []clusterapi.Machine{*virtual("a")})).To(MatchError(refused))
	refused = nil
	for _, all := range [][]clusterapi.Machine{{*virtual("a")}, {*virtual("a")}, {*virtual("a"), *virtual("b")}} {
		g.Expect(j.look(t.Context(), infra, all)).To(Succeed())
	}
	g.Expect(lookups).To(Equal(3), "one failed")
	g.Expect(j.look(t.Context(), infra, nil)).To(Succeed())
	g.Expect(j.noted[infra]).To(BeEmpty(), "it is gone")
}

// virtual is a Machine whose Node was there, and Ready, when all began.
func virtual(uid types.UID) *clusterapi.Machine {
	m := &clusterapi.Machine{Spec: clusterapi.MachineSpec{InfrastructureRef: clusterapi.Reference{Kind: "KubevirtMachine", Name: "vm"}}}
	m.UID = uid
	m.Status = clusterapi.MachineStatus{Phase: "Running", LastUpdated: begun.Format(time.RFC3339), Conditions: []clusterapi.Condition{{Type: "NodeHealthy", Status: "True", LastTransitionTime: begun.Format(time.RFC3339)}}}
	return m
}
