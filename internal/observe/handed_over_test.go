package observe

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/internal/dpf"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/plan/bridge"
)

// The Secret beside a DPUCluster in another namespace is read if the bridge's status says that it was bound, and watched if that is permitted.
func TestASecretElsewhereIsFollowedWithPermissionOnly(t *testing.T) {
	for name, c := range map[string]struct {
		admits, says   string
		read, followed bool
	}{
		"admitted":                        {"dpf", "", true, true},
		"not admitted":                    {"", "", false, false},
		"not admitted, and says it was":   {"", "Bound", true, false},
		"not admitted, and says it ended": {"", "DPUClusterDeleted", true, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			b := &dpuv1.DPUHCPBridge{ObjectMeta: metav1.ObjectMeta{Namespace: "dpf", Name: "b1"}}
			b.Spec.DPUClusterRef.Namespace, b.Spec.DPUClusterRef.Name = "theirs", "d1"
			b.Status.Conditions = []metav1.Condition{{Type: dpuv1.ConditionDPUClusterBound, Reason: c.says}}
			cluster := &dpf.DPUCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "theirs", Name: "d1", Annotations: map[string]string{names.AnnotationAllowedNamespaces: c.admits}}}
			_, to, followed := handedOver(bridge.Input{Bridge: b, DPUCluster: cluster})
			g.Expect(to.Name != "").To(Equal(c.read))
			g.Expect(followed).To(HaveLen(map[bool]int{true: 2, false: 1}[c.followed]))
		})
	}
}
