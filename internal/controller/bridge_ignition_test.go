package controller_test

import (
	"encoding/base64"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/internal/dpf"
	"github.com/cldmnky/oooi/internal/endpoint"
)

// refuses has the ignition server answer with a status; 0 is what the real server answers.
func (w templateWorld) refuses(status int) {
	if status == 0 {
		w.server.Answer(nil)
		return
	}
	w.server.Answer(func(r http.ResponseWriter, _ *http.Request) { r.WriteHeader(status) })
}

// token is a Secret as HyperShift's NodePool controller writes one beside the ignition server.
func (w templateWorld) token(secret, pool, token string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.controlPlane("b1"), Name: secret, Annotations: map[string]string{endpoint.TokenNodePool: w.ns + "/" + pool}},
		Data:       map[string][]byte{endpoint.TokenKey: []byte(token), endpoint.TokenRelease: []byte(release)},
	}
}

// rotates puts another token in the place of ours, whose ignition is that of a key, as HyperShift does each 5.5 hours.
func (w templateWorld) rotates(to, key string) {
	w.t.Helper()
	w.server.Has(to, ignitionOf(key))
	ours := w.token("token-b1-1a2b3c4d", "b1", "")
	w.changes(ours, func() { ours.Data[endpoint.TokenKey] = []byte(to) })
}

// tokens are those that the ignition server was shown.
func (w templateWorld) tokens() (all []string) {
	for _, heard := range w.server.Heard() {
		token, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(heard.Get("Authorization"), "Bearer "))
		w.Expect(err).NotTo(HaveOccurred())
		all = append(all, string(token))
	}
	return all
}

// The waits are those of a manager in use, which reads the token each 30 s.
func TestATemplateFollowsTheIgnitionOfItsNodePool(t *testing.T) {
	w := newTemplateWorld(t)
	w.refuses(http.StatusUnauthorized)
	w.granted()
	w.saysOf("b1", dpuv1.ConditionIgnitionConfigured, metav1.ConditionFalse, "IgnitionTokenRefused")
	for secret, pool := range map[string]string{"token-b1-00000000": "b1", "token-b1-workers-1a2b3c4d": "b1-workers", "token-b1-1a2b3c4c": "b2"} {
		w.creates(w.token(secret, pool, secret))
		w.server.Has(secret, ignitionOf(secret))
	}
	w.refuses(http.StatusNetworkAuthenticationRequired)
	w.saysOf("b1", dpuv1.ConditionIgnitionConfigured, metav1.ConditionFalse, "WaitingForIgnition")
	w.refuses(0)
	has := func(key string) func(Gomega, corev1.ConfigMap) {
		return func(g Gomega, m corev1.ConfigMap) { g.Expect(m.Data[dpf.TemplateKey]).To(ContainSubstring(key)) }
	}
	first := w.template(has("1a2b3c4d"))
	w.saysOf("b1", dpuv1.ConditionIgnitionConfigured, metav1.ConditionTrue, "Configured")

	w.rotates("second", "1a2b3c4d")
	w.Eventually(w.tokens).Should(ContainElement("second"))
	w.silent()
	w.Expect(w.template(has("1a2b3c4d")).ResourceVersion).To(Equal(first.ResourceVersion), "the ignition is the same")

	rotated := time.Now()
	w.rotates("third", "another key")
	w.template(has("another key"))
	w.Expect(time.Since(rotated)).To(BeNumerically("<", time.Minute))

	rotated = time.Now()
	w.rolledOut("b1", release, "5e6f7a8b") // a change of the NodePool's configuration
	w.template(has("5e6f7a8b"))
	w.Expect(time.Since(rotated)).To(BeNumerically("<", time.Minute))
	w.Expect(w.tokens()).To(HaveEach(BeElementOf("1a2b3c4d", "second", "third", "5e6f7a8b")), "none is another's, nor an older configuration's")
}

// deploys has the DPUDeployment's DPUs installed with a BFB and a flavor.
func (w templateWorld) deploys(bfb, flavor string) {
	w.t.Helper()
	deployment := w.foreign(dpf.ServiceGroupVersion.String(), "DPUDeployment", w.ns, "ovn", nil)
	w.changes(deployment, func() {
		for field, value := range map[string]string{"bfb": bfb, "flavor": flavor} {
			w.Expect(unstructured.SetNestedField(deployment.Object, value, "spec", "dpus", field)).To(Succeed())
		}
	})
}

// Whatever is wrong, the condition names what to mend and how. The template stays, unless DPF would install a DPU that must not be.
func TestWhatIsWrongWithATemplatesInputIsToldAndTheLastGoodOneStays(t *testing.T) {
	w := newTemplateWorld(t)
	flavors := map[string]*unstructured.Unstructured{}
	for name, octets := range map[string]int{"large": 200 << 10, "larger": 400 << 10, "largest": 1100 << 10} {
		flavors[name] = named(w.flavor(printable(octets)), w.ns, name)
		w.creates(flavors[name])
	}
	large := flavors["large"]
	refused := w.foreign(dpf.GroupVersion.String(), "DPUFlavor", w.ns, "refused", map[string]any{"configFiles": []any{
		map[string]any{"path": "/etc/motd", "raw": "hello"}, map[string]any{"path": "/etc/kubernetes/kubeconfig", "operation": "override", "raw": "mine"},
	}})
	w.creates(refused)
	says := func(reason string, parts ...string) {
		t.Helper()
		message := w.saysOf("b1", dpuv1.ConditionIgnitionConfigured, metav1.ConditionFalse, reason)
		for _, part := range parts {
			w.Expect(message).To(ContainSubstring(part))
		}
	}
	configured := func() {
		t.Helper()
		w.saysOf("b1", dpuv1.ConditionIgnitionConfigured, metav1.ConditionTrue, "Configured")
	}
	good := w.served()
	stays := func() {
		t.Helper()
		w.silent()
		w.template(func(g Gomega, m corev1.ConfigMap) { g.Expect(m.Data).To(Equal(good.Data)) })
	}

	w.creates(w.installs("second", "rhcos", "refused"))
	says("FlavorRefused", "DPUFlavor spec.configFiles[1].path", "/etc/kubernetes/kubeconfig", "take it out of the flavor")
	stays()
	w.Expect(w.api.Delete(w.ctx, w.dpu("second", "d1"))).To(Succeed())
	configured()

	w.creates(w.installs("second", "rhcos", "larger"))
	says("TemplateTooLarge", "DPUFlavor spec.configFiles", "a ConfigMap may have", "move large files from the flavor into an image")
	stays()
	w.Expect(w.api.Delete(w.ctx, w.dpu("second", "d1"))).To(Succeed())
	w.creates(w.installs("second", "rhcos", "largest"))
	says("ObjectTooLarge", "DPUFlavor "+w.ns+"/largest")
	stays()
	w.Expect(w.api.Delete(w.ctx, w.dpu("second", "d1"))).To(Succeed())
	w.deploys("rhcos", "large")
	configured()
	good = w.template(func(g Gomega, m corev1.ConfigMap) {
		g.Expect(len(m.Data[dpf.TemplateKey])).To(BeNumerically(">", 128<<10))
	})
	w.changes(large, func() { large.SetAnnotations(nil) })
	says("TemplateTooLarge", "DPUFlavor metadata.annotations", "annotate the flavor with "+dpf.AnnotationSkipSizeCheck)
	stays()
	w.deploys("rhcos", "plain")
	configured()

	good = w.template(func(g Gomega, m corev1.ConfigMap) { g.Expect(m.Data[dpf.TemplateKey]).To(ContainSubstring("1a2b3c4d")) })
	w.renders("b1", release, "5e6f7a8b", []byte(`{"ignition":{"version":"3.2.0"},"storage":{"files":[{"path":"etc/motd"}]}}`))
	says("IgnitionInvalid", "HyperShift's ignition", "$.storage.files.0.path", "see the NodePool's conditions")
	stays()

	gone := w.foreign(dpf.GroupVersion.String(), "BFB", w.ns, "rhcos", nil)
	w.Expect(w.api.Delete(w.ctx, gone)).To(Succeed())
	says("BFBNotFound", "BFB "+w.ns+"/rhcos", "DPUDeployment "+w.ns+"/ovn has it in spec.dpus.bfb", "create it, or use another")
	w.gone(&good)
}

// installs is a DPU that is installed with a BFB and a flavor.
func (w templateWorld) installs(name, bfb, flavor string) *unstructured.Unstructured {
	w.t.Helper()
	dpu := w.dpu(name, "d1")
	for field, value := range map[string]string{"bfb": bfb, "dpuFlavor": flavor} {
		w.Expect(unstructured.SetNestedField(dpu.Object, value, "spec", field)).To(Succeed())
	}
	return dpu
}

// printable is a text that does not get smaller by compression.
func printable(octets int) string {
	text := make([]byte, octets)
	for i := range text {
		text[i] = byte('0' + rand.IntN(75))
	}
	return string(text)
}
