package endpoint

import (
	"net/netip"
	"testing"

	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	routev1 "github.com/openshift/api/route/v1"
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/finding"
)

// controlPlane is that of c1, published as HyperShift's CLI does by default, except for the change.
func controlPlane(change func(*ControlPlane)) ControlPlane {
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: name, Namespace: "clusters-c1"}
	}
	service := func(name string, port int32) corev1.Service {
		return corev1.Service{ObjectMeta: meta(name), Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: port}}}}
	}
	route := func(name, host, to string) routev1.Route {
		return routev1.Route{ObjectMeta: meta(name), Spec: routev1.RouteSpec{Host: host, To: routev1.RouteTargetReference{Name: to}}}
	}
	cp := ControlPlane{
		Namespace: "clusters-c1",
		HostedCluster: &hyperv1.HostedCluster{
			ObjectMeta: metav1.ObjectMeta{Name: "c1", Namespace: "clusters"},
			Spec: hyperv1.HostedClusterSpec{DNS: hyperv1.DNSSpec{BaseDomain: "example.com"}, Services: []hyperv1.ServicePublishingStrategyMapping{
				{Service: hyperv1.APIServer, ServicePublishingStrategy: hyperv1.ServicePublishingStrategy{Type: hyperv1.LoadBalancer}},
			}},
			Status: hyperv1.HostedClusterStatus{
				ControlPlaneEndpoint: hyperv1.APIEndpoint{Host: "203.0.113.10", Port: 6443}, IgnitionEndpoint: "ignition.example.net",
				OAuthCallbackURLTemplate: "https://oauth.example.net:443/oauth2callback/[identity-provider-name]",
			},
		},
		Services: []corev1.Service{service("kube-apiserver", 6443), service("ignition-server-proxy", 443), service("oauth-openshift", 6443), service("konnectivity-server", 8091)},
		Routes:   []routev1.Route{route("konnectivity-server", "konnectivity.example.net", "konnectivity-server"), route("oauth", "oauth.example.net", "oauth-openshift")},
	}
	if change != nil {
		change(&cp)
	}
	return cp
}

func row(t *testing.T, table Table, name string) Endpoint {
	t.Helper()
	for _, e := range table.Endpoints {
		if e.Name == name {
			return e
		}
	}
	t.Fatalf("no endpoint %s in %v", name, table.Endpoints)
	return Endpoint{}
}

func TestOldControlPlanesServeIgnitionWithoutAProxy(t *testing.T) {
	cp := controlPlane(func(cp *ControlPlane) { cp.Services[1].Name = "ignition-server" })
	NewWithT(t).Expect(row(t, Read(cp), "ignition").Backend.String()).To(Equal("clusters-c1/ignition-server:443"))
}

func TestARouteLeadsToItsOwnService(t *testing.T) {
	cp := controlPlane(func(cp *ControlPlane) {
		cp.Routes = append(cp.Routes, routev1.Route{ObjectMeta: metav1.ObjectMeta{Name: "ignition-server", Namespace: "clusters-c1"}, Spec: routev1.RouteSpec{To: routev1.RouteTargetReference{Name: "oauth-openshift"}}})
	})
	NewWithT(t).Expect(row(t, Read(cp), "ignition").Backend.Service).To(Equal("oauth-openshift"))
}

func TestObjectsOfOtherNamespacesAreNotTaken(t *testing.T) {
	cp := controlPlane(func(cp *ControlPlane) {
		for i := range cp.Services {
			cp.Services[i].Namespace = "clusters-c2"
		}
		for i := range cp.Routes {
			cp.Routes[i].Namespace = "clusters-c2"
		}
	})
	table := Read(cp)
	g := NewWithT(t)
	g.Expect(table.Endpoints).To(BeEmpty())
	g.Expect(table.Findings()).To(Equal([]finding.Finding{{
		Condition: "EndpointsResolved", Reason: "WaitingForControlPlane", Severity: finding.Waiting, Of: Object(cp.HostedCluster), Field: "status",
		Message: "waiting for Service clusters-c1/kube-apiserver, Service clusters-c1/ignition-server-proxy, Service clusters-c1/oauth-openshift, Route clusters-c1/konnectivity-server",
	}}))
}

func TestWhatIsPublishedNowhereIsNotAwaited(t *testing.T) {
	cp := controlPlane(func(cp *ControlPlane) {
		for _, s := range []hyperv1.ServiceType{hyperv1.Ignition, hyperv1.OAuthServer, hyperv1.Konnectivity} {
			cp.HostedCluster.Spec.Services = append(cp.HostedCluster.Spec.Services, hyperv1.ServicePublishingStrategyMapping{Service: s, ServicePublishingStrategy: hyperv1.ServicePublishingStrategy{Type: hyperv1.None}})
		}
		cp.HostedCluster.Status.IgnitionEndpoint, cp.HostedCluster.Status.OAuthCallbackURLTemplate, cp.Routes = "", "", nil
	})
	table, g := Read(cp), NewWithT(t)
	g.Expect(table.Findings()).To(BeEmpty())
	g.Expect(table.Endpoints).To(HaveLen(1))
}

func TestNoNameIsComposedAndNoStandalonePortAppears(t *testing.T) {
	g := NewWithT(t)
	for _, e := range Read(controlPlane(nil)).Endpoints {
		g.Expect(e.Source).NotTo(Equal("Composed"))
		g.Expect(e.Port).NotTo(BeElementOf(int32(22623), int32(8132)))
		g.Expect(e.Hostnames).NotTo(ContainElement(HavePrefix("api-int.")))
	}
}

func TestHostsOfTheStatusAreRead(t *testing.T) {
	for text, want := range map[string]struct {
		host string
		port int32
	}{
		"ignition.example.net":       {"ignition.example.net", 443},
		"ignition.example.net:30443": {"ignition.example.net", 30443},
		"10.0.0.1:30443":             {"10.0.0.1", 30443},
		"10.0.0.1":                   {"10.0.0.1", 443},
		"[fd00::1]:30443":            {"fd00::1", 30443},
		"[fd00::1]":                  {"fd00::1", 443},
		"fd00::1":                    {"fd00::1", 443},
		"ignition.example.net:0":     {"ignition.example.net", 443},
		"ignition.example.net:http":  {"ignition.example.net", 443},
	} {
		host, port := splitHostPort(text, 443)
		NewWithT(t).Expect([]any{host, port}).To(Equal([]any{want.host, want.port}), text)
	}
}

func TestAHostThatIsNoNameIsRefused(t *testing.T) {
	cp := controlPlane(func(cp *ControlPlane) { cp.HostedCluster.Status.IgnitionEndpoint = "ignition_server.example.net;" })
	g := NewWithT(t)
	g.Expect(Read(cp).Findings()).To(ContainElement(HaveField("Message", `HostedCluster.status.ignitionEndpoint has host "ignition_server.example.net;", which is neither a DNS name nor an address`)))
	g.Expect(Read(cp).Names()).NotTo(ContainElement(ContainSubstring("ignition")))
}

// apps is a HostedCluster without a base domain: only the domain of its applications and its hostnames say anything.
func apps(domain string) func(*ControlPlane) {
	return func(cp *ControlPlane) {
		cp.HostedCluster.Spec.DNS.BaseDomain = ""
		cp.HostedCluster.Spec.Configuration = &hyperv1.ClusterConfiguration{Ingress: &configv1.IngressSpec{AppsDomain: domain}}
	}
}

func hostnames(api, oauth string) func(*ControlPlane) {
	return func(cp *ControlPlane) {
		cp.HostedCluster.Spec.DNS.BaseDomain = ""
		cp.HostedCluster.Spec.Services = []hyperv1.ServicePublishingStrategyMapping{
			{Service: hyperv1.APIServer, ServicePublishingStrategy: hyperv1.ServicePublishingStrategy{Type: hyperv1.LoadBalancer, LoadBalancer: &hyperv1.LoadBalancerPublishingStrategy{Hostname: api}}},
			{Service: hyperv1.OAuthServer, ServicePublishingStrategy: hyperv1.ServicePublishingStrategy{Type: hyperv1.Route, Route: &hyperv1.RoutePublishingStrategy{Hostname: oauth}}},
		}
	}
}

func TestTheDomainIsReadOrWritten(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*ControlPlane)
		want   string
	}{
		"the cluster's name and base domain": {nil, "c1.example.com"},
		"a prefix":                           {func(cp *ControlPlane) { cp.HostedCluster.Spec.DNS.BaseDomainPrefix = ptr.To("p") }, "p.example.com"},
		"an empty prefix":                    {func(cp *ControlPlane) { cp.HostedCluster.Spec.DNS.BaseDomainPrefix = ptr.To("") }, "example.com"},
		"a written base domain":              {func(cp *ControlPlane) { cp.BaseDomain = "corp.net" }, "c1.corp.net"},
		"a written name":                     {func(cp *ControlPlane) { cp.ClusterName = "x" }, "x.example.com"},
		"of *.apps":                          {apps("apps.c1.lab.net"), "c1.lab.net"},
		"of *.apps that others may share":    {apps("apps.lab.net"), "c1.lab.net"},
		"*.apps beside a base domain": {func(cp *ControlPlane) {
			apps("apps.c1.lab.net")(cp)
			cp.HostedCluster.Spec.DNS.BaseDomain = "example.com"
		}, "c1.example.com"},
		"*.apps of another form":            {apps("c1-apps.lab.net"), "c1."},
		"of all hostnames":                  {hostnames("api.c1.lab.net", "oauth.c1.lab.net"), "c1.lab.net"},
		"of hostnames beside each other":    {hostnames("api-c1.lab.net", "oauth-c1.lab.net."), "c1.lab.net"},
		"of hostnames below each other":     {hostnames("api.c1.lab.net", "oauth.APPS.c1.lab.net"), "c1.lab.net"},
		"of hostnames with a registry only": {hostnames("api.lab.net", "oauth.example.net"), "c1."},
		"of addresses":                      {hostnames("203.0.113.10", "203.0.113.11"), "c1."},
		"of hostnames, without a prefix": {func(cp *ControlPlane) {
			hostnames("api.c1.lab.net", "oauth.c1.lab.net")(cp)
			cp.HostedCluster.Spec.DNS.BaseDomainPrefix = ptr.To("")
		}, "c1.lab.net"},
		"*.apps before hostnames": {func(cp *ControlPlane) {
			hostnames("api.c1.corp.net", "oauth.c1.corp.net")(cp)
			apps("apps.c1.lab.net")(cp)
		}, "c1.lab.net"},
		"of a node port's address": {func(cp *ControlPlane) {
			hostnames("", "")(cp)
			cp.HostedCluster.Spec.Services[0].NodePort = &hyperv1.NodePortPublishingStrategy{Address: "node1.lab.net"}
		}, "c1."},
		"without a HostedCluster": {func(cp *ControlPlane) { cp.HostedCluster, cp.ClusterName, cp.BaseDomain = nil, "x", "corp.net" }, "x.corp.net"},
	} {
		NewWithT(t).Expect(controlPlane(c.change).Domain()).To(Equal(c.want), name)
	}
}

func TestIPEndpointsAreCapturedLeftAloneOrRefused(t *testing.T) {
	vlan := VLAN{CIDR: netip.MustParsePrefix("192.168.100.0/24"), VIP: netip.MustParseAddr("192.168.100.3"),
		Cluster: []netip.Prefix{netip.MustParsePrefix("10.128.0.0/14"), netip.MustParsePrefix("172.30.0.0/16")}}
	for published, want := range map[string]string{
		"203.0.113.10":    "captured",
		"10.30.0.11":      "captured",
		"192.168.100.200": "left alone",
		"192.168.100.3":   "left alone",
		"10.129.3.4":      "refused",
		"172.30.0.1":      "refused",
		"127.0.0.1":       "refused",
		"169.254.169.254": "refused",
		"224.0.0.1":       "refused",
		"255.255.255.255": "refused",
		"0.0.0.0":         "refused",
		"2001:db8::1":     "refused",
		"::ffff:10.1.1.1": "captured", // the same as 10.1.1.1
	} {
		cp := controlPlane(func(cp *ControlPlane) { cp.HostedCluster.Status.ControlPlaneEndpoint.Host = published })
		captured, findings := Read(cp).CapturedAddresses(vlan)
		got := "left alone"
		switch {
		case len(findings) > 0 && len(captured) == 0:
			got = "refused"
		case len(captured) == 1 && len(findings) == 0 && captured[0].IP == netip.MustParseAddr(published).Unmap():
			got = "captured"
		}
		NewWithT(t).Expect(got).To(Equal(want), published)
	}
}

func TestAnExtraEndpointsAddressMustBeAdmitted(t *testing.T) {
	everything := []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}
	for target, want := range map[string]string{
		"10.20.0.5:443":         "",
		"[fd00::5]:443":         "",
		"[::ffff:127.0.0.1]:80": "AddressNotAllowed",
		"127.0.0.1:2379":        "AddressNotAllowed",
		"169.254.169.254:80":    "AddressNotAllowed",
		"10.20.0.5:0":           "InvalidAddress",
		"10.20.0.999:1":         "InvalidAddress",
	} {
		extra := []v1alpha1.ExtraEndpoint{{Name: "x", Port: 5000, Protocol: v1alpha1.ProtocolTCP, Target: v1alpha1.EndpointTarget{Addresses: []string{target}}}}
		reason := ""
		for _, f := range (Table{}).With(extra, "clusters", everything).Findings() {
			reason = f.Reason
		}
		NewWithT(t).Expect(reason).To(Equal(want), target)
	}
}

// FuzzHosts: what a status, a Route or a NodePort address has becomes DNS records and server names.
func FuzzHosts(f *testing.F) {
	for _, seed := range []string{"ignition.example.net:443", "[fd00::1]:1", "10.0.0.1", "a..b", "*.x", "x\n", "https://", "[::1%eth0]:5"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		host, port := splitHostPort(text, 443)
		if port < 1 || port > 65535 {
			t.Fatalf("%q has port %d", text, port)
		}
		table := Table{}
		table.add(Endpoint{Name: "x", Protocol: v1alpha1.ProtocolTCP}, host)
		if len(table.Endpoints) > 0 && len(table.Endpoints[0].Hostnames)+len(table.Endpoints[0].PublishedIPs) != 1 && len(table.Findings()) == 0 {
			t.Fatalf("%q vanished", text)
		}
		_, _ = table.CapturedAddresses(VLAN{CIDR: netip.MustParsePrefix("10.0.0.0/24")})
	})
}

// A NodePort address is judged before it can be dialled; one that nothing will dial is not captured.
func TestAnAddressOfNoEndpointIsJudgedOnlyWhileOneIsAwaited(t *testing.T) {
	vlan := VLAN{CIDR: netip.MustParsePrefix("192.168.100.0/24")}
	oauth := hyperv1.ServicePublishingStrategyMapping{Service: hyperv1.OAuthServer, ServicePublishingStrategy: hyperv1.ServicePublishingStrategy{
		Type: hyperv1.NodePort, NodePort: &hyperv1.NodePortPublishingStrategy{Address: "198.51.100.9"},
	}}
	oidc := func(cp *ControlPlane) {
		cp.HostedCluster.Spec.Services = append([]hyperv1.ServicePublishingStrategyMapping{oauth}, cp.HostedCluster.Spec.Services...)
		cp.HostedCluster.Spec.Configuration = &hyperv1.ClusterConfiguration{Authentication: &configv1.AuthenticationSpec{Type: configv1.AuthenticationTypeOIDC}}
	}
	g := NewWithT(t)
	captured, _ := Read(controlPlane(oidc)).CapturedAddresses(vlan)
	g.Expect(captured).NotTo(ContainElement(HaveField("IP", netip.MustParseAddr("198.51.100.9"))))

	captured, _ = Read(controlPlane(func(cp *ControlPlane) {
		oidc(cp)
		cp.HostedCluster.Status = hyperv1.HostedClusterStatus{}
	})).CapturedAddresses(vlan)
	g.Expect(captured).To(ContainElement(HaveField("IP", netip.MustParseAddr("198.51.100.9"))))
}

func TestServicesOfTheHostedControlPlaneStandInForThoseOfTheHostedCluster(t *testing.T) {
	cp := controlPlane(func(cp *ControlPlane) {
		hostnames("api.c1.lab.net", "oauth.c1.lab.net")(cp)
		cp.HostedControlPlane = &hyperv1.HostedControlPlane{Spec: hyperv1.HostedControlPlaneSpec{Services: cp.HostedCluster.Spec.Services}}
		cp.HostedControlPlane.Spec.Services[0].Type = hyperv1.NodePort
		cp.HostedCluster.Spec.Services = nil
	})
	g := NewWithT(t)
	g.Expect(cp.Domain()).To(Equal("c1.lab.net"))
	g.Expect(row(t, Read(cp), "api").Protocol).To(Equal(v1alpha1.ProtocolTCP), "published by NodePort")
}

// Workers that were not replaced yet dial the previous address.
func TestTheAPIsFormerAddressIsKeptWhileItsServiceIsThere(t *testing.T) {
	cp := controlPlane(func(cp *ControlPlane) {
		cp.HostedCluster.Status.ControlPlaneEndpoint.Host = "api.c1.example.com"
		cp.Services = append(cp.Services, corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: "kube-apiserver-transition", Namespace: "clusters-c1"},
			Status:     corev1.ServiceStatus{LoadBalancer: corev1.LoadBalancerStatus{Ingress: []corev1.LoadBalancerIngress{{IP: "203.0.113.10"}}}},
		})
	})
	api := row(t, Read(cp), "api")
	g := NewWithT(t)
	g.Expect(api.Hostnames).To(HaveExactElements("api.c1.example.com"))
	g.Expect(api.PublishedIPs).To(HaveExactElements(netip.MustParseAddr("203.0.113.10")))
	g.Expect(api.Port).To(Equal(int32(6443)))
}

func TestRoutesBehindANodePortAreDialledThere(t *testing.T) {
	cp := controlPlane(func(cp *ControlPlane) {
		cp.Services = append(cp.Services, corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: "router", Namespace: "clusters-c1"},
			Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, Ports: []corev1.ServicePort{{Name: "https", Port: 443, NodePort: 31443}}},
		})
		cp.Routes[0].Labels = map[string]string{"hypershift.openshift.io/hosted-control-plane": "clusters-c1"}
	})
	g := NewWithT(t)
	g.Expect(row(t, Read(cp), "konnectivity").Port).To(Equal(int32(31443)))
	g.Expect(row(t, Read(cp), "konnectivity").Protocol).To(Equal(v1alpha1.ProtocolTLS), "shared by server name")
	g.Expect(row(t, Read(cp), "oauth").Port).To(Equal(int32(443)), "served by the management cluster's router")
	cp.Services[len(cp.Services)-1].Spec.Type = corev1.ServiceTypeLoadBalancer
	g.Expect(row(t, Read(cp), "konnectivity").Port).To(Equal(int32(443)))
}

// What workers will dial is known before HyperShift has published it.
func TestWhatWillBeDialledIsTheNamesThatAreWritten(t *testing.T) {
	cp := ControlPlane{Namespace: "clusters-c1", HostedCluster: &hyperv1.HostedCluster{}}
	publish := func(service hyperv1.ServiceType, address string) {
		cp.HostedCluster.Spec.Services = append(cp.HostedCluster.Spec.Services, hyperv1.ServicePublishingStrategyMapping{Service: service,
			ServicePublishingStrategy: hyperv1.ServicePublishingStrategy{Type: hyperv1.NodePort, NodePort: &hyperv1.NodePortPublishingStrategy{Address: address}}})
	}
	publish(hyperv1.APIServer, "Nodes.example.com")
	publish(hyperv1.Ignition, "nodes.example.com")
	publish(hyperv1.Konnectivity, "192.0.2.7")
	publish(hyperv1.OAuthServer, "")
	NewWithT(t).Expect(Read(cp).Dials()).To(ConsistOf("nodes.example.com", "192.0.2.7"))
}
