package observe

import (
	"bytes"
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/component"
	"github.com/cldmnky/oooi/internal/names"
)

// Events only explain: a child whose pod is stuck is planned and reported without them.
func TestEventsThatCannotBeListedHideNoPod(t *testing.T) {
	g, s := NewWithT(t), newStage(t, "tenant")
	cache := s.Reader.(client.WithWatch)
	proxy, key := &v1alpha1.ProxyServer{}, types.NamespacedName{Namespace: "tenant", Name: "c1-proxy"}
	g.Expect(cache.Get(t.Context(), key, proxy)).To(Succeed())
	proxy.UID = "proxy"
	g.Expect(cache.Update(t.Context(), proxy)).To(Succeed())
	workload := &appsv1.Deployment{}
	workload.Namespace, workload.Name = "tenant", names.Workload(names.Proxy, "c1-proxy")
	workload.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(proxy, v1alpha1.GroupVersion.WithKind("ProxyServer"))}
	g.Expect(cache.Create(t.Context(), workload)).To(Succeed())
	pod := &corev1.Pod{}
	pod.Namespace, pod.Name, pod.CreationTimestamp = "tenant", "stuck", metav1.NewTime(time.Now().Add(-time.Minute))
	pod.Labels = map[string]string{names.LabelApp: names.Proxy, names.LabelInstance: "c1-proxy"}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}}}
	g.Expect(cache.Create(t.Context(), pod)).To(Succeed())
	s.Live = interceptor.NewClient(cache, interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, o ...client.ListOption) error {
		if _, are := list.(*corev1.NamespaceList); are {
			return c.List(ctx, list, o...)
		}
		return apierrors.NewForbidden(corev1.Resource("events"), "", nil)
	}})

	logged := &bytes.Buffer{}
	ctx := log.IntoContext(t.Context(), logr.FromSlogHandler(slog.NewTextHandler(logged, nil)))
	seen, err := s.Child(ctx, theProxy(), key)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(seen.Rollout.Pod).To(HaveField("Name", "stuck"))
	g.Expect(seen.Rollout.Pod.Warning).To(BeEmpty())
	g.Expect(seen.Infra).NotTo(BeNil(), "what is read after it")
	g.Expect(logged.String()).To(And(ContainSubstring("cannot be listed"), ContainSubstring("tenant/stuck")))
}

// A quota or Pod Security may keep a pod from being created: a StatefulSet reports it in an Event, a Deployment in a condition.
func TestWhyNoPodMayBeCreated(t *testing.T) {
	const why = `pods "x" is forbidden: exceeded quota: none`
	g, s := NewWithT(t), newStage(t, "tenant")
	cache := s.Reader.(client.WithWatch)
	meta := func(o client.Object, kind string) metav1.ObjectMeta {
		o.SetUID("server")
		return metav1.ObjectMeta{Namespace: "tenant", Name: "w", UID: "workload", OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(o, v1alpha1.GroupVersion.WithKind(kind))}}
	}
	dns, proxy := &v1alpha1.DNSServer{}, &v1alpha1.ProxyServer{}
	set := &appsv1.StatefulSet{ObjectMeta: meta(dns, "DNSServer")}
	deployment := &appsv1.Deployment{ObjectMeta: meta(proxy, "ProxyServer")}
	deployment.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Reason: "FailedCreate", Message: why}}
	for _, o := range []client.Object{set, deployment} {
		g.Expect(cache.Create(t.Context(), o)).To(Succeed())
	}
	s.Live = interceptor.NewClient(cache, interceptor.Funcs{List: func(_ context.Context, _ client.WithWatch, all client.ObjectList, opts ...client.ListOption) error {
		asked := client.ListOptions{}
		asked.ApplyOptions(opts)
		g.Expect(asked.FieldSelector.String()).To(ContainSubstring("involvedObject.uid=workload"))
		all.(*corev1.EventList).Items = []corev1.Event{{Reason: "FailedCreate", Message: why}}
		return nil
	}})

	key := types.NamespacedName{Namespace: "tenant", Name: "w"}
	ofProxy, ofDNS := Child{Component: theProxy()}, Child{}
	ofDNS.Server, ofProxy.Server = dns, proxy
	refused := func(of *Child) string {
		r, err := s.workload(t.Context(), of.Component, of.Server, key)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(r.Version).To(Equal(r.workload.GetResourceVersion()), "what was planned from")
		return r.Refused
	}
	g.Expect(refused(&ofDNS)).To(Equal("FailedCreate: " + why))
	g.Expect(refused(&ofProxy)).To(Equal("FailedCreate: " + why))

	set.Status.Replicas = 1
	g.Expect(cache.Status().Update(t.Context(), set)).To(Succeed())
	g.Expect(refused(&ofDNS)).To(BeEmpty(), "there is a pod, which says more itself")
}

func theProxy() component.Component {
	c, _ := component.Of(&v1alpha1.ProxyServer{})
	return c
}
