package controller_test

import (
	"context"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/internal/names"
)

// imageStream is one as OpenShift's registry makes it at the first push.
func (w dpuWorld) imageStream(name string) *unstructured.Unstructured {
	w.t.Helper()
	s := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "image.openshift.io/v1", "kind": "ImageStream"}}
	s.SetNamespace(w.ns)
	s.SetName(name)
	return s
}

// ocpRegistry is OpenShift's registry, which takes what a token of the ServiceAccount pushes.
type ocpRegistry struct {
	host   string
	pushed atomic.Int32 // what was stored
	cuts   atomic.Int32 // uploads that are still to be cut off half-way
}

func (w dpuWorld) openShiftsRegistry() *ocpRegistry {
	w.t.Helper()
	o := &ocpRegistry{}
	images := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	server := httptest.NewTLSServer(http.HandlerFunc(func(a http.ResponseWriter, r *http.Request) {
		_, token, logsIn := r.BasicAuth()
		if !logsIn {
			a.Header().Set("WWW-Authenticate", `Basic realm="openshift"`)
			a.WriteHeader(http.StatusUnauthorized)
			return
		}
		if logsIn && strings.Count(token, ".") == 2 && r.Method == http.MethodPut {
			o.pushed.Add(1)
		}
		if r.Method == http.MethodPatch && o.cuts.Add(-1) >= 0 {
			_, _ = io.CopyN(io.Discard, r.Body, r.ContentLength/2)
			panic(http.ErrAbortHandler)
		}
		images.ServeHTTP(a, r)
	}))
	w.t.Cleanup(server.Close)
	o.host = strings.TrimPrefix(server.URL, "https://")
	return o
}

// ran plays HyperShift's record of the releases that a hosted cluster has run, the newest first.
func (w dpuWorld) ran(name string, images ...string) {
	w.t.Helper()
	hc := sees(w.world, named(&hyperv1.HostedCluster{}, w.ns, name), there)
	w.reports(hc, func() {
		hc.Status.Version = &hyperv1.ClusterVersionStatus{Desired: configv1.Release{Image: images[0]}}
		for _, image := range images {
			hc.Status.Version.History = append(hc.Status.Version.History, configv1.UpdateHistory{State: configv1.CompletedUpdate, Image: image, StartedTime: metav1.Now()})
		}
	})
}

// A bridge's image is copied into OpenShift's own registry before anything is made, and goes with the last bridge that uses it, or with its release.
func TestABridgesImageIsCopied(t *testing.T) {
	w := newDPUWorld(t)
	w.offers("v1", "ImageStream.image.openshift.io")
	source := httptest.NewTLSServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(source.Close)
	from := strings.TrimPrefix(source.URL, "https://") + "/layers"
	image, err := random.Image(1<<20, 3)
	w.Expect(err).NotTo(HaveOccurred())
	ref, err := name.ParseReference(from + ":4.20.4")
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(remote.Write(ref, image, remote.WithTransport(trusting()))).To(Succeed())

	const available = dpuv1.ConditionBlueFieldContainerImageAvailable
	mapping := named(&corev1.ConfigMap{}, "oooi-system", w.ns+"-images")
	w.changes(mapping, func() { mapping.Data = map[string]string{"repository": from, "cache": w.ns} })
	w.bridged()
	w.saysOf("b1", available, metav1.ConditionFalse, "CacheNotAvailable")
	config := &configv1.Image{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}}
	w.configures(config)
	theirs := w.openShiftsRegistry()
	host := theirs.host
	w.reports(config, func() { config.Status.InternalRegistryHostname = host })
	w.saysOf("b1", available, metav1.ConditionFalse, "CacheNotExposed")
	w.reports(config, func() { config.Status.ExternalRegistryHostnames = []string{host} })
	w.Expect(w.saysOf("b1", available, metav1.ConditionFalse, "CacheFailed")).To(ContainSubstring("kubectl kustomize config/components/image-cache | sed s/oooi-images/" + w.ns + "/ | kubectl apply -n " + w.ns + " -f -"))
	w.Expect(theirs.pushed.Load()).To(BeZero())
	w.Expect(w.left()).To(BeEmpty(), "nothing is made meanwhile")

	theirs.cuts.Store(1 << 30)
	w.creates(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "oooi-image-cache"}})
	w.appliesRole("image-cache", w.ns)
	w.Eventually(func() string { return w.saysOf("b1", available, metav1.ConditionFalse, "CacheFailed") }).Should(ContainSubstring(host + ": the connection was cut"))
	w.Expect(theirs.pushed.Load()).To(BeZero(), "nothing is whole")
	w.Expect(w.left()).To(BeEmpty(), "nothing is made meanwhile")
	theirs.cuts.Store(0)
	w.Expect(w.saysOf("b1", available, metav1.ConditionFalse, "CacheNotPulled")).To(ContainSubstring("oc policy add-role-to-group"))
	w.Expect(theirs.pushed.Load()).NotTo(BeZero(), "with a token")
	pull := named(&corev1.Secret{}, w.ns, "pull")
	w.changes(pull, func() { pull.Data[corev1.DockerConfigJsonKey] = []byte(`{"auths":{"` + host + `":{"auth":"eDp5"}}}`) })
	copied := host + "/" + w.ns + "/layers-4.20.4:4.20.4"
	w.Expect(w.saysOf("b1", available, metav1.ConditionTrue, "Found")).To(Equal(copied))
	sees(w.world, named(&corev1.ConfigMap{}, w.ns, names.BridgeIgnition("b1")), func(g Gomega, m *corev1.ConfigMap) { g.Expect(m.Data["config"]).To(ContainSubstring(copied)) })

	ours, former, others := w.imageStream("layers-4.20.4"), w.imageStream("layers-4.20.3"), w.imageStream("layers-4.20.5")
	w.creates(ours, former, others)
	installs := w.dpu("a", "d1")
	w.creates(installs)
	w.ran("b1", release, "example.com/release:4.20.3-multi")
	hc := sees(w.world, named(&hyperv1.HostedCluster{}, w.ns, "b1"), there)
	w.reports(hc, func() {
		meta.SetStatusCondition(&hc.Status.Conditions, metav1.Condition{Type: string(hyperv1.HostedClusterProgressing), Status: metav1.ConditionFalse, Reason: "AsExpected", ObservedGeneration: hc.Generation})
	})
	w.saysOf("b1", dpuv1.ConditionHostedClusterProgressing, metav1.ConditionFalse, "AsExpected")
	w.Expect(w.api.Get(w.ctx, client.ObjectKeyFromObject(former), former)).To(Succeed(), "a DPU may be installed with it")
	w.Expect(w.api.Delete(w.ctx, installs)).To(Succeed())
	w.gone(former)
	w.Expect(w.api.Get(w.ctx, client.ObjectKeyFromObject(ours), ours)).To(Succeed())

	w.Expect(w.api.Delete(w.ctx, w.bridge())).To(Succeed())
	w.gone(w.bridge())
	w.gone(ours)
	w.Expect(w.api.Get(context.Background(), client.ObjectKeyFromObject(others), others)).To(Succeed(), "who made that is not known")
	w.uninstalls("image.openshift.io")
}
