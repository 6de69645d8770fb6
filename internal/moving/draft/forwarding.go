package draft

import (
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/plan/desired"
	"github.com/cldmnky/oooi/internal/valid"
)

// Ports of a control plane, at which the proxy listens anyway (hypershift: hosted clusters have no machine config server; Ignition serves in
// its place).
var ofItsOwn = map[int]string{
	6443:  "the proxy passes on the API of the hosted cluster by itself",
	22623: "a hosted cluster has no machine config server: the proxy passes on its Ignition server by itself",
	22624: "a hosted cluster has no machine config server: the proxy passes on its Ignition server by itself",
}

// endpoints are what the proxy passes on beside the control plane.
func (m *maker) endpoints() {
	for _, f := range m.Forwards {
		var hosts []string
		for _, host := range f.Hosts {
			switch host = strings.ToLower(host); {
			case m.ofControlPlane(host):
			case m.ofApps(host) && m.throughProxy():
			case m.ofApps(host):
				m.Leave(f.Line, "%s goes through the proxy once appsIngress is enabled: docs/APPS_INGRESS.md", host)
			case !hostname.MatchString(host):
				m.Leave(f.Line, "%q is no server name that the proxy can choose by", host)
			default:
				hosts = append(hosts, host)
			}
		}
		if len(f.Hosts) > 0 && len(hosts) == 0 {
			continue
		}
		m.endpoint(f, hosts)
	}
}

// throughProxy says whether applications are passed on to the workers' routers, at ports 80 and 443 of the proxy.
func (m *maker) throughProxy() bool {
	a := m.infra.Spec.AppsIngress
	return a != nil && a.Enabled && (a.Mode == v1alpha1.AppsHostNetwork || a.Mode == v1alpha1.AppsNodePort)
}

func (m *maker) endpoint(f Forward, hosts []string) {
	if why := ofItsOwn[f.Port]; why != "" && len(hosts) == 0 {
		m.Leave(f.Line, "%s; the names and backends are those of the HostedCluster", why)
		return
	}
	if len(hosts) == 0 && m.throughProxy() && (f.Port == 80 || f.Port == 443) {
		m.Leave(f.Line, "appsIngress has port %d: the proxy passes it on to the routers of the hosted cluster, and nowhere else", f.Port)
		return
	}
	targets := m.targets(f)
	if len(hosts) == 0 && (f.Port == 80 || f.Port == 443) {
		m.Leave(f.Line, "a port %d without server names is that of applications: set appsIngress, docs/APPS_INGRESS.md, whose mode HostNetwork has such backends", f.Port)
		return
	}
	switch {
	case !valid.Port(int32(f.Port)):
		m.Leave(f.Line, "%d is no port", f.Port)
		return
	case len(targets) == 0:
		m.Leave(f.Line, "nothing of %s is an address to pass on to: write extraEndpoints with a Service or addresses", f.Name)
		return
	}
	e := v1alpha1.ExtraEndpoint{Name: m.endpointName(f), Port: v1alpha1.Port(f.Port), Protocol: v1alpha1.ProtocolTCP, Target: v1alpha1.EndpointTarget{Addresses: targets}}
	for _, host := range hosts {
		e.Protocol = v1alpha1.ProtocolTLS
		e.Hostnames = append(e.Hostnames, v1alpha1.DNSNameOrWildcard(host))
	}
	for _, other := range m.infra.Spec.ExtraEndpoints {
		if other.Port == e.Port && (other.Protocol == v1alpha1.ProtocolTCP || e.Protocol == v1alpha1.ProtocolTCP) {
			m.Leave(f.Line, "extraEndpoints[%s] has port %d, and one of them is not chosen by server name: give it another port", other.Name, e.Port)
			return
		}
	}
	m.added[e.Name] = true
	one(m, f.Line, "extraEndpoints", &m.infra.Spec.ExtraEndpoints, mostEndpoints, e, func(o v1alpha1.ExtraEndpoint) bool { return o.Name == e.Name })
}

// targets are the addresses behind a port.
func (m *maker) targets(f Forward) (all []string) {
	for _, t := range f.Targets {
		at, err := netip.ParseAddr(t.Host)
		if err != nil {
			var known bool
			if at, known = m.address(t.Host); !known {
				m.Leave(t.Line, "no file says the address of %s: give the zone or hosts file that does, or write it into extraEndpoints", t.Host)
				continue
			}
		}
		target := netip.AddrPortFrom(at, uint16(t.Port)).String()
		if !slices.Contains(all, target) {
			if len(all) == mostTargets {
				m.Leave(t.Line, "an endpoint has at most %d addresses", mostTargets)
				continue
			}
			all = append(all, target)
		}
	}
	return all
}

// unnamed is what a name of an endpoint may not have.
var unnamed = regexp.MustCompile(`[^a-z0-9]+`)

// endpointName is the section's, as an Infra can have it, with the port where another has that name.
func (m *maker) endpointName(f Forward) string {
	name := strings.Trim(unnamed.ReplaceAllString(strings.ToLower(f.Name), "-"), "-")
	name = strings.Trim(name[:min(len(name), 34)], "-")
	taken := slices.ContainsFunc(m.infra.Spec.ExtraEndpoints, func(e v1alpha1.ExtraEndpoint) bool { return e.Name == name })
	if name == "" || taken || slices.Contains([]string{"api", "ignition", "oauth", "konnectivity", "metrics-proxy"}, name) {
		name = strings.Trim(name+"-"+strconv.Itoa(f.Port), "-")
	}
	return name
}

// targetNetworks are those that the operator must allow for what was added to the Infra.
func (m *maker) targetNetworks() string {
	var all []string
	for _, e := range m.infra.Spec.ExtraEndpoints {
		for _, text := range e.Target.Addresses {
			if at, err := netip.ParseAddrPort(text); err == nil && m.added[e.Name] && !slices.Contains(all, desired.HostRoute(at.Addr())) {
				all = append(all, desired.HostRoute(at.Addr()))
			}
		}
	}
	slices.Sort(all)
	return strings.Join(all, ",")
}
