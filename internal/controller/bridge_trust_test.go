package controller_test

import (
	"context"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
)

// configures OpenShift until the test ends.
func (w dpuWorld) configures(all ...client.Object) {
	w.t.Helper()
	for _, o := range all {
		w.creates(o)
		w.t.Cleanup(func() { w.Expect(w.api.Delete(context.Background(), o)).To(Succeed()) })
	}
}

// A registry with a private CA is trusted as soon as OpenShift's configuration says so, and not by a CA that is none. DPUs trust
// the CAs of all servers, too.
func TestABridgesRegistryHasAPrivateCA(t *testing.T) {
	w := newDPUWorld(t)
	w.stop()
	w.registries = http.DefaultTransport.(*http.Transport).Clone()
	w.start()
	images := httptest.NewTLSServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(func() { w.registries.CloseIdleConnections(); images.Close() })
	host := strings.TrimPrefix(images.URL, "https://")
	mapping := named(&corev1.ConfigMap{}, "oooi-system", w.ns+"-images")
	w.changes(mapping, func() { mapping.Data = map[string]string{"repository": host + "/layers"} })
	w.bridged()
	const available = dpuv1.ConditionBlueFieldContainerImageAvailable
	w.Expect(w.saysOf("b1", available, metav1.ConditionFalse, "RegistryUnreachable")).To(ContainSubstring("signed by no CA"))

	w.Expect(client.IgnoreAlreadyExists(w.api.Create(w.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "openshift-config"}}))).To(Succeed())
	cas := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-config", Name: w.ns}, Data: map[string]string{strings.Replace(host, ":", "..", 1): "to be told"}}
	config, proxy := &configv1.Image{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}}, &configv1.Proxy{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}}
	config.Spec.AdditionalTrustedCA.Name = w.ns
	w.configures(config)
	w.saysOf("b1", available, metav1.ConditionFalse, "TrustedCANotFound")
	w.configures(cas)
	w.saysOf("b1", available, metav1.ConditionFalse, "TrustedCAInvalid")
	authority := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: images.Certificate().Raw}))
	w.changes(cas, func() { cas.Data = map[string]string{strings.Replace(host, ":", "..", 1): authority} })
	w.saysOf("b1", available, metav1.ConditionFalse, "ImageNotFound")

	w.changes(config, func() { config.Spec.AdditionalTrustedCA.Name = "" })
	w.saysOf("b1", available, metav1.ConditionFalse, "RegistryUnreachable")
	w.changes(cas, func() { cas.Data = map[string]string{"ca-bundle.crt": authority} })
	proxy.Spec.TrustedCA.Name = w.ns
	w.configures(proxy)
	w.saysOf("b1", available, metav1.ConditionFalse, "ImageNotFound")

	w.changes(mapping, func() { mapping.Data = map[string]string{"4.20.4": osImage} })
	trusts := func(text string) string {
		hc := sees(w.world, named(&hyperv1.HostedCluster{}, w.ns, "b1"), func(g Gomega, hc *hyperv1.HostedCluster) {
			g.Expect(hc.Spec.AdditionalTrustBundle).NotTo(BeNil())
			bundle := named(&corev1.ConfigMap{}, w.ns, hc.Spec.AdditionalTrustBundle.Name)
			g.Expect(w.api.Get(w.ctx, client.ObjectKeyFromObject(bundle), bundle)).To(Succeed())
			g.Expect(bundle.Data).To(Equal(map[string]string{"ca-bundle.crt": text}))
		})
		return hc.Spec.AdditionalTrustBundle.Name
	}
	first := trusts(authority)
	w.changes(cas, func() { cas.Data = map[string]string{"ca-bundle.crt": authority + authority} })
	w.Expect(trusts(authority + authority)).NotTo(Equal(first))
	w.gone(named(&corev1.ConfigMap{}, w.ns, first))
}
