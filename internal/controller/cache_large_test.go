package controller

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/dpf"
	"github.com/cldmnky/oooi/internal/kept"
	"github.com/cldmnky/oooi/internal/metallb"
	"github.com/cldmnky/oooi/internal/nad"
	"github.com/cldmnky/oooi/internal/names"
)

// custom are the cached kinds of custom resources, each with the fields of its spec that may fill an API server's 1.5 MiB.
var custom = []struct {
	object func() client.Object
	fill   string // JSON; %s is a list of 100,000 empty objects
}{
	{func() client.Object { return &v1alpha1.Infra{} }, `{"extraEndpoints":%s}`},
	{func() client.Object { return &v1alpha1.DHCPServer{} }, `{"reservations":%s}`},
	{func() client.Object { return &v1alpha1.DNSServer{} }, `{"staticEntries":%s}`},
	{func() client.Object { return &v1alpha1.ProxyServer{} }, `{"backends":%s}`},
	{func() client.Object { return &dpuv1.DPUHCPBridge{} }, ``},
	{func() client.Object { return &hyperv1.HostedCluster{} }, `{"services":%s}`},
	{func() client.Object { return &hyperv1.HostedControlPlane{} }, `{"services":%s}`},
	{func() client.Object { return &hyperv1.NodePool{} }, `{"config":%s}`},
	{func() client.Object { return &nad.NetworkAttachmentDefinition{} }, ``},
	{func() client.Object { return &dpf.DPUCluster{} }, ``},
	{func() client.Object { return &dpf.DPU{} }, ``},
	{func() client.Object { return &metallb.IPAddressPool{} }, ``},
	{func() client.Object { return &metallb.L2Advertisement{} }, ``},
}

// An editor of a namespace can make as many custom resources as the quota allows, each as large as the API server accepts.
func TestOfALargeCustomResourceTheOutlineIsKept(t *testing.T) {
	long := strings.Repeat("x", 256<<10)
	empty := "[" + strings.Repeat("{},", 100000) + "{}]"
	labels := map[string]string{}
	for i := range 4000 {
		labels[fmt.Sprintf("example.com/%d", i)] = long[:63]
	}
	for _, c := range custom {
		attacks := map[string]func(client.Object){
			"labels": func(o client.Object) { o.SetLabels(labels) },
			"finalizers": func(o client.Object) {
				o.SetFinalizers(append(slices.Repeat([]string{"example.com/wait"}, 60000), names.Finalizer))
			},
			"our own":     func(o client.Object) { o.SetAnnotations(map[string]string{names.AnnotationGiven: long}) },
			"annotations": func(o client.Object) { o.SetAnnotations(map[string]string{"example.com/a": long}) },
			"owners": func(o client.Object) {
				o.SetOwnerReferences(slices.Repeat([]metav1.OwnerReference{{Name: "a", UID: "b"}}, 10000))
			},
		}
		if c.fill != "" {
			attacks["{}"] = func(o client.Object) { fill(t, o, fmt.Sprintf(`{"spec":`+c.fill+`}`, empty)) }
		}
		for what, attack := range attacks {
			g, o := NewWithT(t), c.object()
			identified(o)
			attack(o)
			before := kept.Octets(o)
			left := trimmed(t, o)
			g.Expect(before).To(BeNumerically(">", 128<<10), "%T %s", o, what)
			g.Expect(kept.Octets(left)).To(BeNumerically("<", 100<<10), "%T %s", o, what)
			g.Expect([]string{left.GetNamespace(), left.GetName(), string(left.GetUID()), left.GetResourceVersion()}).To(Equal([]string{"a", "b", "u", "7"}), "%T %s", o, what)
			g.Expect(left.GetFinalizers()).To(ConsistOf(names.Finalizer), "%T %s", o, what)
			_, inPart := kept.InPart(left)
			g.Expect(inPart).To(Equal(what != "annotations"), "%T %s", o, what)
		}
	}
}

func identified(o client.Object) {
	o.SetNamespace("a")
	o.SetName("b")
	o.SetUID("u")
	o.SetResourceVersion("7")
	o.SetFinalizers([]string{names.Finalizer})
}

func fill(t *testing.T, o client.Object, text string) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), o); err != nil {
		t.Fatal(err)
	}
}

func trimmed(t *testing.T, o client.Object) client.Object {
	t.Helper()
	left, err := trim(o)
	if err != nil {
		t.Fatal(err)
	}
	return left.(client.Object)
}

// Only the cache marks objects: nobody can make an object count as too large by writing the mark.
func TestNobodyMarksAnObject(t *testing.T) {
	g := NewWithT(t)
	infra := &v1alpha1.Infra{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{names.AnnotationKeptInPart: "spec 400000", names.AnnotationPaused: "true"}}}
	_, inPart := kept.InPart(trimmed(t, infra).(*v1alpha1.Infra))
	g.Expect(inPart).To(BeFalse())
	g.Expect(infra.Annotations).To(Equal(map[string]string{names.AnnotationPaused: "true"}))
	list := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "b", Annotations: map[string]string{names.AnnotationKeptInPart: " 400000"}}}
	_, inPart = kept.InPart(trimmed(t, list))
	g.Expect(inPart).To(BeFalse())
}

// An outline keeps what others read of it: where it is, what it refers to, what it was given, and that it is being deleted.
func TestAnOutlineSaysWhatNeighboursReadOfIt(t *testing.T) {
	g, now := NewWithT(t), metav1.Now()
	infra := &v1alpha1.Infra{}
	identified(infra)
	infra.Generation, infra.DeletionTimestamp, infra.CreationTimestamp = 3, &now, now
	infra.Labels = map[string]string{names.LabelHostedCluster: "c1", "a": "b"}
	infra.Annotations = map[string]string{names.AnnotationGiven: `{"of":"a/b"}`}
	infra.OwnerReferences = []metav1.OwnerReference{{Name: "c1", UID: "c", Controller: new(true)}, {Name: "other"}}
	infra.Spec.HostedClusterRef = &v1alpha1.HostedClusterReference{Name: "c1"}
	infra.Spec.NetworkConfig = v1alpha1.NetworkConfig{CIDR: "10.0.0.0/24", NetworkAttachmentDefinition: "vlan100"}
	infra.Spec.InfraComponents.DNS.Enabled, infra.Spec.InfraComponents.DHCP.ServerIP = new(false), "10.0.0.9"
	infra.Spec.InfraComponents.DHCP.ExcludeRanges = []v1alpha1.AddressRange{{Start: "10.0.0.1", End: "10.0.0.2"}}
	infra.Spec.InfraComponents.DHCP.Reservations = make([]v1alpha1.Reservation, 10000)
	infra.Status.Addresses = []v1alpha1.AssignedAddress{{Component: "dns", IP: "10.0.0.3"}}
	want := infra.DeepCopy()
	want.Spec.InfraComponents.DHCP.Reservations = nil
	want.Labels, want.OwnerReferences = map[string]string{names.LabelHostedCluster: "c1"}, want.OwnerReferences[:1]
	left := trimmed(t, infra).(*v1alpha1.Infra)
	excess, _ := kept.InPart(left)
	g.Expect(excess.Part).To(Equal("spec"))
	delete(left.Annotations, names.AnnotationKeptInPart)
	g.Expect(left).To(Equal(want))
}

// The largest objects of any use are kept whole, and so are the children that result from them.
func TestWhatIsOfUseIsKept(t *testing.T) {
	infra := &v1alpha1.Infra{}
	for i := range 512 {
		infra.Spec.InfraComponents.DHCP.Reservations = append(infra.Spec.InfraComponents.DHCP.Reservations, v1alpha1.Reservation{
			MAC: v1alpha1.ClientMAC(fmt.Sprintf("02:00:00:00:%02x:%02x", i/256, i%256)), IP: "192.168.100.100", Hostname: fmt.Sprintf("worker-%038d", i)})
	}
	for range 32 {
		infra.Spec.ExtraEndpoints = append(infra.Spec.ExtraEndpoints, v1alpha1.ExtraEndpoint{Hostnames: slices.Repeat([]v1alpha1.DNSNameOrWildcard{v1alpha1.DNSNameOrWildcard(strings.Repeat("x", 80))}, 8)})
	}
	dns := &v1alpha1.DNSServer{}
	entry := v1alpha1.DNSEntry{Hostname: v1alpha1.DNSNameOrWildcard(strings.Repeat("x", 253)), IP: "192.168.100.100"}
	dns.Spec.StaticEntries, dns.Spec.InternalEntries = slices.Repeat([]v1alpha1.DNSEntry{entry}, 256), slices.Repeat([]v1alpha1.DNSEntry{entry}, 256)
	for _, o := range []client.Object{infra, dns} {
		left := trimmed(t, o)
		_, inPart := kept.InPart(left)
		NewWithT(t).Expect(inPart).To(BeFalse(), "%T takes %d octets", o, kept.Octets(o))
		t.Logf("%T takes %d octets", o, kept.Octets(o))
	}
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "b"}}
	service.Spec.Ports = slices.Repeat([]corev1.ServicePort{{Name: "https", Port: 443}}, 200)
	NewWithT(t).Expect(trimmed(t, service).(*corev1.Service).Spec.Ports).To(HaveLen(200))
}
