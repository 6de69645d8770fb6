package intent

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	. "github.com/onsi/gomega"

	"github.com/cldmnky/oooi/api/v1alpha1"
)

var (
	vip = netip.MustParseAddr("192.168.100.10")
	ip  = netip.MustParseAddr("203.0.113.7")
	pod = netip.MustParseAddr("10.244.0.9")

	// here is a pod on the VLAN with one captured address.
	here = Place{
		Pod:     pod,
		Devices: map[netip.Addr]string{vip: "net1", ip: "net1", pod: "eth0"},
		Networks: map[netip.Addr]netip.Prefix{
			vip: netip.MustParsePrefix("192.168.100.10/24"),
			ip:  netip.MustParsePrefix("203.0.113.7/32"),
			pod: netip.MustParsePrefix("10.244.0.9/24"),
		},
	}
	compareAddresses = cmpopts.EquateComparable(netip.Addr{}, netip.AddrPort{})
)

// kasTargets are behind every service of these tests.
func kasTargets(Service) []netip.AddrPort {
	return []netip.AddrPort{netip.MustParseAddrPort("10.244.0.31:6443"), netip.MustParseAddrPort("10.244.0.30:6443")}
}

func specOf(backends ...v1alpha1.ProxyBackend) v1alpha1.ProxyServerSpec {
	spec := v1alpha1.ProxyServerSpec{Backends: backends}
	spec.NetworkConfig.ServerIP = "192.168.100.10"
	return spec
}

func api() v1alpha1.ProxyBackend {
	return v1alpha1.ProxyBackend{
		Name: "api", Protocol: v1alpha1.ProtocolTLS, Port: 6443, Hostname: "api.c1.example.com", CatchAll: true, Views: v1alpha1.ViewVLANAndPods,
		TargetService: "kube-apiserver", TargetPort: 6443, TargetNamespace: "clusters-c1",
	}
}

func ignition() v1alpha1.ProxyBackend {
	return v1alpha1.ProxyBackend{
		Name: "ignition", Protocol: v1alpha1.ProtocolTLS, Port: 443, Hostname: "ignition.example.com",
		TargetService: "ignition-server-proxy", TargetPort: 443, TargetNamespace: "clusters-c1",
	}
}

func TestASpecBecomesListenersOnEveryAddressThatThePodCarries(t *testing.T) {
	spec := specOf(ignition(), api())
	spec.NetworkConfig.CapturedAddresses = []v1alpha1.CapturedAddress{
		{IP: "203.0.113.7", Ports: []v1alpha1.Port{6443}},
		{IP: "203.0.113.8", Ports: []v1alpha1.Port{6443}}, // only a new pod carries it
	}
	in, findings := Of(spec, here, kasTargets)
	NewWithT(t).Expect(findings).To(BeEmpty())

	apiRoute := []Route{{Backend: "api", ServerNames: []string{"api.c1.example.com"}}}
	sorted := []netip.AddrPort{netip.MustParseAddrPort("10.244.0.30:6443"), netip.MustParseAddrPort("10.244.0.31:6443")}
	want := Intent{
		Listeners: []Listener{
			{At: netip.AddrPortFrom(pod, 6443), Device: "eth0", Protocol: TLS, Routes: apiRoute, CatchAll: "api", OnPods: true},
			{At: netip.AddrPortFrom(vip, 443), Device: "net1", Protocol: TLS, Routes: []Route{{Backend: "ignition", ServerNames: []string{"ignition.example.com"}}}},
			{At: netip.AddrPortFrom(vip, 6443), Device: "net1", Protocol: TLS, Routes: apiRoute, CatchAll: "api"},
			{At: netip.AddrPortFrom(ip, 6443), Device: "net1", Protocol: TLS, Routes: apiRoute, CatchAll: "api"},
		},
		Backends: []Backend{
			{Name: "api", ConnectTimeout: 500 * time.Millisecond, Service: &Service{"clusters-c1", "kube-apiserver", 6443}, Targets: sorted},
			{Name: "ignition", ConnectTimeout: 500 * time.Millisecond, Service: &Service{"clusters-c1", "ignition-server-proxy", 443}, Targets: sorted},
		},
		Missing: []netip.Addr{netip.MustParseAddr("203.0.113.8")},
	}
	if diff := cmp.Diff(want, in, compareAddresses); diff != "" {
		t.Error(diff)
	}
}

// The second instance has its own address and the same backends; captured addresses are the first one's.
func TestASecondInstanceServesItsAddress(t *testing.T) {
	g := NewWithT(t)
	spec := specOf(api())
	spec.NetworkConfig.AdditionalServerIPs = []v1alpha1.IPAddress{"192.168.100.10"}
	spec.NetworkConfig.ServerIP = "192.168.100.9"
	spec.NetworkConfig.CapturedAddresses = []v1alpha1.CapturedAddress{{IP: "203.0.113.8", Ports: []v1alpha1.Port{6443}}}
	second := here
	second.Instance = 1
	in, findings := Of(spec, second, kasTargets)
	g.Expect(findings).To(BeEmpty())
	g.Expect(in.Missing).To(BeEmpty())
	g.Expect(in.Listeners).To(ConsistOf(HaveField("At", netip.AddrPortFrom(pod, 6443)), HaveField("At", netip.AddrPortFrom(vip, 6443))))

	spec.NetworkConfig.AdditionalServerIPs[0] = "192.168.100.11"
	_, findings = Of(spec, second, kasTargets)
	g.Expect(Sentence(findings)).To(MatchError(ContainSubstring("additionalServerIPs[0] 192.168.100.11 is on no network device here")))
	spec.NetworkConfig.AdditionalServerIPs = nil
	_, findings = Of(spec, second, kasTargets)
	g.Expect(Sentence(findings)).To(MatchError(ContainSubstring("additionalServerIPs[0] is not set: this instance is to go, and serves as before until its pod does")))
}

func TestWhatIsWrongWithASpecIsSaid(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*v1alpha1.ProxyServerSpec)
		says   string
	}{
		"an address that the pod lacks": {func(s *v1alpha1.ProxyServerSpec) { s.NetworkConfig.ServerIP = "192.168.100.11" }, "serverIP 192.168.100.11 is on no network device"},
		"no address":                    {func(s *v1alpha1.ProxyServerSpec) { s.NetworkConfig.ServerIP = "" }, `serverIP "" is not an IP address`},
		"a name twice":                  {func(s *v1alpha1.ProxyServerSpec) { s.Backends[1].Name = "api" }, `backends[1]: name "api" is another backend's already; give each a name of its own`},
		"a name in capitals":            {func(s *v1alpha1.ProxyServerSpec) { s.Backends[1].Name = "API" }, `backends[1]: name "API" is not a DNS label; write at most 63 of a-z, 0-9 and -`},
		"an unknown protocol":           {func(s *v1alpha1.ProxyServerSpec) { s.Backends[0].Protocol = "UDP" }, `protocol "UDP" is neither TCP nor TLS`},
		"TLS without a name":            {func(s *v1alpha1.ProxyServerSpec) { s.Backends[1].Hostname = "" }, "backend ignition: TLS needs a hostname, or catchAll: true"},
		"a port that is none":           {func(s *v1alpha1.ProxyServerSpec) { s.Backends[1].Port = 70000 }, "port 70000 is not a port"},
		"a hostname in capitals":        {func(s *v1alpha1.ProxyServerSpec) { s.Backends[1].Hostname = "Ignition.example.com" }, `hostname "Ignition.example.com" is not a DNS name`},
		"a wildcard in the middle":      {func(s *v1alpha1.ProxyServerSpec) { s.Backends[1].Hostname = "a.*.example.com" }, `hostname "a.*.example.com" is not a DNS name`},
		"a hostname twice on a port": {func(s *v1alpha1.ProxyServerSpec) {
			s.Backends[1].Hostname, s.Backends[1].Port = "api.c1.example.com", 6443
		}, "hostname api.c1.example.com on port 6443 belongs to backend api already"},
		"two catch-alls on a port":         {func(s *v1alpha1.ProxyServerSpec) { s.Backends[1].CatchAll, s.Backends[1].Port = true, 6443 }, "port 6443 already has a catchAll, backend api"},
		"plain TCP beside TLS":             {func(s *v1alpha1.ProxyServerSpec) { s.Backends[1].Protocol, s.Backends[1].Port = "", 6443 }, "backend ignition: plain TCP needs its own port 6443"},
		"no target":                        {func(s *v1alpha1.ProxyServerSpec) { s.Backends[1].TargetService = "" }, "set exactly one of targetService and targetAddresses"},
		"both kinds of target":             {func(s *v1alpha1.ProxyServerSpec) { s.Backends[1].TargetAddresses = []string{"10.0.0.1:443"} }, "set exactly one of targetService and targetAddresses"},
		"a service without its namespace":  {func(s *v1alpha1.ProxyServerSpec) { s.Backends[1].TargetNamespace = "" }, "targetService needs targetNamespace"},
		"our own health port on the pod":   {func(s *v1alpha1.ProxyServerSpec) { s.Backends[0].Port = 8081 }, "port 8081 of the pod's address is the proxy's own"},
		"a target without a port":          {targeting("10.0.0.1"), `target "10.0.0.1" is not ip:port`},
		"a target by name":                 {targeting("registry.example.com:443"), "is not ip:port"},
		"a loopback target":                {targeting("127.0.0.1:443"), "never dials those"},
		"a mapped loopback target":         {targeting("[::ffff:127.0.0.1]:443"), "never dials those"},
		"a link-local target":              {targeting("169.254.169.254:80"), "never dials those"},
		"a metadata target of AWS by IPv6": {targeting("[fd00:ec2::254]:80"), "never dials those"},
		"a metadata target of Azure":       {targeting("168.63.129.16:80"), "never dials those"},
		"a metadata target of Oracle":      {targeting("192.0.0.192:80"), "never dials those"},
		"a link-local target by NAT64":     {targeting("[64:ff9b::a9fe:a9fe]:80"), "never dials those"},
		"a mapped metadata target":         {targeting("[::ffff:168.63.129.16]:80"), "never dials those"},
		"an unspecified target":            {targeting("0.0.0.0:80"), "never dials those"},
		"a multicast target":               {targeting("224.0.0.1:80"), "never dials those"},
		"no backend":                       {func(s *v1alpha1.ProxyServerSpec) { s.Backends = nil }, "backends: 0 are listed; list 1 to 64"},
		"206 backends": {func(s *v1alpha1.ProxyServerSpec) {
			for n := range 204 {
				more := api()
				more.Name, more.Port = fmt.Sprintf("more-%d", n), v1alpha1.Port(10000+n)
				s.Backends = append(s.Backends, more)
			}
		}, "backends: 206 are listed; list 1 to 64"},
		"a view in other letters": {func(s *v1alpha1.ProxyServerSpec) { s.Backends[0].Views = "VLANandPods" }, `backend api: views "VLANandPods" is neither VLAN nor VLANAndPods`},
		"a timeout before now":    {func(s *v1alpha1.ProxyServerSpec) { s.Backends[0].TimeoutSeconds = -1 }, "timeoutSeconds -1 is not 1 to 300"},
		"a timeout of an hour":    {func(s *v1alpha1.ProxyServerSpec) { s.Backends[0].TimeoutSeconds = 3600 }, "timeoutSeconds 3600 is not 1 to 300"},
		"a target twice":          {targeting("10.0.0.1:443", "10.0.0.1:443"), "targetAddresses has 2; list at most 64, each once"},
		"65 targets":              {targeting(numbered(65)...), "targetAddresses has 65; list at most 64"},
		"the hostname once more": {func(s *v1alpha1.ProxyServerSpec) {
			s.Backends[1].AlternateHostnames = []v1alpha1.DNSNameOrWildcard{"ignition.example.com"}
		}, "each once and without the hostname"},
		"more names of plain TCP": {func(s *v1alpha1.ProxyServerSpec) {
			s.Backends[1].Protocol, s.Backends[1].AlternateHostnames = "TCP", []v1alpha1.DNSNameOrWildcard{"a"}
		}, "alternateHostnames need protocol TLS"},
		"33 more names": {func(s *v1alpha1.ProxyServerSpec) {
			for n := range 33 {
				s.Backends[1].AlternateHostnames = append(s.Backends[1].AlternateHostnames, v1alpha1.DNSNameOrWildcard(fmt.Sprintf("a%d", n)))
			}
		}, "alternateHostnames has 33; list at most 32"},
		"a service in capitals":              {func(s *v1alpha1.ProxyServerSpec) { s.Backends[1].TargetService = "KAS" }, `"KAS" is not a name of a Service or namespace`},
		"a captured network":                 {capturing(v1alpha1.CapturedAddress{IP: "203.0.113.7/24", Ports: []v1alpha1.Port{443}}), `ip "203.0.113.7/24" must be an IP address`},
		"a second address that is the first": {further("192.168.100.10"), "networkConfig.additionalServerIPs[0] 192.168.100.10 is serverIP or a captured address"},
		"a second address that is captured": {func(s *v1alpha1.ProxyServerSpec) {
			further("203.0.113.7")(s)
			capturing(v1alpha1.CapturedAddress{IP: "203.0.113.7", Ports: []v1alpha1.Port{443}})(s)
		}, "networkConfig.additionalServerIPs[0] 203.0.113.7 is serverIP or a captured address"},
		"three addresses":                 {further("192.168.100.11", "192.168.100.12"), "networkConfig.additionalServerIPs: 2 are listed; list at most 1"},
		"a second address that is none":   {further("192.168.100"), `networkConfig.additionalServerIPs[0] "192.168.100" is not an IP address in canonical form`},
		"an address in another form":      {further("FD00::5"), `networkConfig.additionalServerIPs[0] "FD00::5" is not an IP address in canonical form`},
		"a captured one in another form":  {capturing(v1alpha1.CapturedAddress{IP: "::ffff:203.0.113.7", Ports: []v1alpha1.Port{443}}), `ip "::ffff:203.0.113.7" must be an IP address in canonical form`},
		"a target in capitals":            {targeting("[FD00::5]:443"), `target "[FD00::5]:443" is not ip:port in lower case`},
		"a target port that is none":      {func(s *v1alpha1.ProxyServerSpec) { targeting("10.0.0.1:443")(s); s.Backends[1].TargetPort = 70000 }, "backend ignition: targetPort 70000 is not a port"},
		"a hostname of plain TCP, broken": {func(s *v1alpha1.ProxyServerSpec) { s.Backends[1].Protocol, s.Backends[1].Hostname = "TCP", "a b" }, `backend ignition: hostname "a b" is not a DNS name`},

		"a captured address twice":     {capturing(v1alpha1.CapturedAddress{IP: "203.0.113.7", Ports: []v1alpha1.Port{443}}, v1alpha1.CapturedAddress{IP: "203.0.113.7", Ports: []v1alpha1.Port{80}}), "and unique"},
		"a captured address, no port":  {capturing(v1alpha1.CapturedAddress{IP: "203.0.113.7"}), "has 0 ports; list 1 to 16 different ones"},
		"a captured port that is none": {capturing(v1alpha1.CapturedAddress{IP: "203.0.113.7", Ports: []v1alpha1.Port{70000}}), "port 70000 is not a port"},
		"nine captured addresses":      {capturing(make([]v1alpha1.CapturedAddress, 9)...), "9 are listed; list at most 8"},
		"targets on and off the VLAN":  {targeting("192.168.100.50:443", "10.0.0.1:443"), "lie partly on the VLAN and partly elsewhere"},
	} {
		t.Run(name, func(t *testing.T) {
			spec := specOf(api(), ignition())
			c.change(&spec)
			_, findings := Of(spec, here, kasTargets)
			NewWithT(t).Expect(Sentence(findings)).To(MatchError(ContainSubstring(c.says)))
		})
	}
}

// targeting has backend ignition list addresses.
func targeting(addresses ...string) func(*v1alpha1.ProxyServerSpec) {
	return func(s *v1alpha1.ProxyServerSpec) {
		s.Backends[1].TargetService, s.Backends[1].TargetAddresses = "", addresses
	}
}

func numbered(n int) (addresses []string) {
	for i := range n {
		addresses = append(addresses, fmt.Sprintf("10.0.0.%d:443", i+1))
	}
	return addresses
}

func further(addresses ...v1alpha1.IPAddress) func(*v1alpha1.ProxyServerSpec) {
	return func(s *v1alpha1.ProxyServerSpec) { s.NetworkConfig.AdditionalServerIPs = addresses }
}

func capturing(addresses ...v1alpha1.CapturedAddress) func(*v1alpha1.ProxyServerSpec) {
	return func(s *v1alpha1.ProxyServerSpec) { s.NetworkConfig.CapturedAddresses = addresses }
}

func TestConnectionsToTheVLANComeFromTheVIP(t *testing.T) {
	g := NewWithT(t)
	spec := specOf(api(), ignition())
	targeting("192.168.100.50:443")(&spec)
	in, findings := Of(spec, here, kasTargets)
	g.Expect(findings).To(BeEmpty())
	g.Expect(in.Backends[0].Source.IsValid()).To(BeFalse(), "kube-apiserver is on the pod network")
	g.Expect(in.Backends[1].Source).To(Equal(vip))
}

func TestAShortTimeoutBoundsAllAttemptsTogether(t *testing.T) {
	for seconds, want := range map[int32]time.Duration{0: 500 * time.Millisecond, 1: 333 * time.Millisecond, 2: 500 * time.Millisecond, 30: 500 * time.Millisecond} {
		NewWithT(t).Expect(attemptTimeout(seconds)).To(Equal(want), "timeoutSeconds: %d", seconds)
	}
}

func TestAPortThatTurnsItsProtocolIsFound(t *testing.T) {
	g := NewWithT(t)
	at := netip.AddrPortFrom(vip, 443)
	tls, tcp := Intent{Listeners: []Listener{{At: at, Protocol: TLS}}}, Intent{Listeners: []Listener{{At: at, Protocol: TCP}}}
	port, turned := tls.ProtocolTurned(tcp)
	g.Expect(turned).To(BeTrue())
	g.Expect(port).To(Equal(at))
	_, turned = tls.ProtocolTurned(Intent{})
	g.Expect(turned).To(BeFalse())
	_, turned = Intent{}.ProtocolTurned(tcp)
	g.Expect(turned).To(BeFalse())
}

func TestAnIntentSurvivesBeingKept(t *testing.T) {
	spec := specOf(api(), ignition())
	targeting("192.168.100.50:443")(&spec)
	in, _ := Of(spec, here, kasTargets)
	content, err := json.Marshal(in)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	var back Intent
	NewWithT(t).Expect(json.Unmarshal(content, &back)).To(Succeed())
	if diff := cmp.Diff(in, back, compareAddresses); diff != "" {
		t.Error(diff)
	}
}

func TestTheOrderInASpecMeansNothing(t *testing.T) {
	a, _ := Of(specOf(api(), ignition()), here, kasTargets)
	b, _ := Of(specOf(ignition(), api()), here, func(s Service) []netip.AddrPort {
		reversed := kasTargets(s)
		slices.Reverse(reversed)
		return reversed
	})
	if diff := cmp.Diff(a, b, compareAddresses); diff != "" {
		t.Error(diff)
	}
}
