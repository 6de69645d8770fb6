package controller_test

import (
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/names"
)

func TestAnInfraBecomesThreeServersThatRun(t *testing.T) {
	w := newWorld(t, cluster)
	w.hosts("c1")
	w.creates(w.smallest("c1"))
	w.settled("c1")
	w.says("c1", v1alpha1.ConditionReady, metav1.ConditionTrue, "Serving")
	w.says("c1", v1alpha1.ConditionProgressing, metav1.ConditionFalse, "Settled")
	w.says("c1", v1alpha1.ConditionDegraded, metav1.ConditionFalse, "AsExpected")

	service := sees(w, named(&corev1.Service{}, w.ns, names.Service("c1-proxy")), there)
	sees(w, named(&v1alpha1.DNSServer{}, w.ns, "c1-dns"), func(g Gomega, s *v1alpha1.DNSServer) {
		g.Expect(s.Spec.NetworkConfig.InternalProxyIP).To(BeEquivalentTo(service.Spec.ClusterIP))
	})
	proxy := sees(w, named(&appsv1.Deployment{}, w.ns, "c1-proxy-deployment"), there)
	w.Expect(proxy.Spec.Template.Annotations[names.AnnotationNetworks]).To(ContainSubstring("203.0.113.10/32"))
}
