package cmd

import (
	"net/netip"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/cldmnky/oooi/internal/diffcli"
)

// A diff plans bridges with the flags of the operator that runs: the mapping of images is in its namespace, not where the command runs.
func TestADiffReadsTheOperatorsFlagsOfBridges(t *testing.T) {
	g := NewWithT(t)
	settings := func(args ...string) diffcli.Settings {
		t.Helper()
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "operators", Name: "oooi", Labels: map[string]string{"app.kubernetes.io/name": "oooi", "app.kubernetes.io/component": "manager"}}}
		d.Spec.Template.Spec.Containers = []corev1.Container{{Args: args}}
		s, err := diffcli.SettingsOf(t.Context(), fake.NewClientBuilder().WithObjects(d).Build(), "operators", settingsOf)
		g.Expect(err).NotTo(HaveOccurred())
		return s
	}
	s := settings("--bridge-virtual-ips=192.0.2.0/24", "--metallb-namespace=lb")
	g.Expect(s.Bridges.VirtualIPs).To(Equal([]netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}))
	g.Expect(s.Bridges.MetalLBNamespace).To(Equal("lb"))
	g.Expect(s.Bridges.Images).To(Equal(types.NamespacedName{Namespace: "operators", Name: blueFieldImages}))
	g.Expect(settings("--leader-election-namespace=elsewhere").Bridges.Images.Namespace).To(Equal("elsewhere"))
	g.Expect(settings("--dpu-bridge=false").Bridges).To(BeNil())
}
