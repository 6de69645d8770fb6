package observe

import (
	"testing"

	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/cldmnky/oooi/internal/plan/bridge"
)

func TestTheControlPlanesVersionIsReadWhereHyperShiftReportsIt(t *testing.T) {
	g := NewWithT(t)
	older := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"version": map[string]any{}}}}
	g.Expect(versionIn(older)).To(Equal(bridge.ControlPlaneVersion{}))
	newer := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"controlPlaneVersion": map[string]any{
		"observedGeneration": int64(2), "desired": map[string]any{"version": "4.22.7"},
		"history": []any{map[string]any{"state": "Partial", "version": "4.22.7", "image": "quay.io/a@sha256:b", "startedTime": "2026-01-01T00:00:00Z"}},
	}}}}
	g.Expect(versionIn(newer)).To(Equal(bridge.ControlPlaneVersion{History: []bridge.ControlPlaneUpdate{{State: configv1.PartialUpdate, Version: "4.22.7", Image: "quay.io/a@sha256:b"}}}))
	odd := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"controlPlaneVersion": "4.22.7"}}}
	_, err := versionIn(odd)
	g.Expect(err).To(HaveOccurred())
}
