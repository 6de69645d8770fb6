package bridgecli

import (
	"testing"

	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/cldmnky/oooi/internal/plan/bridge"
)

// The API server of the tests drops the field: HyperShift's CRDs that we have lack it.
func TestWhatNewerHyperShiftsReportIsTakenIn(t *testing.T) {
	g, p := NewWithT(t), Platform{}
	g.Expect(p.hostedCluster(&unstructured.Unstructured{})).To(Succeed())
	g.Expect(p.HostedCluster).To(BeNil())
	read := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": "dpu1", "generation": int64(2)},
		"status":   map[string]any{"controlPlaneVersion": map[string]any{"history": []any{map[string]any{"state": "Partial", "image": "a.b/c:d"}}}},
	}}
	g.Expect(p.hostedCluster(read)).To(Succeed())
	g.Expect(p.HostedCluster.Generation).To(Equal(int64(2)))
	g.Expect(p.Version.History).To(Equal([]bridge.ControlPlaneUpdate{{State: configv1.PartialUpdate, Image: "a.b/c:d"}}))
}
