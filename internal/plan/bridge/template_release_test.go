package bridge

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/cldmnky/oooi/internal/bfcfg"
)

// Else another version of ours could look the same.
func TestTheSamplesBecomeTemplates(t *testing.T) {
	has := map[string]bool{}
	for _, from := range samples() {
		if _, err := bfcfg.Template(from); err != nil {
			t.Errorf("zero-trust %v, MTU %d: %v", from.ZeroTrust, from.MTU, err)
		}
		pages := from.Flavor.Spec.SystemReservedResources != nil
		has["hugepages of the flavor"], has["hugepages of the kernel"] = has["hugepages of the flavor"] || pages, has["hugepages of the kernel"] || !pages
		from.Ignition = []byte(strings.ReplaceAll(string(from.Ignition), "/etc/crio/crio.conf", "/etc/other"))
		if _, err := bfcfg.Template(from); pages && err == nil {
			t.Error("hugepages of the flavor are not made from CRI-O's pause_image")
		}
		has[fmt.Sprint("zero-trust ", from.ZeroTrust)], has[fmt.Sprint("MTU ", from.MTU)] = true, true
		for _, file := range from.Flavor.Spec.ConfigFiles {
			has[file.Operation] = true
		}
	}
	for _, want := range []string{"zero-trust false", "zero-trust true", "MTU 0", "MTU 9000", "override", "append", "hugepages of the flavor", "hugepages of the kernel"} {
		if !has[want] {
			t.Errorf("no sample has %s", want)
		}
	}
	if !strings.Contains(whatIsMade(), "/etc/kubernetes/ ") {
		t.Error("what flavors may not write is missing")
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

func TestBugs182And215AnotherVersionMakesTemplatesAnew(t *testing.T) {
	before, ours := inputsOf(sample(false, 0)), templateVersion
	defer func() { templateVersion = ours }()
	templateVersion = func() string { return "another" }
	if inputsOf(sample(false, 0)) == before {
		t.Error("what an earlier version has made counts as this one's")
	}
}
