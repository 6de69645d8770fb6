package webhook_test

import (
	"testing"

	. "github.com/onsi/gomega"
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/names"
)

// Whoever interrupts workers that run is told so, and not refused; who changes what they only hear of is not told.
func TestAChangeThatInterruptsWorkersIsWarnedOf(t *testing.T) {
	w := newWorld(t)
	w.operator()
	w.asked()
	w.hosts(w.ns, "c1")
	hc := stored(w, &hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "c1"}})
	hc.Status = hyperv1.HostedClusterStatus{
		Conditions: []metav1.Condition{}, ControlPlaneEndpoint: hyperv1.APIEndpoint{Host: "203.0.113.10", Port: 6443}, IgnitionEndpoint: "ignition.apps.example.com",
		OAuthCallbackURLTemplate: "https://oauth.apps.example.com:443/oauth2callback/[identity-provider-name]",
	}
	w.Expect(w.api.Status().Update(w.ctx, hc)).To(Succeed())
	infra := w.infra("c1")
	infra.Spec.NetworkConfig.NetworkAttachmentDefinition = "c1-vlan"
	w.Expect(w.api.Create(w.ctx, infra)).To(Succeed())
	runs := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: names.Workload(names.DNS, names.DNSServer("c1"))}}
	w.Eventually(func() error { return w.api.Get(w.ctx, client.ObjectKeyFromObject(runs), runs) }).Should(Succeed())

	warned := func(edit func(*v1alpha1.Infra)) []string {
		w.told.taken()
		w.Expect(w.changes(infra, func() { edit(infra) })).To(Succeed())
		return w.told.taken()
	}
	w.Eventually(func() []string { // the cache has to catch up
		return warned(func(i *v1alpha1.Infra) {
			on := ptr.Deref(i.Spec.InfraComponents.DNS.Enabled, true)
			i.Spec.InfraComponents.DNS.Enabled = ptr.To(!on)
		})
	}).Should(ContainElements("InterruptsWorkers: dns ends: it is switched off", "InterruptsWorkers: workers resolve no names any more"))
	w.Expect(warned(func(i *v1alpha1.Infra) { i.Spec.NetworkConfig.SearchDomains = []v1alpha1.DNSName{"example.com"} })).
		NotTo(ContainElement(HavePrefix("InterruptsWorkers")))
}
