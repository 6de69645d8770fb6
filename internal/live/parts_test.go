package live_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
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

// What failed for one, as when he has gone, is no reading for another.
func TestAReadingThatFailedIsNotShared(t *testing.T) {
	g := newGround(t, "unread")
	parts, infra := live.NewParts(), types.NamespacedName{Namespace: "unread", Name: "c1"}
	gone, leave := context.WithCancel(t.Context())
	leave()
	for _, c := range []struct {
		ctx context.Context
		is  gomegatypes.GomegaMatcher
	}{{gone, HaveOccurred()}, {t.Context(), Not(HaveOccurred())}} {
		err, _ := parts.ForListOf(infra, g.admin, "dhcpleases")("leases", func(api client.Reader) any {
			return api.List(c.ctx, &v1alpha1.DHCPLeaseList{}, client.InNamespace("unread"))
		}).(error)
		g.Expect(err).To(c.is)
	}
}

// A reading that takes long may be shown for longer, and then it goes, too.
func TestPartsThatNobodyReadsAreForgotten(t *testing.T) {
	g := newGround(t, "forgotten")
	parts, infra := live.NewParts(), types.NamespacedName{Namespace: "forgotten", Name: "c1"}
	slow := func(client.Reader) any { <-time.After(400 * time.Millisecond); return nil }
	parts.ForListOf(infra, g.admin)("slow", slow)
	for n := range 1000 { // which nobody may see for longer, so they go at once
		parts.ForListOf(infra, g.admin)(fmt.Sprint("refused ", n), func(api client.Reader) any { return api.List(t.Context(), &v1alpha1.DHCPLeaseList{}) })
	}
	g.Expect(parts.Kept()).To(BeNumerically(">=", 1))
	g.Eventually(parts.Kept).WithTimeout(10 * time.Second).Should(BeZero())
}
