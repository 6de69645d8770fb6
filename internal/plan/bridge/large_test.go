package bridge_test

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/internal/dpf"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/kept"
	"github.com/cldmnky/oooi/internal/plan/bridge"
)

// DPUs that are kept in part are named, if they are many only a few; they prevent nothing, because the others still join.
func TestDPUsThatAreTooLargeAreNamed(t *testing.T) {
	g := NewWithT(t)
	var all []dpf.DPU
	for i := range 8 {
		d := &dpf.DPU{}
		d.Namespace, d.Name = "dpf", fmt.Sprintf("d%d", i)
		if i > 0 {
			d.Status.Addresses = append(d.Status.Addresses, corev1.NodeAddress{Address: strings.Repeat("x", 200<<10)})
		}
		all = append(all, *kept.Of(d).(*dpf.DPU))
	}
	g.Expect(bridge.UnreadDPUs(all[:1])).To(BeEmpty())
	g.Expect(bridge.UnreadDPUs(all)).To(ConsistOf(And(
		HaveField("Condition", dpuv1.ConditionCSRAutoApprovalActive), HaveField("Reason", "ObjectTooLarge"), HaveField("Severity", finding.Warning),
		HaveField("Message", HavePrefix("DPUs that are too large to be read: dpf/d1, dpf/d2, dpf/d3, dpf/d4, dpf/d5 and 2 more; their certificates may have to wait: ")))))
}
