package controller_test

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cldmnky/oooi/api/v1alpha1"
)

// swollen are labels such as an editor of a namespace, or a tool, may give any object.
func swollen() map[string]string {
	labels := map[string]string{}
	for i := range 1500 {
		labels[fmt.Sprintf("example.com/%d", i)] = strings.Repeat("x", 63)
	}
	return labels
}

// An Infra that is too large to be kept goes on serving, reports that once, and neither takes another Infra's address nor loses one to it;
// made smaller, it is as any other; it can be deleted while it is too large.
func TestAnInfraThatIsTooLargeGoesOnServing(t *testing.T) {
	w := newWorld(t)
	w.hosts("c1")
	w.hosts("c2")
	infra, neighbour := w.smallest("c1"), w.smallest("c2")
	neighbour.Spec.NetworkConfig.NetworkAttachmentDefinition = "c1-vlan"
	for _, i := range []*v1alpha1.Infra{infra, neighbour} { // only one DHCP server may be on a VLAN
		i.Spec.InfraComponents.DHCP.Enabled = new(bool)
	}
	w.creates(infra)
	proxy := sees(w, named(&appsv1.Deployment{}, w.ns, "c1-proxy-deployment"), there)
	w.silent()
	has := sees(w, infra, there).Status.Addresses
	w.Expect(has).NotTo(BeEmpty())

	w.changes(infra, func() { infra.Labels, infra.Finalizers = swollen(), append(infra.Finalizers, "example.com/theirs") })
	w.Expect(w.says("c1", v1alpha1.ConditionAccepted, metav1.ConditionFalse, "ObjectTooLarge")).To(And(ContainSubstring("its metadata takes"), ContainSubstring("may take 128")))
	w.silent() // it is reported once
	w.changes(infra, func() { infra.Spec.NetworkConfig.DNSServers = []v1alpha1.IPAddress{"192.168.100.53"} })
	w.silent()
	w.Expect(sees(w, named(&v1alpha1.DNSServer{}, w.ns, "c1-dns"), there).Spec.UpstreamDNS).To(BeEmpty(), "its plan is frozen")
	w.Expect(sees(w, named(&appsv1.Deployment{}, w.ns, "c1-proxy-deployment"), there).UID).To(Equal(proxy.UID))

	w.creates(neighbour)
	sees(w, neighbour, func(g Gomega, i *v1alpha1.Infra) {
		g.Expect(i.Status.Addresses).To(HaveLen(len(has)))
		for _, theirs := range i.Status.Addresses {
			g.Expect(has).NotTo(ContainElement(HaveField("IP", theirs.IP)))
		}
	})
	w.silent()
	w.Expect(sees(w, infra, there).Status.Addresses).To(Equal(has))

	w.changes(infra, func() { infra.Labels = nil })
	sees(w, named(&v1alpha1.DNSServer{}, w.ns, "c1-dns"), func(g Gomega, s *v1alpha1.DNSServer) { g.Expect(s.Spec.UpstreamDNS).To(HaveLen(1)) })
	w.says("c1", v1alpha1.ConditionAccepted, metav1.ConditionTrue, "Valid")

	w.changes(infra, func() { infra.Labels = swollen() })
	w.says("c1", v1alpha1.ConditionAccepted, metav1.ConditionFalse, "ObjectTooLarge")
	w.Expect(w.api.Delete(w.ctx, infra)).To(Succeed())
	sees(w, infra, func(g Gomega, i *v1alpha1.Infra) {
		g.Expect(i.Finalizers).To(ConsistOf("example.com/theirs"), "ours alone is taken off")
	})
	w.changes(infra, func() { infra.Finalizers = nil })
	w.gone(infra)
}

// A child that is made by hand, or that somebody has made too large, is frozen, and so is its Infra.
func TestAChildThatIsTooLargeIsHeld(t *testing.T) {
	w := newWorld(t)
	w.hosts("c1")
	infra, dns := w.smallest("c1"), named(&v1alpha1.DNSServer{}, w.ns, "c1-dns")
	w.creates(infra)
	before := sees(w, dns, there)
	w.silent()
	was := before.DeepCopy()
	w.changes(dns, func() {
		for key, value := range swollen() {
			dns.Labels[key] = value
			dns.Labels[key+"-more"] = value
		}
	})
	w.Expect(w.says("c1", v1alpha1.ConditionAccepted, metav1.ConditionFalse, "ObjectTooLarge")).To(ContainSubstring("DNSServer " + w.ns + "/c1-dns"))
	sees(w, dns, func(g Gomega, s *v1alpha1.DNSServer) {
		g.Expect(s.Status.Conditions).To(ContainElement(And(HaveField("Type", v1alpha1.ConditionAccepted), HaveField("Reason", "ObjectTooLarge"))))
	})
	w.silent()
	w.changes(dns, func() { dns.Labels = was.Labels })
	w.says("c1", v1alpha1.ConditionAccepted, metav1.ConditionTrue, "Valid")
}
