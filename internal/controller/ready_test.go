package controller_test

import (
	"context"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/api/v1alpha1"
	ac "github.com/cldmnky/oooi/api/v1alpha1/applyconfiguration/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/names"
)

// saysWhy waits until an Infra's condition is False with a text in its message.
func (w *world) saysWhy(name, condition, text string) {
	w.t.Helper()
	sees(w, named(&v1alpha1.Infra{}, w.ns, name), func(g Gomega, i *v1alpha1.Infra) {
		c := meta.FindStatusCondition(i.Status.Conditions, condition)
		g.Expect(c).To(HaveValue(And(HaveField("Status", metav1.ConditionFalse), HaveField("Message", ContainSubstring(text)))), "all: %v", i.Status.Conditions)
	})
}

// dnsPod plays the StatefulSet controller: it makes the pod of c1's DNS, which does not run yet.
func (w *world) dnsPod(status corev1.PodStatus) *corev1.Pod {
	w.t.Helper()
	dns := named(&appsv1.StatefulSet{}, w.ns, "c1-dns-deployment")
	w.reports(dns, func() { dns.Status.ReadyReplicas = 0 })
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "c1-dns-0", Namespace: w.ns, Labels: dns.Spec.Template.Labels}, Spec: dns.Spec.Template.Spec}
	pod.Spec.NodeName = "n1"
	w.creates(pod)
	w.t.Cleanup(func() { w.Expect(w.api.Delete(context.Background(), pod, client.GracePeriodSeconds(0))).To(Succeed()) })
	w.reports(pod, func() { pod.Status = status })
	return pod
}

func TestAPodThatDoesNotStartSaysWhy(t *testing.T) {
	w := newWorld(t)
	w.hosts("c1")
	w.creates(w.withOneOfEach("c1"))
	w.settled("c1")
	t.Run("what the kubelet says in an event", func(*testing.T) {
		creating := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}
		pod := w.dnsPod(corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "dns", State: creating}}})
		for name, message := range map[string]string{"before": "an older one", "last": "plugin type=bridge failed: cannot use IPAM"} {
			at := metav1.NewTime(time.Now())
			if name == "before" {
				at = metav1.NewTime(at.Add(-time.Minute))
			}
			w.creates(&corev1.Event{
				ObjectMeta:     metav1.ObjectMeta{Name: "c1-dns-0." + name, Namespace: w.ns},
				InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: w.ns, Name: pod.Name, UID: pod.UID},
				Type:           corev1.EventTypeWarning, Reason: "FailedCreatePodSandBox", Message: message, LastTimestamp: at, FirstTimestamp: at,
			})
		}
		w.saysWhy("c1", v1alpha1.ConditionReady, "FailedCreatePodSandBox: plugin type=bridge failed: cannot use IPAM")
		pulling := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "not found"}}
		w.reports(pod, func() { pod.Status.ContainerStatuses[0].State = pulling })
		w.saysWhy("c1", v1alpha1.ConditionReady, "container dns: ImagePullBackOff: not found")
		at := metav1.NewTime(time.Now().Add(time.Second))
		w.creates(&corev1.Event{
			ObjectMeta:     metav1.ObjectMeta{Name: "c1-dns-0.probe", Namespace: w.ns},
			InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: w.ns, Name: pod.Name, UID: pod.UID},
			Type:           corev1.EventTypeWarning, Reason: "Unhealthy", Message: "Readiness probe failed: no answer", LastTimestamp: at, FirstTimestamp: at,
		})
		w.reports(pod, func() {
			pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
		})
		w.saysWhy("c1", v1alpha1.ConditionReady, "is not ready: Unhealthy: Readiness probe failed: no answer")
	})
	w.settled("c1")
}

// A lost node is reported with the command that has its pod replaced.
func TestAPodOnALostNodeSaysHowItIsReplaced(t *testing.T) {
	w := newWorld(t)
	w.hosts("c1")
	w.creates(w.withOneOfEach("c1"))
	w.settled("c1")
	lost := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	w.creates(lost)
	t.Cleanup(func() { w.Expect(w.api.Delete(context.Background(), lost)).To(Succeed()) })
	since := metav1.NewTime(time.Now().Add(-time.Hour).Truncate(time.Second))
	w.reports(lost, func() {
		lost.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, LastTransitionTime: since}}
	})
	w.dnsPod(corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}}})
	message := w.says("c1", v1alpha1.ConditionDNSReady, metav1.ConditionFalse, "NodeLost")
	w.Expect(message).To(And(ContainSubstring("since "+since.UTC().Format(time.RFC3339)), ContainSubstring("kubectl -n "+w.ns+" delete pod c1-dns-0 --force")))
}

func TestABackendThatIsAwayIsToldByTheInfra(t *testing.T) {
	w := newWorld(t)
	w.hosts("c1")
	w.creates(w.smallest("c1"))
	w.settled("c1")
	w.says("c1", v1alpha1.ConditionBackendsHealthy, metav1.ConditionTrue, "Answering")
	proxy := sees(w, named(&v1alpha1.ProxyServer{}, w.ns, names.ProxyServer("c1")), there)
	counted := answering(proxy)
	for _, b := range counted {
		if *b.Name == "ignition" {
			b.WithHealthy(0).WithMessage("service x/ignition has no ready pod")
		}
	}
	w.Expect(w.api.Status().Apply(w.ctx, ac.ProxyServer(proxy.Name, w.ns).WithStatus(ac.ProxyServerStatus().WithBackends(counted...)), client.FieldOwner("sidecar"), client.ForceOwnership)).To(Succeed())
	w.saysWhy("c1", v1alpha1.ConditionReady, "ignition: service x/ignition has no ready pod")
	infra := sees(w, named(&v1alpha1.Infra{}, w.ns, "c1"), there)
	healthy, all, _ := strings.Cut(infra.Status.HealthyBackends, "/")
	w.Expect([]string{healthy, all}).To(Equal([]string{"3", "4"}))
}

// Both Infras exist at once, and the older is refused: that wakes the newer.
func TestAnInfraThatIsRefusedStandsInNobodysWay(t *testing.T) {
	w := newWorld(t)
	w.hosts("c1")
	w.hosts("c2")
	refused, good := w.smallest("c1"), w.smallest("c2")
	refused.Spec.InfraComponents.DHCP.Image = "example.com/other:1"
	good.Spec.NetworkConfig.NetworkAttachmentDefinition = refused.Spec.NetworkConfig.NetworkAttachmentDefinition
	w.creates(refused, good)
	w.says("c1", v1alpha1.ConditionAccepted, metav1.ConditionFalse, "ImageOverrideNotAllowed")
	w.says("c2", v1alpha1.ConditionAccepted, metav1.ConditionTrue, "Valid")
	sees(w, named(&v1alpha1.DHCPServer{}, w.ns, names.DHCPServer("c2")), there)
	w.changes(refused, func() { refused.Spec.InfraComponents.DHCP.Image = "" })
	w.Expect(w.says("c1", v1alpha1.ConditionAccepted, metav1.ConditionFalse, "VLANInUse")).To(ContainSubstring("Infra c2 serves DHCP"), "who serves stays")
	w.says("c2", v1alpha1.ConditionAccepted, metav1.ConditionTrue, "Valid")
}
