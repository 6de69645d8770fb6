package intent

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/unroutable"
	"github.com/cldmnky/oooi/internal/valid"
)

const (
	// Attempts is how many targets are tried for a connection.
	Attempts = 3
	// longestAttempt has a client's connection leave a dead target in less than 2 s (dns-proxy-rules.md#failover).
	longestAttempt = 500 * time.Millisecond
)

// Place is where the proxy runs.
type Place struct {
	// Networks has the prefix of each address of this machine, and Devices its device.
	Networks map[netip.Addr]netip.Prefix
	Devices  map[netip.Addr]string
	// Pod is the pod's own address; with the zero Addr nothing is offered on the pod network.
	Pod netip.Addr
	// Instance says which of the ProxyServer's addresses is served: 0 is serverIP, which has the captured addresses too, 1 the first of
	// additionalServerIPs.
	Instance int
}

// Targets are the addresses behind a service.
type Targets func(Service) []netip.AddrPort

// Of is what a ProxyServer's spec means at a place. If there is a finding, the intent must not be served. The schema refuses most of these
// errors, but a file has no schema, and Envoy's rejections are harder to read.
func Of(spec v1alpha1.ProxyServerSpec, here Place, targets Targets) (Intent, []finding.Finding) {
	r := reader{here: here}
	r.checkPlace(spec.NetworkConfig)
	r.checkLists(spec)
	if here.Instance > 0 {
		spec.NetworkConfig.CapturedAddresses = nil
	}
	r.checkBackends(spec.Backends)
	in := Intent{Listeners: r.listeners(spec), Backends: r.backends(spec.Backends, targets), Missing: r.missing(spec)}
	return in, r.wrong
}

// reader turns a spec into an intent and collects what is wrong with it.
type reader struct {
	here  Place
	vip   netip.Addr
	wrong []finding.Finding
}

func (r *reader) refuse(format string, args ...any) {
	r.wrong = append(r.wrong, finding.Refuse(v1alpha1.ConditionConfigAccepted, "Invalid").Say(format, args...))
}

func (r *reader) checkPlace(n v1alpha1.ProxyNetworkConfig) {
	field, all := v1alpha1.ServerIPField(r.here.Instance), n.ServerIPs()
	r.checkAddresses(n)
	if r.here.Instance >= len(all) {
		r.refuse("%v", valid.Unset(field))
		return
	}
	r.vip = parseIP(all[r.here.Instance])
	if r.vip.IsValid() && r.here.Devices[r.vip] == "" {
		r.refuse("%s %s is on no network device here; add it to one, or, in a pod, check the network attachment", field, r.vip)
	}
}

func (r *reader) checkBackends(backends []v1alpha1.ProxyBackend) {
	seen := map[string]bool{}
	ports := map[v1alpha1.Port][]v1alpha1.ProxyBackend{}
	for i, b := range backends {
		if len(validation.IsDNS1123Label(b.Name)) > 0 {
			r.refuse("backends[%d]: name %q is not a DNS label; write at most 63 of a-z, 0-9 and -, e.g. registry", i, b.Name)
		}
		if seen[b.Name] {
			r.refuse("backends[%d]: name %q is another backend's already; give each a name of its own", i, b.Name)
		}
		seen[b.Name] = true
		ports[b.Port] = append(ports[b.Port], b)
		r.checkBackend(b)
		r.checkBounds(b)
	}
	for _, port := range slices.Sorted(maps.Keys(ports)) {
		r.checkPort(port, ports[port])
	}
}

func (r *reader) checkBackend(b v1alpha1.ProxyBackend) {
	switch protocol := protocolOf(b); {
	case protocol != TCP && protocol != TLS:
		r.refuse("backend %s: protocol %q is neither TCP nor TLS", b.Name, b.Protocol)
	case protocol == TLS && len(serverNames(b)) == 0 && !b.CatchAll:
		r.refuse("backend %s: TLS needs a hostname, or catchAll: true", b.Name)
	}
	if !valid.Port(b.Port) {
		r.refuse("backend %s: port %d is not a port (1 to 65535)", b.Name, b.Port)
	}
	if (b.TargetService != "") == (len(b.TargetAddresses) > 0) {
		r.refuse("backend %s: set exactly one of targetService and targetAddresses", b.Name)
	}
	if b.TargetService != "" && (b.TargetNamespace == "" || !valid.Port(b.TargetPort)) {
		r.refuse("backend %s: targetService needs targetNamespace, and targetPort (1 to 65535)", b.Name)
	}
	if onPods(b) && (b.Port == names.HealthPort || b.Port == names.MetricsPort) {
		r.refuse("backend %s: port %d of the pod's address is the proxy's own; use views: VLAN or another port", b.Name, b.Port)
	}
	for _, name := range append([]v1alpha1.DNSNameOrWildcard{b.Hostname}, b.AlternateHostnames...) {
		if name != "" && len(validation.IsDNS1123Subdomain(strings.TrimPrefix(string(name), "*."))) > 0 {
			r.refuse("backend %s: hostname %q is not a DNS name; write it in lower case, with at most a leading %q", b.Name, name, "*.")
		}
	}
}

// checkPort refuses backends whose filter chains would have the same match, for which Envoy would reject the whole listener.
func (r *reader) checkPort(port v1alpha1.Port, backends []v1alpha1.ProxyBackend) {
	owner, catchAll := map[string]string{}, ""
	for _, b := range backends {
		if protocolOf(b) == TCP && len(backends) > 1 {
			r.refuse("backend %s: plain TCP needs its own port %d; its connections cannot be told from others", b.Name, port)
		}
		for _, name := range serverNames(b) {
			if other, taken := owner[name]; taken {
				r.refuse("backend %s: hostname %s on port %d belongs to backend %s already", b.Name, name, port, other)
			}
			owner[name] = b.Name
		}
		if b.CatchAll && catchAll != "" {
			r.refuse("backend %s: port %d already has a catchAll, backend %s", b.Name, port, catchAll)
		} else if b.CatchAll {
			catchAll = b.Name
		}
	}
}

// listeners are one per port and address: the VIP, captured addresses that this pod carries, and the pod's own address.
func (r *reader) listeners(spec v1alpha1.ProxyServerSpec) []Listener {
	var all []Listener
	add := func(addr netip.Addr, port v1alpha1.Port, offered func(v1alpha1.ProxyBackend) bool) {
		if l, any := r.listener(spec.Backends, addr, port, offered); any {
			all = append(all, l)
		}
	}
	everything := func(v1alpha1.ProxyBackend) bool { return true }
	for _, port := range portsOf(spec.Backends) {
		add(r.vip, port, everything)
		add(r.here.Pod, port, onPods)
	}
	for _, captured := range spec.NetworkConfig.CapturedAddresses {
		for _, port := range captured.Ports {
			add(parseIP(captured.IP), port, everything)
		}
	}
	slices.SortFunc(all, func(a, b Listener) int { return a.At.Compare(b.At) })
	return slices.CompactFunc(all, func(a, b Listener) bool { return a.At == b.At })
}

func (r *reader) missing(spec v1alpha1.ProxyServerSpec) []netip.Addr {
	var all []netip.Addr
	for _, captured := range spec.NetworkConfig.CapturedAddresses {
		if ip := parseIP(captured.IP); r.here.Devices[ip] == "" {
			all = append(all, ip)
		}
	}
	return all
}

// listener has the backends of one port that are offered on an address; none if this pod does not carry the address.
func (r *reader) listener(backends []v1alpha1.ProxyBackend, addr netip.Addr, port v1alpha1.Port, offered func(v1alpha1.ProxyBackend) bool) (Listener, bool) {
	l := Listener{At: netip.AddrPortFrom(addr, uint16(port)), Device: r.here.Devices[addr], OnPods: addr == r.here.Pod}
	any := false
	for _, b := range backends {
		if b.Port != port || !offered(b) {
			continue
		}
		any = true
		l.Protocol = protocolOf(b)
		if b.CatchAll || l.Protocol == TCP {
			l.CatchAll = b.Name
		}
		if hosts := serverNames(b); len(hosts) > 0 {
			l.Routes = append(l.Routes, Route{Backend: b.Name, ServerNames: hosts})
		}
	}
	slices.SortFunc(l.Routes, func(a, b Route) int { return cmp.Compare(a.Backend, b.Backend) })
	return l, any && l.Device != ""
}

func (r *reader) backends(specs []v1alpha1.ProxyBackend, targets Targets) []Backend {
	var all []Backend
	for _, spec := range specs {
		b := Backend{Name: spec.Name, ConnectTimeout: attemptTimeout(spec.TimeoutSeconds)}
		if spec.TargetService != "" {
			b.Service = &Service{string(spec.TargetNamespace), string(spec.TargetService), uint16(spec.TargetPort)}
			b.Targets = slices.Clone(targets(*b.Service))
		} else {
			b.Targets = r.addresses(spec)
			b.Source = r.sourceTowards(spec.Name, b.Targets)
		}
		slices.SortFunc(b.Targets, netip.AddrPort.Compare)
		b.Targets = slices.Compact(b.Targets)
		all = append(all, b)
	}
	slices.SortFunc(all, func(a, b Backend) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

func (r *reader) addresses(spec v1alpha1.ProxyBackend) []netip.AddrPort {
	var all []netip.AddrPort
	for _, s := range spec.TargetAddresses {
		target, ok := valid.Target(s)
		switch {
		case !ok || s != strings.ToLower(s):
			r.refuse("backend %s: target %q is not ip:port in lower case, e.g. 10.20.0.5:443 or [fd00::5]:443", spec.Name, s)
		case unroutable.Is(target.Addr()):
			r.refuse("backend %s: target %s is a loopback, link-local, multicast or metadata address; the proxy never dials those", spec.Name, s)
		default:
			all = append(all, target)
		}
	}
	return all
}

// sourceTowards is the VIP for targets on the VLAN: with CNI plugin sbr, the on-link route is in the VIP's own table
// (upstream.md#source-based-routing).
func (r *reader) sourceTowards(backend string, targets []netip.AddrPort) netip.Addr {
	onVLAN := 0
	for _, t := range targets {
		if r.here.Networks[r.vip].Masked().Contains(t.Addr()) {
			onVLAN++
		}
	}
	if onVLAN == 0 {
		return netip.Addr{}
	}
	if onVLAN < len(targets) {
		r.refuse("backend %s: targetAddresses lie partly on the VLAN and partly elsewhere; split them into two backends", backend)
	}
	return r.vip
}

func attemptTimeout(seconds int32) time.Duration {
	whole := time.Duration(seconds) * time.Second
	if whole <= 0 {
		whole = valid.DefaultConnectTimeout
	}
	return min(longestAttempt, (whole / Attempts).Truncate(time.Millisecond))
}

func protocolOf(b v1alpha1.ProxyBackend) Protocol {
	return Protocol(cmp.Or(b.Protocol, v1alpha1.ProtocolTCP))
}

func onPods(b v1alpha1.ProxyBackend) bool { return b.Views == v1alpha1.ViewVLANAndPods }

// serverNames are those that route to a TLS backend; plain TCP has none, so a hostname there is documentation only.
func serverNames(b v1alpha1.ProxyBackend) []string {
	if protocolOf(b) != TLS {
		return nil
	}
	var all []string
	for _, name := range append([]v1alpha1.DNSNameOrWildcard{b.Hostname}, b.AlternateHostnames...) {
		if name != "" {
			all = append(all, string(name))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func portsOf(backends []v1alpha1.ProxyBackend) []v1alpha1.Port {
	ports := map[v1alpha1.Port]bool{}
	for _, b := range backends {
		ports[b.Port] = true
	}
	return slices.Sorted(maps.Keys(ports))
}

func parseIP(ip v1alpha1.IPAddress) netip.Addr {
	addr, _ := valid.Address(string(ip))
	return addr
}

// Sentence joins findings into the message of a status.
func Sentence(findings []finding.Finding) error {
	if len(findings) == 0 {
		return nil
	}
	messages := make([]string, len(findings))
	for i, f := range findings {
		messages[i] = f.Message
	}
	return fmt.Errorf("%s", strings.Join(messages, "; "))
}
