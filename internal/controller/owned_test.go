package controller

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/component"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/observe"
)

// What is written to a child's workloads was planned from the version that was read.
func TestAPlanIsOfTheWorkloadsThatWereRead(t *testing.T) {
	g := NewWithT(t)
	of, _ := component.Of(&v1alpha1.DNSServer{})
	seen := observe.Child{Component: of, Rollout: observe.Rollout{Workload: "c1-dns-deployment", Version: "7"}, Others: []observe.Rollout{{Workload: "c1-dns-1-deployment", Version: "8"}}}
	seen.Server = &v1alpha1.DNSServer{}
	seen.Server.SetNamespace("clusters")
	set := func(name string) finding.Object {
		return finding.Object{APIVersion: "apps/v1", Kind: "StatefulSet", Namespace: "clusters", Name: name}
	}
	g.Expect(childReconciler{of: of}.owner(seen).Read).To(Equal(map[finding.Object]string{set("c1-dns-deployment"): "7", set("c1-dns-1-deployment"): "8"}))
}
