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

// A registry with a private CA is trusted as soon as OpenShift's configuration says so, and not by a CA that is none.
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
}
