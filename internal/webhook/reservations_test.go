package webhook

import (
	"testing"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/observe"
)

func TestAReservationThatMovesAWorkerIsWarnedOf(t *testing.T) {
	scheme := runtime.NewScheme()
	NewWithT(t).Expect(v1alpha1.AddToScheme(scheme)).To(Succeed())
	lease := func(infra, ip, mac string, state v1alpha1.LeaseState) *v1alpha1.DHCPLease {
		return &v1alpha1.DHCPLease{
			ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: infra + "-dhcp-" + ip, Labels: map[string]string{names.LabelInfra: infra, names.LabelInfraNamespace: "clusters"}},
			Spec:       v1alpha1.DHCPLeaseSpec{IP: v1alpha1.IPv4Address(ip), MAC: v1alpha1.MACAddress(mac), Hostname: "w1", State: state},
		}
	}
	live := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		lease("c1", "192.168.100.50", "52:54:00:00:00:01", v1alpha1.LeaseBound), lease("c1", "192.168.100.51", "52:54:00:00:00:02", v1alpha1.LeaseReleased),
		lease("c2", "192.168.100.52", "52:54:00:00:00:03", v1alpha1.LeaseBound)).Build()
	r := reviewer{observer: &observe.Observer{Live: live}, log: logr.Discard()}
	for name, c := range map[string]struct {
		before []v1alpha1.Reservation
		one    v1alpha1.Reservation
		want   []string
	}{
		"another's address":           {nil, v1alpha1.Reservation{IP: "192.168.100.50", MAC: "52:54:00:00:00:09"}, []string{"ReservationTaken: 192.168.100.50 is leased to w1 (52:54:00:00:00:01), which loses it when it next renews; reserve another address, or shut that machine down first"}},
		"it moves":                    {nil, v1alpha1.Reservation{IP: "192.168.100.60", MAC: "52:54:00:00:00:01"}, []string{"ReservationMoves: w1 (52:54:00:00:00:01) has 192.168.100.50 and moves to 192.168.100.60 when it next renews; a kubelet does not follow, so replace that worker"}},
		"its own address":             {nil, v1alpha1.Reservation{IP: "192.168.100.50", MAC: "52:54:00:00:00:01"}, nil},
		"an address that is released": {nil, v1alpha1.Reservation{IP: "192.168.100.51", MAC: "52:54:00:00:00:09"}, nil},
		"leased by another Infra":     {nil, v1alpha1.Reservation{IP: "192.168.100.52", MAC: "52:54:00:00:00:09"}, nil},
		"it was there before":         {[]v1alpha1.Reservation{{IP: "192.168.100.50", MAC: "52:54:00:00:00:09"}}, v1alpha1.Reservation{IP: "192.168.100.50", MAC: "52:54:00:00:00:09"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			before, after := &v1alpha1.Infra{}, &v1alpha1.Infra{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "c1"}}
			before.Spec.InfraComponents.DHCP.Reservations = c.before
			after.Spec.InfraComponents.DHCP.Reservations = []v1alpha1.Reservation{c.one}
			NewWithT(t).Expect(r.reservations(t.Context(), before, after)).To(Equal(c.want))
		})
	}
}
