package controller_test

import (
	"os"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/internal/dpf"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/testkit/envtest"
)

// leftByAnEarlierManager makes what an earlier version wrote for a bridge, word for word, as the operator's.
func (w templateWorld) leftByAnEarlierManager(b *dpuv1.DPUHCPBridge) []client.Object {
	w.t.Helper()
	w.Expect(names.BridgeTemplate("w1", "b1", "w1/rhcos", "w1/plain")).To(Equal("bfcfg-b1-0e55df6686"), "else DPF has two of it, or none, for a while")
	text, err := os.ReadFile("testdata/earlier.yaml")
	w.Expect(err).NotTo(HaveOccurred())
	template := names.BridgeTemplate(w.ns, "b1", w.ns+"/rhcos", w.ns+"/plain")
	all, err := envtest.Objects([]byte(strings.NewReplacer("$NAMESPACE", w.ns, "$OWNER", string(b.UID), "$TEMPLATE", template).Replace(string(text))), w.api.Scheme())
	w.Expect(err).NotTo(HaveOccurred())
	for _, o := range all {
		w.Expect(w.api.Create(w.ctx, o, client.FieldOwner(names.ManagerFieldOwner))).To(Succeed())
	}
	return all
}

// has is what an object says, without what the API server and HyperShift add.
func (w templateWorld) has(o client.Object) map[string]any {
	w.t.Helper()
	all, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	w.Expect(err).NotTo(HaveOccurred())
	all["metadata"] = o.GetLabels()
	delete(all, "status")
	return all
}

// A manager of another version takes over what an earlier one has made: the template becomes its own, in place, so that DPF has one all the time;
// nothing else changes but what says who applied it, each object is written once at most, and then nothing is.
func TestBugs182And215WhatAnEarlierManagerMadeIsTakenOver(t *testing.T) {
	w := newTemplateWorld(t)
	w.stop()
	b := w.bridge()
	b.Spec.DPUDeploymentRef = &dpuv1.DPUDeploymentReference{Name: "ovn"}
	w.grants()
	cluster := w.dpuCluster("d1", "example.com/hosted")
	cluster.Spec.Kubeconfig = names.BridgeKubeconfig(w.ns, "b1")
	w.creates(cluster, b)
	before := w.leftByAnEarlierManager(b)
	w.hyperShift("b1", "first")
	w.appliesRole("dpu-bridge", w.ignites("b1"))
	w.rolledOut("b1", release, "1a2b3c4d")
	earlier := w.template(func(Gomega, corev1.ConfigMap) {})
	since := len(w.calls.written())
	w.start()
	now := w.template(func(g Gomega, m corev1.ConfigMap) {
		g.Expect(m.Annotations[names.AnnotationTemplateInputs]).NotTo(Equal(earlier.Annotations[names.AnnotationTemplateInputs]))
	})
	w.Expect(now.UID).To(Equal(earlier.UID))
	w.Expect(now.Data).NotTo(Equal(earlier.Data), "this version makes another")
	w.Expect(now.Data[dpf.TemplateKey]).To(ContainSubstring("1a2b3c4d"))
	w.saysOf("b1", dpuv1.ConditionIgnitionConfigured, metav1.ConditionTrue, "Configured")
	w.saysOf("b1", dpuv1.ConditionReady, metav1.ConditionTrue, "Ready")
	w.silent()

	writes := map[string]int{}
	for _, call := range w.calls.written()[since:] {
		w.Expect(call).NotTo(HavePrefix("DELETE"))
		if !strings.HasSuffix(call, "/dpuhcpbridges/b1/status") {
			writes[call]++
		}
	}
	w.Expect(writes).To(HaveEach(1), "%v", writes)
	for _, was := range before {
		is := was.DeepCopyObject().(client.Object)
		w.Expect(w.api.Get(w.ctx, client.ObjectKeyFromObject(was), is)).To(Succeed())
		w.Expect(is.GetUID()).To(Equal(was.GetUID()), "%T %s", was, was.GetName())
		if was.GetName() != now.Name {
			w.Expect(w.has(is)).To(Equal(w.has(was)), "%T %s", was, was.GetName())
		}
	}
}
