package input

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/endpoint"
	"github.com/cldmnky/oooi/internal/ipam"
)

// The guest's routers (upstream.md#routers).
const (
	RouterNamespace = "openshift-ingress"
	RouterLabel     = "ingresscontroller.operator.openshift.io/deployment-ingresscontroller"
	RouterHTTP      = 80
	RouterHTTPS     = 443
)

// RouterIngress is the guest's IngressController for *.apps. Its name is the value of RouterLabel on its routers' pods
// (cluster-ingress-operator, pkg/operator/controller/names.go).
var RouterIngress = types.NamespacedName{Namespace: "openshift-ingress-operator", Name: "default"}

// RouterNodePort is the Service of the guest's default router where HyperShift publishes it by node port (upstream.md#routers).
var RouterNodePort = types.NamespacedName{Namespace: RouterNamespace, Name: "router-nodeport-default"}

// Publishes says whether an Infra is to publish *.apps.
func Publishes(infra *v1alpha1.Infra) bool {
	return infra.Spec.AppsIngress != nil && infra.Spec.AppsIngress.Enabled
}

// Publishes says whether the Infra is to publish *.apps.
func (in Input) Publishes() bool { return Publishes(in.Infra) }

// AppsSpec is spec.appsIngress with its defaults; the mode is decided later (package apps).
func AppsSpec(infra *v1alpha1.Infra) v1alpha1.AppsIngress {
	var spec v1alpha1.AppsIngress
	if infra.Spec.AppsIngress != nil {
		spec = *infra.Spec.AppsIngress
	}
	if spec.MetalLB == nil {
		spec.MetalLB = &v1alpha1.AppsMetalLB{}
	}
	spec.Service.Namespace = cmp.Or(spec.Service.Namespace, RouterNamespace)
	spec.Ports = v1alpha1.AppsPorts{HTTP: cmp.Or(spec.Ports.HTTP, RouterHTTP), HTTPS: cmp.Or(spec.Ports.HTTPS, RouterHTTPS)}
	return spec
}

// AppsRoute is where *.apps leads: what the proxy dials, and what the VLAN's DNS answers in place of the proxy's address.
type AppsRoute struct {
	HTTPS, HTTP []netip.AddrPort
	Answers     []netip.Addr
	Source      string
	Hostname    string // empty: the proxy has no backend for *.apps
	Ports       v1alpha1.AppsPorts
}

// External says whether *.apps had an address that MetalLB assigned.
func (r AppsRoute) External() bool { return len(r.Answers) > 0 }

// Apps is the route that the children have. It is kept, over restarts too, until there is a better one. Where no proxy says the host name of
// *.apps, hostname does; empty: it is not known, and every wildcard counts that the Infra does not write itself.
func (c Children) Apps(infra *v1alpha1.Infra, hostname string) AppsRoute {
	r := AppsRoute{Source: "kept: what was seen in the hosted cluster last"}
	var proxy []v1alpha1.IPAddress // its addresses; in DNS even without a ProxyServer: every name but *.apps leads there
	if c.Proxy() != nil {
		proxy = append(proxy, c.Proxy().Spec.NetworkConfig.ServerIPs()...)
		for _, b := range c.Proxy().Spec.Backends {
			switch b.Name {
			case endpoint.AppsHTTPS:
				r.HTTPS, r.Hostname, r.Ports.HTTPS = addrPorts(b.TargetAddresses), string(b.Hostname), b.Port
			case endpoint.AppsHTTP:
				r.HTTP, r.Ports.HTTP = addrPorts(b.TargetAddresses), b.Port
			}
		}
	}
	if c.DNS() == nil {
		return r
	}
	var wild []v1alpha1.IPAddress
	for _, e := range c.DNS().Spec.StaticEntries {
		of := cmp.Or(r.Hostname, hostname, string(e.Hostname))
		switch {
		case slices.Contains(infra.Spec.InfraComponents.DNS.StaticEntries, e): // it leads wherever its author likes
		case !strings.HasPrefix(string(e.Hostname), "*."):
			proxy = append(proxy, e.IP)
		case string(e.Hostname) == of:
			wild = append(wild, e.IP)
		}
	}
	for _, ip := range wild {
		if at, err := netip.ParseAddr(string(ip)); err == nil && !slices.Contains(proxy, ip) && !slices.Contains(r.Answers, at) && len(r.Answers) < mostExternalIPs {
			r.Answers = append(r.Answers, at)
		}
	}
	return r
}

// AppsDomain is the domain below which the hosted cluster's applications are.
func (in Input) AppsDomain() string {
	if base := AppsSpec(in.Infra).BaseDomain; base != "" {
		return "apps." + string(base)
	}
	return in.ControlPlane().AppsDomain()
}

// AppsHostname is the host name of *.apps; empty while nothing says its domain.
func (in Input) AppsHostname() string {
	if in.HostedCluster == nil && AppsSpec(in.Infra).BaseDomain == "" {
		return ""
	}
	return "*." + in.AppsDomain()
}

func addrPorts(texts []string) []netip.AddrPort {
	var all []netip.AddrPort
	for _, text := range texts {
		if a, err := netip.ParseAddrPort(text); err == nil {
			all = append(all, a)
		}
	}
	return all
}

// RangeOf parses a CIDR or first-last, as in MetalLB's address pools.
func RangeOf(text string) ipam.Range {
	if p, err := netip.ParsePrefix(text); err == nil {
		return ipam.Whole(p)
	}
	first, last, _ := strings.Cut(text, "-")
	return Span(strings.TrimSpace(first), strings.TrimSpace(last))
}
