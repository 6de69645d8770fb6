package guest_test

import (
	"net/http"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	accore "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/utils/ptr"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/plan/input"
)

// serving is a world in which our Service exists.
func serving(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, v1alpha1.AppsLoadBalancer)
	w.hasKubeconfig(w.kubeconfig())
	w.eventually("the hosted cluster", reached)
	w.apply(w.service())
	w.eventually("the Service", hasService)
	return w
}

func hasService(g *input.Guest) bool { return g.Service != nil }

func TestAServiceIsMadeAndItsAddressesSeen(t *testing.T) {
	w := serving(t)
	live := w.live()
	live.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.168.100.200"}, {IP: "fd00::200"}}
	_, err := w.kube.CoreV1().Services(live.Namespace).UpdateStatus(w.ctx, live, metav1.UpdateOptions{})
	w.Expect(err).NotTo(HaveOccurred())
	seen := w.eventually("two addresses", func(g *input.Guest) bool { return len(g.Service.Status.LoadBalancer.Ingress) == 2 })
	w.Expect(seen.Refused).To(BeEmpty())
	w.Expect(seen.Foreign).To(BeFalse())
	w.Expect(live.Labels).To(HaveKeyWithValue(names.LabelOwnerUID, "uid-"+w.infra.Namespace))
}

func TestWhatOthersChangeIsPutBack(t *testing.T) {
	for name, patch := range map[string]string{
		"a field taken":  `{"spec":{"selector":{"ingresscontroller.operator.openshift.io/deployment-ingresscontroller":"theirs"}}}`,
		"a port added":   `{"spec":{"ports":[{"name":"more","port":8080,"protocol":"TCP"}]}}`,
		"a policy added": `{"spec":{"externalTrafficPolicy":"Local"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			w := serving(t)
			before := w.live()
			_, err := w.kube.CoreV1().Services(before.Namespace).Patch(w.ctx, before.Name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "theirs"})
			w.Expect(err).NotTo(HaveOccurred())
			w.Eventually(func(g Gomega) {
				live := w.live()
				g.Expect(live.Spec.Selector).To(Equal(before.Spec.Selector))
				g.Expect(live.Spec.Ports).To(HaveLen(1))
				g.Expect(live.Spec.ExternalTrafficPolicy).To(Equal(before.Spec.ExternalTrafficPolicy))
				g.Expect(live.UID).To(Equal(before.UID))
			}).Should(Succeed())
		})
	}
}

func TestAServiceThatWasDeletedIsMadeAgain(t *testing.T) {
	w := serving(t)
	before := w.live()
	w.Expect(w.kube.CoreV1().Services(before.Namespace).Delete(w.ctx, before.Name, metav1.DeleteOptions{})).To(Succeed())
	w.Eventually(func() types.UID {
		if live := w.live(); live != nil {
			return live.UID
		}
		return before.UID
	}).ShouldNot(Equal(before.UID))
}

func TestARestoredInfraKeepsItsService(t *testing.T) {
	w := serving(t)
	before := w.live()
	w.clusters.Forget(w.infra)
	before.Labels[names.LabelOwnerUID], before.ManagedFields = "uid-of-before", nil
	_, err := w.kube.CoreV1().Services(ingress).Update(w.ctx, before, metav1.UpdateOptions{FieldManager: "backup"})
	w.Expect(err).NotTo(HaveOccurred())
	w.eventually("the Service", hasService)
	w.apply(w.service())
	w.Eventually(func() map[string]string { return w.live().Labels }).Should(HaveKeyWithValue(names.LabelOwnerUID, "uid-"+w.infra.Namespace))
	w.Expect(w.live().UID).To(Equal(before.UID))
	w.Expect(w.see().Foreign).To(BeFalse())
	w.Eventually(func() bool { done, _ := w.clusters.End(w.infra); return done }).Should(BeTrue())
	w.Expect(w.live()).To(BeNil())
}

func TestAServiceOfAFrozenInfraIsLetBe(t *testing.T) {
	w := serving(t)
	w.clusters.Freeze(w.infra)
	w.Expect(w.kube.CoreV1().Services(ingress).Delete(w.ctx, w.want.Service.Name, metav1.DeleteOptions{})).To(Succeed())
	w.eventually("that it is gone", func(g *input.Guest) bool { return g.Service == nil })
	w.Consistently(w.live, 2*time.Second).Should(BeNil())
	w.apply(w.service())
	w.eventually("the Service", hasService)
}

func TestAnAnnotationThatIsNoLongerWantedGoes(t *testing.T) {
	w := serving(t)
	w.apply(w.service(func(s *accore.ServiceApplyConfiguration) {
		s.WithAnnotations(map[string]string{"metallb.io/address-pool": "apps"})
	}))
	w.Eventually(func() map[string]string { return w.live().Annotations }).Should(HaveKey("metallb.io/address-pool"))
	w.apply(w.service())
	w.Eventually(func() map[string]string { return w.live().Annotations }).ShouldNot(HaveKey("metallb.io/address-pool"))
}

func TestAServiceThatIsNotOursIsLeftAlone(t *testing.T) {
	w := newWorld(t, v1alpha1.AppsLoadBalancer)
	theirs, err := w.kube.CoreV1().Services(ingress).Create(w.ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: w.want.Service.Name, Labels: map[string]string{names.LabelOwnerUID: "uid-of-another", names.LabelInfra: w.infra.Name, names.LabelInfraNamespace: "another"}},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 443}}},
	}, metav1.CreateOptions{})
	w.Expect(err).NotTo(HaveOccurred())
	front := w.behindFront("token-of-" + w.infra.Namespace)
	w.see()
	w.apply(w.service())
	w.eventually("a foreign Service", func(g *input.Guest) bool { return g.Foreign && g.Problem == nil })
	w.Consistently(w.live, 2*time.Second).Should(Equal(theirs))
	done, _ := w.clusters.End(w.infra)
	w.Expect(done).To(BeTrue(), "nothing of ours is there")
	w.Consistently(w.live, 2*time.Second).Should(Equal(theirs))
	w.Expect(front.writes()).To(BeEmpty())
	w.Expect(w.kube.CoreV1().Services(ingress).Delete(w.ctx, theirs.Name, metav1.DeleteOptions{})).To(Succeed())
}

func TestAServiceThatSomebodyMakesMeanwhileIsNotTakenOver(t *testing.T) {
	w := newWorld(t, v1alpha1.AppsLoadBalancer)
	f := w.behindFront("token-of-" + w.infra.Namespace)
	made := make(chan *corev1.Service, 1) // we may see their Service before their call returns
	meanwhile := sync.OnceFunc(func() {
		theirs := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: w.want.Service.Name}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 443}}}}
		theirs, err := w.kube.CoreV1().Services(ingress).Create(w.ctx, theirs, metav1.CreateOptions{})
		w.Expect(err).NotTo(HaveOccurred())
		made <- theirs
	})
	f.before(func(r *http.Request) {
		if r.Method == http.MethodPatch {
			meanwhile()
		}
	})
	w.eventually("the hosted cluster", reached)
	w.apply(w.service())
	seen := w.eventually("a foreign Service", func(g *input.Guest) bool { return g.Foreign })
	w.Expect(seen.Refused).To(BeEmpty())
	theirs := <-made
	w.Consistently(w.live, 2*time.Second).Should(Equal(theirs))
	w.Expect(w.kube.CoreV1().Services(ingress).Delete(w.ctx, theirs.Name, metav1.DeleteOptions{})).To(Succeed())
	w.eventually("ours", func(g *input.Guest) bool { return g.Service != nil && !g.Foreign })
}

func TestAnotherClassIsAnotherService(t *testing.T) {
	w := serving(t)
	before := w.live()
	w.apply(w.service(func(s *accore.ServiceApplyConfiguration) { s.Spec.WithLoadBalancerClass("example.com/other") }))
	w.Eventually(func(g Gomega) {
		live := w.live()
		g.Expect(live).NotTo(BeNil())
		g.Expect(live.UID).NotTo(Equal(before.UID))
		g.Expect(live.Spec.LoadBalancerClass).To(Equal(ptr.To("example.com/other")))
	}, 5*time.Second).Should(Succeed())
}

func TestWhatTheHostedClusterRefusesIsTold(t *testing.T) {
	w := newWorld(t, v1alpha1.AppsLoadBalancer)
	w.hasKubeconfig(w.kubeconfig())
	w.eventually("the hosted cluster", reached)
	w.apply(w.service(func(s *accore.ServiceApplyConfiguration) { s.Spec.WithLoadBalancerClass("no class\n") }))
	seen := w.eventually("the refusal", func(g *input.Guest) bool { return g.Refused != "" })
	w.Expect(seen.Refused).To(And(HavePrefix("422: "), ContainSubstring("loadBalancerClass"), Not(ContainSubstring("\n"))))
	w.apply(w.service())
	w.eventually("the Service", func(g *input.Guest) bool { return g.Service != nil && g.Refused == "" })
}

func TestTheEndRemovesOurServiceOnly(t *testing.T) {
	w := serving(t)
	w.Eventually(func() bool { done, _ := w.clusters.End(w.infra); return done }).Should(BeTrue())
	w.Expect(w.live()).To(BeNil())
}

func TestAServiceOfAnEarlierNameIsRemoved(t *testing.T) {
	w := serving(t)
	before := w.want.Service
	w.want.Service.Namespace = w.infra.Namespace
	w.see()
	w.apply(w.service())
	w.Eventually(w.live).ShouldNot(BeNil())
	w.want.Service = before
	w.Eventually(w.live).Should(BeNil())
}

func TestNothingIsWrittenOrAskedWhileNothingChanges(t *testing.T) {
	for _, mode := range []v1alpha1.AppsIngressMode{v1alpha1.AppsLoadBalancer, v1alpha1.AppsNodePort} {
		t.Run(string(mode), func(t *testing.T) {
			w := newWorld(t, mode)
			front := w.behindFront("secret-of-" + w.infra.Namespace)
			w.eventually("the hosted cluster", reached)
			w.apply(w.service())
			w.eventually("the Service", hasService)
			w.clusters.Forget(w.infra)
			w.see()
			w.apply(w.service()) // as after a restart of the manager
			w.eventually("the Service", hasService)
			before := len(front.calls())
			w.Consistently(func() []string { return front.calls()[before:] }, 5*time.Second).Should(Or(BeEmpty(), HaveEach(HavePrefix("watch "))))
			w.Expect(front.calls()).To(ContainElement(HavePrefix("watch /api/v1/services")))
			w.Expect(front.writes()).To(HaveLen(1), "one apply, by the first of two")
		})
	}
}
