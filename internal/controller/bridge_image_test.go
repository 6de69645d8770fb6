package controller_test

import (
	"context"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/internal/names"
)

// trusting connects to the registries of tests, which all have httptest's certificate.
var trusting = sync.OnceValue(func() *http.Transport {
	one := httptest.NewTLSServer(nil)
	defer one.Close()
	return one.Client().Transport.(*http.Transport).Clone()
})

// A bridge goes from waiting to found by itself; its own image wins, and when that is cleared the status follows.
func TestABridgesImageIsLookedUpUntilItIsThere(t *testing.T) {
	w := newDPUWorld(t)
	var down atomic.Bool
	var requests atomic.Int32
	working := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	images := httptest.NewTLSServer(http.HandlerFunc(func(a http.ResponseWriter, r *http.Request) {
		if requests.Add(1); down.Load() {
			a.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		working.ServeHTTP(a, r)
	}))
	t.Cleanup(images.Close)
	repository, mirror := w.ns+".example/layers", strings.TrimPrefix(images.URL, "https://")
	mapping := named(&corev1.ConfigMap{}, "oooi-system", w.ns+"-images")
	w.changes(mapping, func() { mapping.Data = map[string]string{"repository": repository} })
	w.bridged()
	const available = dpuv1.ConditionBlueFieldContainerImageAvailable
	set := &configv1.ImageTagMirrorSet{ObjectMeta: metav1.ObjectMeta{Name: w.ns}, Spec: configv1.ImageTagMirrorSetSpec{ImageTagMirrors: []configv1.ImageTagMirrors{{
		Source: w.ns + ".example", Mirrors: []configv1.ImageMirror{configv1.ImageMirror(mirror)}, MirrorSourcePolicy: configv1.NeverContactSource,
	}}}}
	w.saysOf("b1", available, metav1.ConditionFalse, "RegistryUnreachable") // nobody has that name
	w.creates(set)
	w.t.Cleanup(func() { w.Expect(w.api.Delete(context.Background(), set)).To(Succeed()) })
	w.Expect(w.saysOf("b1", available, metav1.ConditionFalse, "ImageNotFound")).To(HavePrefix(mirror + "/layers:4.20.4: does not exist: push it"))
	w.Expect(w.left()).To(BeEmpty())

	ref, err := name.ParseReference(mirror + "/layers:4.20.4")
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(remote.Write(ref, empty.Image, remote.WithTransport(trusting()))).To(Succeed())
	w.saysOf("b1", available, metav1.ConditionTrue, "Found")
	pins := func(image string) {
		w.t.Helper()
		sees(w.world, named(&corev1.ConfigMap{}, w.ns, names.BridgeIgnition("b1")), func(g Gomega, m *corev1.ConfigMap) { g.Expect(m.Data["config"]).To(ContainSubstring(image)) })
		sees(w.world, w.bridge(), func(g Gomega, b *dpuv1.DPUHCPBridge) { g.Expect(b.Status.BlueFieldContainerImage).To(Equal(image)) })
	}
	pins(repository + ":4.20.4")
	sees(w.world, named(&hyperv1.HostedCluster{}, w.ns, "b1"), there)

	b := w.bridge()
	w.changes(b, func() { b.Spec.MachineOSURL = osImage })
	w.saysOf("b1", available, metav1.ConditionTrue, "MachineOSImage")
	pins(osImage)
	w.changes(b, func() { b.Spec.MachineOSURL = "" })
	w.saysOf("b1", available, metav1.ConditionTrue, "Found")
	pins(repository + ":4.20.4")

	// A restart, while the registry is down, takes nothing away.
	found := meta.FindStatusCondition(sees(w.world, w.bridge(), there).Status.Conditions, available)
	w.stop()
	down.Store(true)
	w.start()
	w.changes(b, func() { b.Spec.Rebootstrap = dpuv1.NeverRebootstrap })
	after := sees(w.world, w.bridge(), func(g Gomega, b *dpuv1.DPUHCPBridge) { g.Expect(b.Status.ObservedGeneration).To(Equal(b.Generation)) })
	w.Expect(*meta.FindStatusCondition(after.Status.Conditions, available)).To(And(HaveField("Reason", "Found"), HaveField("LastTransitionTime", found.LastTransitionTime)))
	w.changes(mapping, func() { mapping.Data["repository"] += "-new" })
	w.Expect(w.saysOf("b1", available, metav1.ConditionFalse, "RegistryUnreachable")).To(ContainSubstring("answers 503"))
	ignition := sees(w.world, named(&corev1.ConfigMap{}, w.ns, names.BridgeIgnition("b1")), there)
	w.Expect(ignition.Data["config"]).To(ContainSubstring(repository+":4.20.4"), "what runs stays as it is")

	w.Expect(w.api.Delete(w.ctx, b)).To(Succeed())
	w.saysOf("b1", dpuv1.ConditionHostedClusterCleanup, metav1.ConditionFalse, dpuv1.ReasonCleanupInProgress)
	asked := requests.Load()
	w.Consistently(requests.Load, time.Second).Should(BeNumerically("<=", asked+1), "nobody looks for a bridge that goes")
}
