// Package apps is the stage that plans *.apps, from what is seen in the hosted cluster.
package apps

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/component"
	"github.com/cldmnky/oooi/internal/endpoint"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/plan/address"
	"github.com/cldmnky/oooi/internal/plan/input"
	"github.com/cldmnky/oooi/internal/plan/subject"
)

// Published is an Infra whose endpoint table has the rows of *.apps too.
type Published struct {
	address.Addressed
	// Apps is nil while *.apps is disabled.
	Apps *Apps
	// Findings about *.apps.
	Findings []finding.Finding
}

// Publish adds *.apps to the table. If the hosted cluster offers nothing that can be used, the previous rows stay.
func Publish(in address.Addressed) Published {
	if !in.Publishes() {
		return Published{Addressed: in}
	}
	a := &publisher{Addressed: in, spec: input.AppsSpec(in.Infra)}
	a.before = a.Children.Apps(a.Infra, a.AppsHostname())
	a.before.Answers = slices.DeleteFunc(a.before.Answers, func(at netip.Addr) bool { return a.Holder(at) != "" })
	if len(a.before.HTTPS) == 0 {
		a.before = a.leadingTo(a.before.Answers, a.before.Source)
	}
	a.route, a.spec.Mode = a.before, a.mode()
	a.look()
	a.beyond()
	a.publishers()
	a.pool()
	a.enter()
	// A finding whose message ends in YAML, to be copied and applied, comes last.
	slices.SortStableFunc(a.findings, func(x, y finding.Finding) int {
		return strings.Count(x.Message, "\n---\n") - strings.Count(y.Message, "\n---\n")
	})
	return Published{Addressed: a.Addressed, Apps: &a.plan, Findings: a.findings}
}

// beyond says why changes in the hosted cluster are noticed late, or what is not known about it.
func (a *publisher) beyond() {
	if a.Guest != nil && a.Guest.Cut {
		a.find(warn("ObjectTooLarge", fieldApps), "hosted cluster %s/%s has an object that is too large to be read, of those that *.apps needs, and no more than its name is known: a Node, a router's Service or pod, or what runs MetalLB; take away labels, or entries of its lists, that nobody needs", a.HostedCluster.Namespace, a.HostedCluster.Name)
	}
	if a.Guest != nil && a.Guest.Slowed {
		a.find(warn("HostedClusterSlowed", fieldApps), "hosted cluster %s/%s sends more objects than its share, and is read more slowly: what changes there for *.apps is seen late", a.HostedCluster.Namespace, a.HostedCluster.Name)
	}
}

// publishers reports that DNS, which must answer for *.apps, or the proxy, which must reach it, is disabled.
func (a *publisher) publishers() {
	on := a.Infra.Spec.InfraComponents
	if !input.Enabled(on.DNS.Enabled) {
		a.find(fail("DNSDisabled", subject.FieldDNS).Set(finding.Values{subject.FieldDNS: true}), "*.apps cannot be resolved: DNS is disabled; set infraComponents.dns.enabled: true")
	}
	if !input.Enabled(on.Proxy.Enabled) {
		lost := "the management cluster's pods cannot reach *.apps: the proxy"
		if a.spec.Mode != v1alpha1.AppsLoadBalancer {
			lost = "mode " + string(a.spec.Mode) + " goes through the proxy, which"
		}
		a.find(fail("ProxyDisabled", subject.FieldProxy).Set(finding.Values{subject.FieldProxy: true}), "%s is disabled; set infraComponents.proxy.enabled: true", lost)
	}
	a.spokenTo()
}

// pool reports ranges of addresses that would be refused, as long as *.apps has no external IP.
func (a *publisher) pool() {
	beyond := func(at netip.Addr) bool {
		return at.Is4() == a.CIDR.Addr().Is4() && !a.CIDR.Contains(at) && !endpoint.Allows(a.Settings.ExtraEndpointCIDRs, at)
	}
	for _, text := range a.spec.MetalLB.IPAddressPoolRange {
		if r := input.RangeOf(string(text)); !a.route.External() && a.CIDR.IsValid() && (beyond(r.First) || beyond(r.Last)) {
			a.find(fail("PoolOutsideNetwork", fieldPool), "appsIngress.metallb.ipAddressPoolRange %s lies outside networkConfig.cidr %s, so its addresses would not be used: set a range of the VLAN, or ask the administrator to add this network to --extra-endpoint-cidrs", text, a.CIDR)
		}
	}
}

func (a *publisher) look() {
	access, ok := AccessTo(a.Input)
	switch g := a.Guest; {
	case !ok:
		a.mismatched()
		a.unseen(input.GuestProblem{Reason: input.GuestWaiting, Message: a.noAccess()})
	case g == nil && a.Infra.Status.AppsIngress != nil:
		a.plan.Undecided, a.plan.Unread = true, true
	case g == nil:
		a.mismatched()
		a.unseen(input.GuestProblem{Reason: input.GuestWaiting, Message: "the hosted cluster has not been read yet, by the kubeconfig in Secret " + access.Secret.String()})
	case g.Problem != nil:
		a.unseen(*g.Problem)
	case a.spec.Mode == v1alpha1.AppsNodePort:
		a.nodePort()
	case a.spec.Mode == v1alpha1.AppsHostNetwork:
		a.hostNetwork()
	default:
		a.loadBalancer(access.Service)
	}
}

func (a *publisher) noAccess() string {
	switch hc := a.HostedCluster; {
	case hc == nil:
		return "there is no HostedCluster whose kubeconfig (status.kubeconfig) leads into the hosted cluster; set spec.hostedClusterRef"
	case hc.DeletionTimestamp != nil:
		return "HostedCluster " + hc.Namespace + "/" + hc.Name + " is being deleted"
	default:
		return "waiting for HostedCluster " + hc.Namespace + "/" + hc.Name + " to name its kubeconfig (status.kubeconfig)"
	}
}

func (a *publisher) unseen(p input.GuestProblem) {
	a.plan.Undecided = true
	f := wait(p.Reason)
	if p.Reason != input.GuestWaiting {
		a.plan.Away = true
		f = fail(p.Reason, fieldApps)
	}
	a.find(f, "%s", p.Message)
}

// enter puts the rows into the table. If appsIngress has a mistake, the previous rows stay.
func (a *publisher) enter() {
	domain := a.AppsDomain()
	if validation.IsDNS1123Subdomain(domain) != nil {
		a.find(fail("InvalidDomain", fieldApps+".baseDomain"), "the domain of *.apps is %q, which is no DNS name in lower case; set appsIngress.baseDomain to the cluster's, e.g. c1.example.com", domain)
		a.keep()
		return
	}
	a.route.Hostname, a.route.Ports = "*."+domain, a.spec.Ports
	if clash := a.take(a.route); clash != "" {
		a.find(fail("PortInUse", fieldPorts), "appsIngress.ports: %s", clash)
		a.keep()
	}
}

// keep keeps the previous rows, unless other rows need their place.
func (a *publisher) keep() {
	a.plan.Undecided = true
	if a.before.Hostname != "" {
		a.take(a.before)
	}
}

func (a *publisher) take(r input.AppsRoute) (clash string) {
	row := endpoint.Endpoint{Hostnames: []string{r.Hostname}, Answers: r.Answers, Views: v1alpha1.ViewVLANAndPods, Source: r.Source}
	https, http := row, row
	https.Name, https.Port, https.Protocol, https.Backend.Addresses = endpoint.AppsHTTPS, int32(r.Ports.HTTPS), v1alpha1.ProtocolTLS, r.HTTPS
	http.Name, http.Port, http.Protocol, http.Backend.Addresses = endpoint.AppsHTTP, int32(r.Ports.HTTP), v1alpha1.ProtocolTCP, r.HTTP
	table, clash := a.Table.WithApps(https, http)
	if clash = cmp.Or(clash, a.portInUse(https), a.portInUse(http)); clash != "" || len(r.HTTPS) == 0 {
		return clash
	}
	a.Table, a.plan.Addresses = table, r.Answers
	if len(a.plan.Addresses) == 0 {
		a.plan.Addresses = []netip.Addr{a.Address(component.Proxy)}
	}
	return ""
}

// portInUse: the proxy's pod has ports of its own, and a live port cannot change its protocol.
func (a *publisher) portInUse(e endpoint.Endpoint) string {
	if e.Port == names.HealthPort || e.Port == names.MetricsPort {
		return e.Name + " is the proxy's own port; choose another"
	}
	for _, b := range a.Children.OtherProtocol(e) {
		return e.Name + " has the port of " + b.Name + ", which uses another protocol: changing it would break open connections; choose another port"
	}
	return ""
}
