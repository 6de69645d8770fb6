package guest_test

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/plan"
)

func TestAServiceIsMadeAndItsAddressSeen(t *testing.T) {
	w := newWorld(t, v1alpha1.AppsLoadBalancer)
	w.hasKubeconfig(w.kubeconfig())
	w.eventually("the hosted cluster", reached)
	w.apply(w.service())
	w.eventually("the Service", func(g *plan.Guest) bool { return g.Service != nil })
	live := w.live()
	live.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.168.100.200"}, {IP: "fd00::200"}}
	_, err := w.kube.CoreV1().Services(live.Namespace).UpdateStatus(w.ctx, live, metav1.UpdateOptions{})
	w.Expect(err).NotTo(HaveOccurred())
	seen := w.eventually("two addresses", func(g *plan.Guest) bool { return len(g.Service.Status.LoadBalancer.Ingress) == 2 })
	w.Expect(seen.Refused).To(BeEmpty())
	w.Expect(seen.Foreign).To(BeFalse())
}
