package plan_test

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/onsi/gomega"
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/component"
	"github.com/cldmnky/oooi/internal/plan"
	"github.com/cldmnky/oooi/internal/plan/apps"
	"github.com/cldmnky/oooi/internal/plan/input"
	"github.com/cldmnky/oooi/internal/testkit/golden"
	"github.com/cldmnky/oooi/internal/testkit/stranger"
)

// appsCase is a hosted cluster with apps ingress; everything else comes from the case loadbalancer-with-hostname.
type appsCase struct {
	AppsIngress v1alpha1.AppsIngress
	// Infra and HostedCluster are merged into those of that case.
	Infra, HostedCluster json.RawMessage
	// Before is the Guest, and AppsIngressBefore the spec if it differed, from which the children were made; nil: there are none yet.
	AppsIngressBefore *v1alpha1.AppsIngress
	Before            *input.Guest
	Guest             *input.Guest
	// ProxyGone: the ProxyServer has been deleted since.
	ProxyGone bool
}

func TestAppsBecome(t *testing.T) {
	golden.Cases(t, "testdata/apps", []string{"case.yaml"}, func(t *testing.T, dir string) map[string]string {
		text, err := os.ReadFile(filepath.Join(dir, "case.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		var c appsCase
		if err := yaml.UnmarshalStrict(text, &c); err != nil {
			t.Fatal(err)
		}
		in := c.input(t)
		return map[string]string{"out.txt": appsOf(t, plan.Infra(in))}
	})
}

func (c appsCase) input(t *testing.T) input.Input {
	t.Helper()
	in := load(t, "testdata/loadbalancer-with-hostname/in.yaml").Inputs(settings())[0]
	in.HostedCluster.Status.KubeConfig = &corev1.LocalObjectReference{Name: "c1-admin-kubeconfig"}
	merge(t, in.Infra, c.Infra)
	c.AppsIngress.Enabled = true
	if c.Before != nil {
		before := c.AppsIngressBefore
		if before == nil {
			before = &c.AppsIngress
		}
		in.Infra.Spec.AppsIngress, in.Guest = before.DeepCopy(), c.Before
		in.Infra.Spec.AppsIngress.Enabled = true
		in.Children = children(t, plan.Infra(in))
	}
	if c.ProxyGone {
		in.Children = stranger.With(in.Children, component.Proxy, nil)
	}
	merge(t, in.HostedCluster, c.HostedCluster)
	in.Infra.Spec.AppsIngress, in.Guest = &c.AppsIngress, c.Guest
	return in
}

func merge[T v1alpha1.Infra | hyperv1.HostedCluster](t *testing.T, into *T, patch json.RawMessage) {
	t.Helper()
	if len(patch) == 0 {
		return
	}
	if err := json.Unmarshal(patch, into); err != nil {
		t.Fatal(err)
	}
}

// children are a plan's children as they are read back, after the proxy has got its Service.
func children(t *testing.T, p plan.InfraPlan) input.Children {
	t.Helper()
	all := input.Children{}
	for _, o := range p.Objects {
		c, is := component.Applied(o)
		if !is {
			continue
		}
		server := c.New()
		if err := yaml.Unmarshal([]byte(golden.YAML(t, o)), server); err != nil {
			t.Fatal(err)
		}
		all[c.Name] = server
	}
	if proxy := all.Proxy(); proxy != nil {
		proxy.Status.ServiceIP = "172.30.0.99"
	}
	return all
}

// appsOf is the part of a plan that concerns *.apps.
func appsOf(t *testing.T, p plan.InfraPlan) string {
	t.Helper()
	var out strings.Builder
	for _, f := range p.Findings {
		if f.Condition == v1alpha1.ConditionAppsIngressReady || f.Severity.Blocks() {
			fmt.Fprintf(&out, "%s %s: %s\n%s", f.Severity, f.Reason, f.Message, indented(f.YAML()))
		}
	}
	if p.Apps == nil {
		return out.String() + "no apps\n"
	}
	fmt.Fprintf(&out, "addresses %v, away %t\n", p.Apps.Addresses, p.Apps.Away)
	switch s := p.Apps.Service; {
	case p.Apps.Undecided:
		fmt.Fprintln(&out, "service as it is")
	case s == nil:
		fmt.Fprintln(&out, "service none")
	default:
		s.Labels = nil // the same on all planned objects
		fmt.Fprintf(&out, "service\n%s", indented(golden.YAML(t, s)))
	}
	for _, e := range p.Endpoints {
		if strings.HasPrefix(e.Name, "apps-") {
			fmt.Fprintf(&out, "endpoint %s %v:%d → %s (%s)\n", e.Name, e.Hostnames, e.Port, e.Backend, e.Source)
		}
	}
	made := children(t, p)
	if made.DNS() != nil {
		tell(&out, "vlan", made.DNS().Spec.StaticEntries)
		tell(&out, "pods", made.DNS().Spec.InternalEntries)
	}
	if made.Proxy() != nil {
		for _, b := range made.Proxy().Spec.Backends {
			if strings.HasPrefix(b.Name, "apps-") {
				fmt.Fprintf(&out, "proxy %s %s %d %q → %v, %s\n", b.Name, b.Protocol, b.Port, b.Hostname, b.TargetAddresses, b.Views)
			}
		}
	}
	if made.DHCP() != nil {
		fmt.Fprintf(&out, "never leased %v\n", made.DHCP().Spec.ExcludeRanges)
	}
	return out.String()
}

func tell(out io.Writer, view string, entries []v1alpha1.DNSEntry) {
	for _, e := range entries {
		if strings.HasPrefix(string(e.Hostname), "*.") {
			fmt.Fprintf(out, "%s %s %s\n", view, e.Hostname, e.IP)
		}
	}
}

func indented(text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		out.WriteString("    " + line)
	}
	return out.String()
}

// A wildcard that the Infra writes, or wrote before, is no address of *.apps, whatever it is the wildcard of.
func TestAWrittenWildcardIsNoAddressOfApps(t *testing.T) {
	for _, hostname := range []v1alpha1.DNSNameOrWildcard{"*.web.example.com", "*.apps.c1.example.com"} {
		g := gomega.NewWithT(t)
		in := appsCase{AppsIngress: v1alpha1.AppsIngress{Mode: v1alpha1.AppsLoadBalancer}, Guest: &input.Guest{Service: &corev1.Service{}}}.input(t)
		written := v1alpha1.DNSEntry{Hostname: hostname, IP: "192.168.100.230"}
		in.Infra.Spec.InfraComponents.DNS.StaticEntries = []v1alpha1.DNSEntry{written}
		for range 3 {
			p := plan.Infra(in)
			g.Expect(p.Apps.Addresses).To(gomega.BeEmpty())
			in.Children = children(t, p)
			g.Expect(in.Children.DNS().Spec.StaticEntries).To(gomega.ContainElement(written))
		}
		if in.Infra.Spec.InfraComponents.DNS.StaticEntries = nil; hostname == "*.web.example.com" {
			g.Expect(plan.Infra(in).Apps.Addresses).To(gomega.BeEmpty(), "the DNSServer has the entry still")
		}
	}
}

// An Infra does not lease what *.apps of a neighbour has or may get. If it leases that already, an older neighbour keeps only what its
// *.apps has, and a newer one nothing.
func TestNeighboursLeaveAppsAlone(t *testing.T) {
	for name, c := range map[string]struct {
		theirs int64 // creation time of the publishing neighbour; ours is 10
		serves bool
		want   []v1alpha1.AddressRange
	}{
		"of an older one": {5, false, []v1alpha1.AddressRange{{Start: "192.168.100.192", End: "192.168.100.207"}, {Start: "192.168.100.220", End: "192.168.100.220"}}},
		"of an older one, what it has, where we lease": {5, true, []v1alpha1.AddressRange{{Start: "192.168.100.220", End: "192.168.100.220"}}},
		"of a newer one, nothing that we lease":        {20, true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			g := gomega.NewWithT(t)
			apps := appsCase{Guest: &input.Guest{}}
			ours := apps.input(t)
			ours.Infra.Spec.AppsIngress = nil
			ours.Infra.Spec.InfraComponents.Proxy.Replicas = 1
			ours.Infra.CreationTimestamp = metav1.Unix(10, 0)
			ours.Infra.Spec.InfraComponents.DHCP.UnknownClients = v1alpha1.UnknownClientsIgnore
			if c.serves {
				ours.Children = children(t, plan.Infra(ours))
			}
			theirs := ours.Infra.DeepCopy()
			theirs.Name, theirs.UID, theirs.CreationTimestamp = "c2", "22222222-2222-2222-2222-222222222222", metav1.Unix(c.theirs, 0)
			theirs.Spec.InfraComponents.DHCP.Enabled = new(bool)
			theirs.Spec.AppsIngress = &v1alpha1.AppsIngress{Enabled: true, MetalLB: &v1alpha1.AppsMetalLB{IPAddressPoolRange: []v1alpha1.AddressOrRange{"192.168.100.192/28"}}}
			entries := []v1alpha1.DNSEntry{
				{Hostname: "*.apps.c2.example.com", IP: "192.168.100.220"},
				{Hostname: "api.c2.example.com", IP: "192.168.100.230"}, {Hostname: "*.web.c2.example.com", IP: "192.168.100.230"}, // of a proxy whose ProxyServer is gone
			}
			ours.Neighbours = []input.Neighbour{{Infra: theirs, NAD: ours.NAD, Children: input.Children{component.DNS: &v1alpha1.DNSServer{Spec: v1alpha1.DNSServerSpec{StaticEntries: entries}}}}}
			made := children(t, plan.Infra(ours))
			g.Expect(made.DHCP().Spec.ExcludeRanges).To(gomega.ConsistOf(c.want))
		})
	}
}

func TestAnExternalIPThatANeighbourLeasesIsNotFollowed(t *testing.T) {
	for name, c := range map[string]struct {
		theirs   int64 // creation time of the leasing neighbour; ours is 10
		followed bool
	}{"an older one": {5, false}, "a newer one": {20, true}} {
		t.Run(name, func(t *testing.T) {
			g := gomega.NewWithT(t)
			theirs := appsCase{}.input(t)
			pool := v1alpha1.DHCPLeaseConfig{RangeStart: "192.168.100.128", RangeEnd: "192.168.100.250"}
			leasing := input.Neighbour{Infra: theirs.Infra, NAD: theirs.NAD, Children: input.Children{component.DHCP: &v1alpha1.DHCPServer{Spec: v1alpha1.DHCPServerSpec{LeaseConfig: pool}}}}
			leasing.Infra.Name, leasing.Infra.CreationTimestamp, leasing.Infra.Status = "c2", metav1.Unix(c.theirs, 0), v1alpha1.InfraStatus{}
			ours := appsCase{Guest: &input.Guest{Service: &corev1.Service{}}}.input(t)
			ours.Guest.Service.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.168.100.200"}}
			ours.Infra.Spec.AppsIngress.MetalLB = &v1alpha1.AppsMetalLB{LoadBalancerClass: "metallb.io/metallb"}
			ours.Infra.CreationTimestamp = metav1.Unix(10, 0)
			ours.Infra.Spec.InfraComponents.DHCP.Enabled = new(bool)
			ours.Neighbours = []input.Neighbour{leasing}
			p := plan.Infra(ours)
			g.Expect(p.Frozen).To(gomega.BeFalse(), "%v", p.Findings)
			g.Expect(len(p.Apps.Addresses) > 0).To(gomega.Equal(c.followed), "%v", p.Findings)
		})
	}
}

func TestNobodyLooksIntoAHostedClusterThat(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*input.Input)
		looked bool
	}{
		"is published": {func(*input.Input) {}, true},
		"is published by an Infra that is let go": {func(in *input.Input) { in.Infra.DeletionTimestamp = &metav1.Time{} }, false},
		"is not": {func(in *input.Input) { in.Infra.Spec.AppsIngress.Enabled = false }, false},
		"was, and has something of ours": {func(in *input.Input) {
			in.Infra.Spec.AppsIngress, in.Infra.Status.AppsIngress = nil, &v1alpha1.AppsIngressStatus{Phase: v1alpha1.AppsReady}
		}, true},
		"names no kubeconfig": {func(in *input.Input) { in.HostedCluster.Status.KubeConfig = nil }, false},
		"goes":                {func(in *input.Input) { in.HostedCluster.DeletionTimestamp = &metav1.Time{} }, false},
		"is gone":             {func(in *input.Input) { in.HostedCluster = nil }, false},
		"we may not refer to": {func(in *input.Input) {
			in.Infra.Namespace = "elsewhere"
			in.Infra.Spec.HostedClusterRef.Namespace = "clusters"
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			g, in := gomega.NewWithT(t), appsCase{}.input(t)
			c.change(&in)
			access, looked := apps.AccessTo(in)
			g.Expect(looked).To(gomega.Equal(c.looked))
			if looked {
				g.Expect(access).To(gomega.Equal(apps.Access{
					Secret: types.NamespacedName{Namespace: "clusters", Name: "c1-admin-kubeconfig"}, Server: "https://kube-apiserver.clusters-c1.svc:6443",
					Service: types.NamespacedName{Namespace: "openshift-ingress", Name: "c1-apps"},
				}))
			}
		})
	}
}

func TestTheServiceOfAppsIsNamedAfterItsCluster(t *testing.T) {
	in := appsCase{}.input(t)
	in.HostedCluster.Name = "c1.prod"
	service, _ := apps.ServiceIn(in)
	gomega.NewWithT(t).Expect(service.Name).To(gomega.Equal("c1-prod-apps"))
}

// A mode that the Infra does not set is read from the hosted cluster.
func TestTheModeIsLookedForWhereTheInfraDecidesNone(t *testing.T) {
	for name, c := range map[string]struct {
		written v1alpha1.AppsIngress
		want    v1alpha1.AppsIngressMode
	}{
		"nothing is written": {v1alpha1.AppsIngress{}, ""},
		"a mode":             {v1alpha1.AppsIngress{Mode: v1alpha1.AppsHostNetwork}, v1alpha1.AppsHostNetwork},
		"of MetalLB":         {v1alpha1.AppsIngress{MetalLB: &v1alpha1.AppsMetalLB{}}, v1alpha1.AppsLoadBalancer},
	} {
		t.Run(name, func(t *testing.T) {
			access, looked := apps.AccessTo(appsCase{AppsIngress: c.written}.input(t))
			g := gomega.NewWithT(t)
			g.Expect(looked).To(gomega.BeTrue())
			g.Expect(access.Mode).To(gomega.Equal(c.want))
		})
	}
}
