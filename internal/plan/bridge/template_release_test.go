package bridge

import (
	"testing"

	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/cldmnky/oooi/internal/bfcfg"
)

// Else another version of ours could look the same.
func TestTheSamplesBecomeTemplates(t *testing.T) {
	for _, zeroTrust := range []bool{false, true} {
		if _, err := bfcfg.Template(sample(zeroTrust)); err != nil {
			t.Errorf("zero-trust %v: %v", zeroTrust, err)
		}
	}
}

func TestTheControlPlanesVersionIsReadWhereHyperShiftReportsIt(t *testing.T) {
	g := NewWithT(t)
	older := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"version": map[string]any{}}}}
	g.Expect(VersionIn(older)).To(Equal(ControlPlaneVersion{}))
	newer := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"controlPlaneVersion": map[string]any{
		"observedGeneration": int64(2), "desired": map[string]any{"version": "4.22.7"},
		"history": []any{map[string]any{"state": "Partial", "version": "4.22.7", "image": "quay.io/a@sha256:b", "startedTime": "2026-01-01T00:00:00Z"}},
	}}}}
	g.Expect(VersionIn(newer)).To(Equal(ControlPlaneVersion{History: []ControlPlaneUpdate{{State: configv1.PartialUpdate, Version: "4.22.7", Image: "quay.io/a@sha256:b"}}}))
	odd := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"controlPlaneVersion": "4.22.7"}}}
	_, err := VersionIn(odd)
	g.Expect(err).To(HaveOccurred())
}
