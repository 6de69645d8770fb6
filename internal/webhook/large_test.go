package webhook

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/kept"
	"github.com/cldmnky/oooi/internal/observe"
)

// An object too large for the manager's cache is refused in the words of its condition; one that is stored already may be changed, and its
// finalizers removed.
func TestWhatIsTooLargeIsRefused(t *testing.T) {
	r := reviewer{observer: &observe.Observer{}}
	for _, small := range []kept.Object{&v1alpha1.Infra{}, &v1alpha1.DHCPServer{}, &v1alpha1.DNSServer{}, &v1alpha1.ProxyServer{}, &dpuv1.DPUHCPBridge{}} {
		g := NewWithT(t)
		large := small.DeepCopyObject().(kept.Object)
		large.SetLabels(map[string]string{"a": strings.Repeat("x", 300<<10)})
		g.Expect(r.refused(nil, small)).To(BeEmpty(), "%T", small)
		for what, before := range map[string]runtime.Object{"new": nil, "smaller before": small} {
			g.Expect(r.refused(before, large)).To(ConsistOf(And(HavePrefix("ObjectTooLarge: "), ContainSubstring("its metadata takes 300 KiB of memory, and may take"))), "%T %s", small, what)
		}
		g.Expect(r.refused(large, large)).To(BeEmpty(), "%T", small)
		g.Expect(large.GetLabels()).NotTo(BeEmpty())
		annotated := small.DeepCopyObject().(kept.Object)
		annotated.SetAnnotations(map[string]string{"a": strings.Repeat("x", 250<<10)})
		g.Expect(r.refused(nil, annotated)).To(BeEmpty(), "%T: nobody keeps it", small)
	}
}
