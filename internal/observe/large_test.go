package observe

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/kept"
	"github.com/cldmnky/oooi/internal/names"
)

// swollen is what the cache has of an object with very many labels.
func swollen(object client.Object) client.Object {
	labels := map[string]string{}
	for key, value := range object.GetLabels() {
		labels[key] = value
	}
	for i := range 500 {
		labels[fmt.Sprintf("example.com/%d", i)] = strings.Repeat("x", 63)
	}
	object.SetLabels(labels)
	return kept.Of(object)
}

func placed(object client.Object, namespace, name string) client.Object {
	object.SetNamespace(namespace)
	object.SetName(name)
	return object
}

// A child knows which of its own objects, and of the Services that it names, are kept in part. Services with an address that it names do not
// count: anybody may make them, with any number of EndpointSlices.
func TestAChildKnowsWhatIsKeptInPart(t *testing.T) {
	g, s := NewWithT(t), newStage(t, "tenant")
	c, proxy, key := s.Reader.(client.Client), &v1alpha1.ProxyServer{}, types.NamespacedName{Namespace: "tenant", Name: "c1-proxy"}
	g.Expect(c.Get(t.Context(), key, proxy)).To(Succeed())
	proxy.UID = "proxy"
	for _, namespace := range []string{"tenant", "clusters-c1", "strangers"} {
		proxy.Spec.Backends = append(proxy.Spec.Backends, v1alpha1.ProxyBackend{TargetNamespace: v1alpha1.ObjectName(namespace), TargetService: "large"})
	}
	g.Expect(c.Update(t.Context(), proxy)).To(Succeed())
	owned := func(o client.Object) client.Object {
		o.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(proxy, v1alpha1.GroupVersion.WithKind("ProxyServer"))})
		return swollen(o)
	}
	behind := func(namespace, name string) client.Object {
		slice := placed(&discoveryv1.EndpointSlice{}, namespace, name+"-x")
		slice.SetLabels(map[string]string{discoveryv1.LabelServiceName: name})
		return swollen(slice)
	}
	for _, o := range []client.Object{
		owned(placed(&appsv1.Deployment{}, "tenant", names.Workload(names.Proxy, "c1-proxy"))), owned(placed(&corev1.ConfigMap{}, "tenant", names.EnvoyBootstrap("c1-proxy", 0))),
		swollen(placed(&corev1.Service{}, "tenant", "large")), behind("tenant", "large"),
		swollen(placed(&corev1.Service{}, "clusters-c1", "large")), behind("clusters-c1", "large"),
		swollen(placed(&corev1.Service{}, "strangers", "large")), behind("strangers", "large"),
		swollen(placed(&corev1.Service{}, "tenant", "another")), placed(&corev1.Service{}, "default", "kubernetes"), behind("default", "kubernetes"),
	} {
		g.Expect(c.Create(t.Context(), o)).To(Succeed())
	}
	seen, err := s.Child(t.Context(), theProxy(), key)
	g.Expect(err).NotTo(HaveOccurred())
	var inPart []string
	for _, o := range seen.InPart {
		inPart = append(inPart, fmt.Sprintf("%T %s/%s", o, o.GetNamespace(), o.GetName()))
	}
	g.Expect(inPart).To(ConsistOf(
		"*v1.Deployment tenant/"+names.Workload(names.Proxy, "c1-proxy"), "*v1.ConfigMap tenant/"+names.EnvoyBootstrap("c1-proxy", 0), "*v1.Service tenant/large", "*v1.EndpointSlice tenant/large-x",
	))
}
