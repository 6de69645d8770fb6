package webhook_test

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/plan/input"
	"github.com/cldmnky/oooi/internal/webhook"
)

func TestFindingsReachWhoWrites(t *testing.T) {
	w := newWorld(t)
	w.operator()
	w.asked()
	w.told.taken()
	w.Expect(w.api.Create(w.ctx, w.infra("c1"), client.DryRunAll)).To(Succeed())
	w.Expect(w.told.taken()).To(ContainElement(HavePrefix("NADNotFound spec.networkConfig.networkAttachmentDefinition: ")))
	w.Expect(apierrors.IsNotFound(w.api.Get(w.ctx, client.ObjectKey{Namespace: w.ns, Name: "c1"}, &v1alpha1.Infra{}))).To(BeTrue(), "a dry run leaves nothing")

	w.hosts(w.ns, "c1")
	infra := w.infra("c1")
	infra.Spec.NetworkConfig.NetworkAttachmentDefinition = "c1-vlan"
	w.Eventually(func() []string { // the cache has to catch up
		w.told.taken()
		w.Expect(w.api.Create(w.ctx, infra.DeepCopy(), client.DryRunAll)).To(Succeed())
		return w.told.taken()
	}).Should(ConsistOf(HavePrefix("NoTimeSource spec.networkConfig.ntpServers: ")))
	w.Expect(w.api.Create(w.ctx, infra)).To(Succeed())
	w.Expect(w.told.taken()).To(ConsistOf(HavePrefix("NoTimeSource ")))

	// A write that leaves the spec alone gets no warnings; a change is judged as it will be stored.
	w.Expect(w.changes(infra, func() { infra.Labels = map[string]string{"a": "b"} })).To(Succeed())
	w.Expect(w.told.taken()).To(BeEmpty())
	w.Expect(w.changes(infra, func() { infra.Spec.NetworkConfig.DNSServers = []v1alpha1.IPAddress{"10.20.0.5"} })).To(Succeed())
	w.Expect(w.told.taken()).To(ContainElement(HavePrefix("DNSServersOutsideVLAN spec.networkConfig.dnsServers")))
}

// The warning is the same whether a HostedCluster may not be referred to or does not exist.
func TestAWarningTellsNothingOfWhatMayNotBeRead(t *testing.T) {
	w := newWorld(t)
	w.operator()
	w.asked()
	w.hosts("others", "present")
	asks := func(cluster string) []string {
		infra := w.infra("c1")
		infra.Spec.HostedClusterRef = &v1alpha1.HostedClusterReference{Name: v1alpha1.ObjectName(cluster), Namespace: "others"}
		w.told.taken()
		w.Expect(w.api.Create(w.ctx, infra, client.DryRunAll)).To(Succeed())
		return w.told.taken()
	}
	about := asks("present")
	w.Expect(about).To(ConsistOf(HavePrefix("RefNotPermitted spec.hostedClusterRef: ")))
	w.Expect(asks("missing")).To(ConsistOf(strings.ReplaceAll(about[0], "present", "missing")))
}

// images are objects of ours that choose an image, by the refusal that each gets.
func (w *world) images() map[string]client.Object {
	infra := w.infra("i")
	infra.Spec.InfraComponents.DNS.Image = "example.com/mine:1"
	at := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: w.ns, Name: name} }
	nad := v1alpha1.Attachment{NetworkAttachmentDefinition: "vlan"}
	dhcp := &v1alpha1.DHCPServer{ObjectMeta: at("d"), Spec: v1alpha1.DHCPServerSpec{Image: "example.com/mine:1"}}
	dhcp.Spec.NetworkConfig.Attachment, dhcp.Spec.NetworkConfig.CIDR, dhcp.Spec.NetworkConfig.ServerIP = nad, "192.168.100.0/24", "192.168.100.2"
	dhcp.Spec.LeaseConfig.RangeStart, dhcp.Spec.LeaseConfig.RangeEnd = "192.168.100.10", "192.168.100.20"
	dhcp.Spec.LeaseConfig.LeaseTime.Duration = time.Hour
	dns := &v1alpha1.DNSServer{ObjectMeta: at("n"), Spec: v1alpha1.DNSServerSpec{Image: "example.com/mine:1", HostedClusterDomain: "c1.example.com"}}
	dns.Spec.NetworkConfig.Attachment, dns.Spec.NetworkConfig.ServerIP = nad, "192.168.100.3"
	dns.Spec.NetworkConfig.SecondaryNetworkCIDR = "192.168.100.0/24"
	dns.Spec.CacheTTL.Duration = time.Minute
	proxy := &v1alpha1.ProxyServer{ObjectMeta: at("p"), Spec: v1alpha1.ProxyServerSpec{ManagerImage: "example.com/mine:1", ProxyImage: "example.com/envoy:1"}}
	proxy.Spec.NetworkConfig.Attachment, proxy.Spec.NetworkConfig.ServerIP = nad, "192.168.100.4"
	proxy.Spec.Backends = []v1alpha1.ProxyBackend{{Name: "a", Port: 443, Protocol: v1alpha1.ProtocolTCP, TargetService: "s", TargetPort: 443, TargetNamespace: v1alpha1.ObjectName(w.ns)}}
	const infras, images = `admission webhook "infras.hostedcluster.densityops.com" denied the request: `, `admission webhook "images.hostedcluster.densityops.com" denied the request: `
	because := func(field string) string {
		return "ImageOverrideNotAllowed: " + field + " is set; remove it, or run the operator with --allow-image-override"
	}
	return map[string]client.Object{
		infras + because("infraComponents.dns.image"):                   infra,
		images + because("image"):                                       dhcp,
		images + because("image") + " ":                                 dns,
		images + because("managerImage") + "; " + because("proxyImage"): proxy,
	}
}

func TestAnImageIsRefused(t *testing.T) {
	w := newWorld(t)
	w.operator()
	w.asked()
	for says, object := range w.images() {
		err := w.api.Create(w.ctx, object)
		w.Expect(apierrors.IsForbidden(err)).To(BeTrue(), "%T: %v", object, err)
		w.Expect(err.Error()).To(Equal(strings.TrimSpace(says)))
	}
}

func TestAnImageIsAllowedByTheFlag(t *testing.T) {
	w := newWorld(t)
	w.operator(func(s *input.Settings, _ *webhook.Options) { s.AllowImageOverride = true })
	w.Eventually(w.trusted).ShouldNot(BeEmpty())
	for _, object := range w.images() {
		w.Expect(w.api.Create(w.ctx, object)).To(Succeed())
	}
}

// An override written while it was allowed refuses neither other edits nor deletion.
func TestOnlyWhoWritesAnImageIsRefused(t *testing.T) {
	w := newWorld(t)
	var all []client.Object
	for _, object := range w.images() {
		w.Expect(w.api.Create(w.ctx, object)).To(Succeed()) // no webhook runs yet to refuse it
		all = append(all, object)
	}
	w.operator()
	w.asked()
	infra := w.infra("i")
	w.Expect(w.changes(infra, func() { infra.Spec.NetworkConfig.NTPServers = []v1alpha1.IPv4Address{"192.168.100.9"} })).To(Succeed())
	w.Expect(w.changes(infra, func() { infra.Spec.InfraComponents.DNS.Image = "example.com/mine:2" })).To(MatchError(apierrors.IsForbidden, "IsForbidden"))

	w.Expect(w.changes(infra, func() { controllerutil.AddFinalizer(infra, "example.com/hold") })).To(Succeed())
	w.Expect(w.api.Delete(w.ctx, infra)).To(Succeed())
	w.told.taken()
	w.Expect(w.changes(infra, func() { infra.Spec.InfraComponents.DNS.Image = "example.com/mine:3" })).To(Succeed(), "it is being deleted")
	w.Expect(w.changes(infra, func() { infra.Finalizers = nil })).To(Succeed())
	w.Expect(w.told.taken()).To(BeEmpty())
	for _, object := range all {
		w.Expect(client.IgnoreNotFound(w.api.Delete(w.ctx, object))).To(Succeed())
	}
}

func TestAnOperatorThatIsDownStopsNobody(t *testing.T) {
	w := newWorld(t)
	stop := w.operator()
	w.asked()
	infra := w.infra("c1")
	w.Expect(w.api.Create(w.ctx, infra)).To(Succeed())
	stop()
	w.Expect(w.changes(infra, func() { infra.Spec.NetworkConfig.NTPServers = []v1alpha1.IPv4Address{"192.168.100.9"} })).To(Succeed())
	w.Expect(w.api.Create(w.ctx, w.infra("c2"))).To(Succeed())
	w.Expect(w.api.Delete(w.ctx, w.infra("c2"))).To(Succeed())
	w.Expect(w.changes(infra, func() { infra.Finalizers = nil })).To(Succeed())
	w.Expect(client.IgnoreNotFound(w.api.Delete(w.ctx, infra))).To(Succeed())
}

// Webhooks that OLM makes have no matchConditions, so the handler itself leaves alone what these keep away.
func TestWithoutMatchConditionsADeletionIsLeftAloneToo(t *testing.T) {
	w := newWorld(t)
	configuration := w.configuration()
	w.Expect(w.changes(configuration, func() {
		for i := range configuration.Webhooks {
			configuration.Webhooks[i].MatchConditions = nil
		}
	})).To(Succeed())
	w.operator()
	w.asked() // by a configuration with a caBundle, so by one without matchConditions
	infra := w.infra("c1")
	controllerutil.AddFinalizer(infra, "example.com/test")
	w.told.taken()
	w.Expect(w.api.Create(w.ctx, infra)).To(Succeed())
	w.Expect(w.told.taken()).NotTo(BeEmpty())
	w.Expect(w.changes(infra, func() { infra.Labels = map[string]string{"a": "b"} })).To(Succeed())
	w.Expect(w.told.taken()).To(BeEmpty(), "the spec is as it was")
	mtu := func(n int32) func() { return func() { infra.Spec.NetworkConfig.MTU = n } }
	w.Expect(w.changes(infra, mtu(1400))).To(Succeed())
	w.Expect(w.told.taken()).NotTo(BeEmpty())
	w.Expect(w.api.Delete(w.ctx, infra)).To(Succeed())
	w.Expect(w.changes(infra, mtu(1300))).To(Succeed())
	w.Expect(w.told.taken()).To(BeEmpty(), "it is being deleted")
	w.Expect(w.changes(infra, func() { controllerutil.RemoveFinalizer(infra, "example.com/test") })).To(Succeed())
}
