package live_test

import (
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/live"
)

func TestWhatIsSharedIsSharedWithWhoMayReadIt(t *testing.T) {
	g := newGround(t, "shared")
	readings := 0
	read := func(api client.Reader) any {
		readings++
		return api.List(t.Context(), &v1alpha1.DHCPLeaseList{}, client.InNamespace("shared"))
	}
	parts, infra := live.NewParts(), types.NamespacedName{Namespace: "shared", Name: "c1"}
	may, alike, mayNot := parts.ForListOf(infra, g.admin, "dhcpleases"), parts.ForListOf(infra, g.admin, "dhcpleases", "infras"), parts.ForListOf(infra, g.admin, "infras")
	g.Expect(may("leases", read)).To(BeNil())
	g.Expect(alike("leases", read)).To(BeNil())
	g.Expect(readings).To(Equal(1), "the second is shown what the first has read")
	err, _ := mayNot("leases", read).(error)
	g.Expect(apierrors.IsForbidden(err)).To(BeTrue(), "%v", err)
	g.Expect(may("leases", read)).To(BeNil(), "a refusal is for one")
}
