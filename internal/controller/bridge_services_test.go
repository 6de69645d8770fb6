package controller_test

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/internal/dpf"
)

// ofServices is an object of DPF's service group, with a spec.
func (w dpuWorld) ofServices(kind, name string, spec map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	u.SetGroupVersionKind(dpf.ServiceGroupVersion.WithKind(kind))
	return named(u, w.ns, name)
}

// deployment is a DPUDeployment with services, each with a template of its name.
func (w dpuWorld) deployment(name string, services ...string) *unstructured.Unstructured {
	all := map[string]any{}
	for _, s := range services {
		all[s] = map[string]any{"serviceTemplate": s, "serviceConfiguration": s}
	}
	port := map[string]any{"serviceInterface": map[string]any{"matchLabels": map[string]any{"uplink": "p0"}}}
	return w.ofServices("DPUDeployment", name, map[string]any{
		"dpus": map[string]any{"bfb": "b1", "flavor": "f1"}, "services": all,
		"serviceChains": map[string]any{"switches": []any{map[string]any{"ports": []any{port}}}},
	})
}

func (w dpuWorld) serviceTemplate(name string) *unstructured.Unstructured {
	source := map[string]any{"repoURL": "oci://example.com/charts", "chart": "theirs", "version": "1"}
	return w.ofServices("DPUServiceTemplate", name, map[string]any{"deploymentServiceName": name, "helmChart": map[string]any{"source": source}})
}

func (w dpuWorld) serviceConfiguration(name string) *unstructured.Unstructured {
	return w.ofServices("DPUServiceConfiguration", name, map[string]any{"deploymentServiceName": name})
}

func TestABridgeSaysWhatItsDPUDeploymentWaitsFor(t *testing.T) {
	w := newDPUWorld(t)
	w.grants()
	b := w.bridge()
	b.Spec.DPUDeploymentRef = &dpuv1.DPUDeploymentReference{Name: "cards"}
	w.creates(w.dpuCluster("d1", "example.com/hosted"), b)
	w.saysOf("b1", dpuv1.ConditionDPUClusterBound, metav1.ConditionTrue, "Bound")
	w.hyperShift("b1", "first")
	w.saysOf("b1", dpuv1.ConditionIgnitionConfigured, metav1.ConditionFalse, "DPUDeploymentNotFound")
	of := func(g Gomega, b *dpuv1.DPUHCPBridge) {
		g.Expect(meta.FindStatusCondition(b.Status.Conditions, dpuv1.ConditionServiceTemplatesReady)).To(BeNil())
	}
	sees(w.world, named(&dpuv1.DPUHCPBridge{}, w.ns, "b1"), of)

	w.creates(w.deployment("cards", "hbn", "ovn"), w.serviceConfiguration("hbn"), w.serviceConfiguration("ovn"), w.serviceTemplate("ovn"))
	w.Expect(w.saysOf("b1", dpuv1.ConditionServiceTemplatesReady, metav1.ConditionFalse, "ServiceTemplateNotFound")).To(ContainSubstring("needs DPUServiceTemplate hbn, which"))
	w.creates(w.serviceTemplate("hbn"))
	w.saysOf("b1", dpuv1.ConditionServiceTemplatesReady, metav1.ConditionTrue, "Found")
	w.Expect(w.api.Delete(w.ctx, w.serviceConfiguration("ovn"))).To(Succeed())
	w.Expect(w.saysOf("b1", dpuv1.ConditionServiceTemplatesReady, metav1.ConditionFalse, "ServiceConfigurationNotFound")).To(ContainSubstring("needs DPUServiceConfiguration ovn, which"))
	w.saysOf("b1", dpuv1.ConditionCSRAutoApprovalActive, metav1.ConditionTrue, "Watching")
	w.Expect(w.api.Delete(w.ctx, w.deployment("cards"))).To(Succeed())
	sees(w.world, named(&dpuv1.DPUHCPBridge{}, w.ns, "b1"), of)
}
