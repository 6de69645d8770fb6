package observe

import (
	"errors"
	"net/netip"
	"testing"

	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/component"
	"github.com/cldmnky/oooi/internal/nad"
	"github.com/cldmnky/oooi/internal/plan/input"
)

func TestTheClustersDomainIsItsResolversOwn(t *testing.T) {
	for text, want := range map[string]string{
		"search oooi-system.svc.cluster.local svc.cluster.local cluster.local\nnameserver 10.96.0.10\n": "cluster.local",
		"nameserver 1.1.1.1\nsearch a.svc.k8s.example.com svc.k8s.example.com. k8s.example.com":         "k8s.example.com",
		"search example.com\nnameserver 192.0.2.1\n":                                                    "",
		"search\n": "",
		"":         "",
	} {
		NewWithT(t).Expect(clusterDomain(text)).To(Equal(want), text)
	}
}

func TestTheClustersNetworks(t *testing.T) {
	node := &corev1.Node{Spec: corev1.NodeSpec{PodCIDRs: []string{"10.244.0.0/24", "fd00::/64"}}}
	node.Name = "n1"
	services := &networkingv1.ServiceCIDR{Spec: networkingv1.ServiceCIDRSpec{CIDRs: []string{"10.96.0.0/12"}}}
	services.Name = "kubernetes"
	openshift := &configv1.Network{Status: configv1.NetworkStatus{ClusterNetwork: []configv1.ClusterNetworkEntry{{CIDR: "10.128.0.0/14"}, {CIDR: "none"}}, ServiceNetwork: []string{"172.30.0.0/16"}}}
	openshift.Name = "cluster"
	written := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	for name, c := range map[string]struct {
		objects        []client.Object
		flags          input.Settings
		pods, services []string
	}{
		"of Kubernetes":      {[]client.Object{node, services}, input.Settings{}, []string{"10.244.0.0/24", "fd00::/64"}, []string{"10.96.0.0/12"}},
		"of OpenShift":       {[]client.Object{node, services, openshift}, input.Settings{}, []string{"10.128.0.0/14"}, []string{"172.30.0.0/16"}},
		"as the flags say":   {[]client.Object{node, services}, input.Settings{PodCIDRs: written, ServiceCIDRs: written}, []string{"10.0.0.0/8"}, []string{"10.0.0.0/8"}},
		"one flag of two":    {[]client.Object{openshift}, input.Settings{PodCIDRs: written}, []string{"10.0.0.0/8"}, []string{"172.30.0.0/16"}},
		"nobody says so yet": {nil, input.Settings{}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			scheme := runtime.NewScheme()
			g.Expect(errors.Join(clientgoscheme.AddToScheme(scheme), configv1.Install(scheme))).To(Succeed())
			reader := fake.NewClientBuilder().WithScheme(scheme).WithObjects(c.objects...).Build()
			kinds := NewKinds(true, true)
			for _, kind := range kinds.All() {
				kinds.Set(kind, true)
			}
			s, err := (&Observer{Reader: reader, Settings: c.flags, Kinds: kinds}).networks(t.Context())
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(texts(s.PodCIDRs)).To(Equal(c.pods))
			g.Expect(texts(s.ServiceCIDRs)).To(Equal(c.services))
		})
	}
}

func texts(all []netip.Prefix) (out []string) {
	for _, p := range all {
		out = append(out, p.String())
	}
	return out
}

func FuzzResolvConf(f *testing.F) {
	f.Add("search a.svc.cluster.local svc.cluster.local\n")
	f.Fuzz(func(_ *testing.T, text string) { clusterDomain(text) })
}

// What a proxy may lead to depends on these networks, and no flag is needed for them.
func TestAChildKnowsTheClustersNetworks(t *testing.T) {
	g, scheme := NewWithT(t), runtime.NewScheme()
	g.Expect(errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme), nad.AddToScheme(scheme), configv1.Install(scheme))).To(Succeed())
	node := &corev1.Node{Spec: corev1.NodeSpec{PodCIDRs: []string{"10.244.0.0/24"}}}
	proxy := &v1alpha1.ProxyServer{}
	node.Name, proxy.Name, proxy.Namespace = "n1", "p", "site"
	o := &Observer{Reader: fake.NewClientBuilder().WithScheme(scheme).WithObjects(node, proxy).Build(), Kinds: NewKinds(false, false)}
	of, _ := component.Of(proxy)
	seen, err := o.Child(t.Context(), of, client.ObjectKeyFromObject(proxy))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(seen.Settings.PodCIDRs).To(Equal(input.Prefixes("10.244.0.0/24")))
}
