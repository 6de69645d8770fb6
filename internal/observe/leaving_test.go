package observe

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/internal/component"
	"github.com/cldmnky/oooi/internal/names"
)

// A StatefulSet is gone before its pod is, and on a lost node that may take for ever: until then the daemon may serve.
func TestAnInstanceLeavesWithItsPod(t *testing.T) {
	g, s := NewWithT(t), newStage(t, "tenant")
	cache := s.Reader.(client.WithWatch)
	dhcp, _ := component.OfKind("DHCPServer")
	leaves := func() bool {
		seen, err := s.Child(t.Context(), dhcp, types.NamespacedName{Namespace: "tenant", Name: "c1-dhcp"})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(seen.Found).To(BeTrue())
		return seen.Leaving
	}
	server := dhcp.New()
	server.SetNamespace("tenant")
	server.SetName("c1-dhcp")
	g.Expect(client.IgnoreAlreadyExists(cache.Create(t.Context(), server))).To(Succeed())
	g.Expect(leaves()).To(BeFalse())
	for label, is := range map[string]bool{"": false, "1": true} {
		pod := &corev1.Pod{}
		pod.Namespace, pod.Name = "tenant", "pod"+label
		pod.Labels = map[string]string{names.LabelApp: names.DHCP, names.LabelInstance: "c1-dhcp"}
		if label != "" {
			pod.Labels[names.LabelOrdinal] = label
		}
		g.Expect(cache.Create(t.Context(), pod)).To(Succeed())
		g.Expect(leaves()).To(Equal(is), label)
		g.Expect(cache.Delete(t.Context(), pod)).To(Succeed())
	}
}
