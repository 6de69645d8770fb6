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
	"github.com/cldmnky/oooi/internal/names"
)

// What the kubelet said only explains: a child whose pod is stuck is planned and reported without it.
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
	s.Live = interceptor.NewClient(cache, interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
		return apierrors.NewForbidden(corev1.Resource("events"), "", nil)
	}})

	logged := &bytes.Buffer{}
	ctx := log.IntoContext(t.Context(), logr.FromSlogHandler(slog.NewTextHandler(logged, nil)))
	seen, err := ReadChild(ctx, s.Observer, names.Proxy, key, &v1alpha1.ProxyServer{}, &v1alpha1.ProxyServerList{}, func(*v1alpha1.ProxyServer) References { return References{} })
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(seen.Rollout.Pod).To(HaveField("Name", "stuck"))
	g.Expect(seen.Rollout.Pod.Warning).To(BeEmpty())
	g.Expect(seen.Infra).NotTo(BeNil(), "what is read after it")
	g.Expect(logged.String()).To(ContainSubstring("listing the events of pod tenant/stuck"))
}
