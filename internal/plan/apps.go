package plan

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	accore "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/endpoint"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/ipam"
	"github.com/cldmnky/oooi/internal/local"
	"github.com/cldmnky/oooi/internal/names"
)

// Apps is what *.apps of an Infra becomes beside the rows of the endpoint table.
type Apps struct {
	// Service is desired in the hosted cluster; nil: none is.
	Service *accore.ServiceApplyConfiguration
	// Undecided: it cannot be said which Service is desired; what is there stays.
	Undecided bool
	// Addresses that *.apps has on the VLAN.
	Addresses []netip.Addr
	// Away: the hosted cluster is not to be seen.
	Away bool
	// Unread: nobody has looked yet since the manager, or this way of looking, began; what was said before holds.
	Unread bool
}

// The guest's routers (upstream.md#routers).
const (
	RouterNamespace = "openshift-ingress"
	RouterLabel     = "ingresscontroller.operator.openshift.io/deployment-ingresscontroller"
	routerHTTP      = 80
	routerHTTPS     = 443
)

// RouterIngress is the guest's IngressController that has *.apps, and RouterLabel's value on its routers' pods is its name
// (cluster-ingress-operator, pkg/operator/controller/names.go).
var RouterIngress = types.NamespacedName{Namespace: "openshift-ingress-operator", Name: "default"}

// RouterNodePort is the Service of the guest's default router where HyperShift publishes it by node port (upstream.md#routers).
var RouterNodePort = types.NamespacedName{Namespace: RouterNamespace, Name: "router-nodeport-default"}

const (
	fieldApps        = "spec.appsIngress"
	fieldAppsMode    = fieldApps + ".mode"
	fieldAppsClass   = fieldApps + ".metallb.loadBalancerClass"
	fieldAppsPool    = fieldApps + ".metallb.ipAddressPoolRange"
	fieldAppsService = fieldApps + ".service.name"
	fieldAppsPorts   = fieldApps + ".ports"
)

// mostTargets is what a ProxyServer's targetAddresses hold.
const mostTargets = 64

func publishes(infra *v1alpha1.Infra) bool {
	return infra.Spec.AppsIngress != nil && infra.Spec.AppsIngress.Enabled
}

// Publishes says whether *.apps is wanted.
func (in Input) Publishes() bool { return publishes(in.Infra) }

// GuestAccess is how the hosted cluster is looked into for *.apps.
type GuestAccess struct {
	// Secret with the kubeconfig whose credentials are used.
	Secret types.NamespacedName
	// Server that is dialled, whatever the kubeconfig says: a SAN of its certificate, and any pod is admitted there.
	Server string
	// Service that *.apps has in the hosted cluster.
	Service types.NamespacedName
	// Mode that the Infra decides; empty: it is the one by which the hosted cluster publishes its routers.
	Mode v1alpha1.AppsIngressMode
}

// GuestService is what *.apps has, or may have, in a hosted cluster that lives; false where there is nothing to look for or to
// remove, or the Infra has been let go. HyperShift never takes back the name of a kubeconfig (hostedcluster_controller.go): without
// one nobody of ours was there.
func (in Input) GuestService() (types.NamespacedName, bool) {
	hc, infra := in.HostedCluster, in.Infra
	letGo := infra.DeletionTimestamp != nil && !slices.Contains(infra.Finalizers, names.Finalizer)
	if !in.Publishes() && infra.Status.AppsIngress == nil || letGo || hc == nil || hc.DeletionTimestamp != nil || hc.Status.KubeConfig == nil {
		return types.NamespacedName{}, false
	}
	s := appsSpec(infra).Service
	return types.NamespacedName{Namespace: string(s.Namespace), Name: orElse(string(s.Name), names.Apps(hc.Name))}, true
}

// GuestAccess is false without a GuestService, and without permission.
func (in Input) GuestAccess() (GuestAccess, bool) {
	service, any := in.GuestService()
	if !any || len(Permitted(in)) > 0 {
		return GuestAccess{}, false
	}
	return GuestAccess{
		Secret:  types.NamespacedName{Namespace: in.HostedCluster.Namespace, Name: in.HostedCluster.Status.KubeConfig.Name},
		Server:  "https://kube-apiserver." + in.ControlPlaneNamespace() + ".svc:6443",
		Service: service,
		Mode:    decidedMode(in.Infra),
	}, true
}

// appsSpec is spec.appsIngress with its defaults; the mode is appsView's to decide.
func appsSpec(infra *v1alpha1.Infra) v1alpha1.AppsIngress {
	var spec v1alpha1.AppsIngress
	if infra.Spec.AppsIngress != nil {
		spec = *infra.Spec.AppsIngress
	}
	if spec.MetalLB == nil {
		spec.MetalLB = &v1alpha1.AppsMetalLB{}
	}
	spec.Service.Namespace = cmp.Or(spec.Service.Namespace, RouterNamespace)
	spec.Ports = v1alpha1.AppsPorts{HTTP: cmp.Or(spec.Ports.HTTP, routerHTTP), HTTPS: cmp.Or(spec.Ports.HTTPS, routerHTTPS)}
	return spec
}

// appsRoute is where *.apps leads: what the proxy dials, and what the VLAN's DNS answers in place of the proxy's address.
type appsRoute struct {
	https, http []netip.AddrPort
	answers     []netip.Addr
	source      string
	hostname    string // none: there were no rows
	ports       v1alpha1.AppsPorts
}

// appsView judges what the hosted cluster offers for *.apps. Its findings hold nothing back.
type appsView struct {
	*view
	spec     v1alpha1.AppsIngress
	before   appsRoute // as the children have it
	route    appsRoute // as they are to have it
	plan     Apps
	findings []finding.Finding
}

func (a *appsView) find(f finding.Builder, format string, args ...any) {
	a.findings = append(a.findings, f.Say(format, args...))
}

func appsFail(reason, field string) finding.Builder {
	return finding.Fails(v1alpha1.ConditionAppsIngressReady, reason).At(field)
}

func appsNote(reason, field string) finding.Builder {
	return finding.Note(v1alpha1.ConditionAppsIngressReady, reason).At(field)
}

func appsWait(reason string) finding.Builder {
	return finding.Wait(v1alpha1.ConditionAppsIngressReady, reason).At(fieldApps)
}

// publish adds *.apps to the table. What was good before stays where the hosted cluster offers nothing better.
func (v *view) publish() *appsView {
	if !publishes(v.Infra) {
		return nil
	}
	a := &appsView{view: v, spec: appsSpec(v.Infra)}
	a.before = a.Children.readBack()
	a.before.answers = slices.DeleteFunc(a.before.answers, func(at netip.Addr) bool { return a.holder(at) != "" })
	if len(a.before.https) == 0 {
		a.before = a.leadingTo(a.before.answers, a.before.source)
	}
	a.route, a.spec.Mode = a.before, a.mode()
	a.look()
	a.publishers()
	a.pool()
	a.enter()
	// One whose message ends in YAML, to be cut off and applied, comes last.
	slices.SortStableFunc(a.findings, func(x, y finding.Finding) int {
		return strings.Count(x.Message, "\n---\n") - strings.Count(y.Message, "\n---\n")
	})
	return a
}

// found is nothing while *.apps is off.
func (a *appsView) found() []finding.Finding {
	if a == nil {
		return nil
	}
	return a.findings
}

// publishers of what the hosted cluster offers: the one answers for it, the other reaches it.
func (a *appsView) publishers() {
	on := a.Infra.Spec.InfraComponents
	if !enabled(on.DNS.Enabled) {
		a.find(appsFail("DNSIsOff", fieldDNS).Set(finding.Values{fieldDNS: true}), "nobody answers for *.apps: DNS is switched off; set infraComponents.dns.enabled: true")
	}
	if !enabled(on.Proxy.Enabled) {
		lost := "the management cluster's pods do not reach *.apps: the proxy"
		if a.spec.Mode != v1alpha1.AppsLoadBalancer {
			lost = "mode " + string(a.spec.Mode) + " leads through the proxy, which"
		}
		a.find(appsFail("ProxyIsOff", fieldProxy).Set(finding.Values{fieldProxy: true}), "%s is switched off; set infraComponents.proxy.enabled: true", lost)
	}
	a.spokenTo()
}

// pool of addresses that would be refused, as long as there is no other.
func (a *appsView) pool() {
	beyond := func(at netip.Addr) bool {
		return at.Is4() == a.cidr.Addr().Is4() && !a.cidr.Contains(at) && !endpoint.Admits(a.Settings.ExtraEndpointCIDRs, at)
	}
	for _, text := range a.spec.MetalLB.IPAddressPoolRange {
		if r := rangeOf(string(text)); !a.route.external() && a.cidr.IsValid() && (beyond(r.First) || beyond(r.Last)) {
			a.find(appsFail("PoolOutsideNetwork", fieldAppsPool), "appsIngress.metallb.ipAddressPoolRange %s lies outside networkConfig.cidr %s, and what MetalLB gives of it would not be used: have it give addresses of the VLAN, or ask the administrator to add this network to --extra-endpoint-cidrs", text, a.cidr)
		}
	}
}

func (a *appsView) look() {
	access, ok := a.GuestAccess()
	switch g := a.Guest; {
	case !ok:
		a.mismatched()
		a.unseen(GuestProblem{GuestWaiting, a.noAccess()})
	case g == nil && a.Infra.Status.AppsIngress != nil:
		a.plan.Undecided, a.plan.Unread = true, true
	case g == nil:
		a.mismatched()
		a.unseen(GuestProblem{GuestWaiting, "the hosted cluster has not been looked into yet, by the kubeconfig in Secret " + access.Secret.String()})
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

func (a *appsView) noAccess() string {
	switch hc := a.HostedCluster; {
	case hc == nil:
		return "there is no HostedCluster whose kubeconfig (status.kubeconfig) leads into the hosted cluster; set spec.hostedClusterRef"
	case hc.DeletionTimestamp != nil:
		return "HostedCluster " + hc.Namespace + "/" + hc.Name + " is being deleted"
	default:
		return "waiting for HostedCluster " + hc.Namespace + "/" + hc.Name + " to name its kubeconfig (status.kubeconfig)"
	}
}

func (a *appsView) unseen(p GuestProblem) {
	a.plan.Undecided = true
	f := appsWait(p.Reason)
	if p.Reason != GuestWaiting {
		a.plan.Away = true
		f = appsFail(p.Reason, fieldApps)
	}
	a.find(f, "%s", p.Message)
}

// enter puts the rows into the table. A mistake in appsIngress takes away nothing that works.
func (a *appsView) enter() {
	domain := a.appsDomain()
	if validation.IsDNS1123Subdomain(domain) != nil {
		a.find(appsFail("InvalidDomain", fieldApps+".baseDomain"), "the domain of *.apps is %q, which is no DNS name in lower case; set appsIngress.baseDomain to the cluster's, e.g. c1.example.com", domain)
		a.keep()
		return
	}
	a.route.hostname, a.route.ports = "*."+domain, a.spec.Ports
	if clash := a.take(a.route); clash != "" {
		a.find(appsFail("PortInUse", fieldAppsPorts), "appsIngress.ports: %s", clash)
		a.keep()
	}
}

// keep the rows that were there, unless something else needs their place.
func (a *appsView) keep() {
	a.plan.Undecided = true
	if a.before.hostname != "" {
		a.take(a.before)
	}
}

func (a *appsView) take(r appsRoute) (clash string) {
	row := endpoint.Endpoint{Hostnames: []string{r.hostname}, Answers: r.answers, Views: v1alpha1.ViewVLANAndPods, Source: r.source}
	https, http := row, row
	https.Name, https.Port, https.Protocol, https.Backend.Addresses = endpoint.AppsHTTPS, int32(r.ports.HTTPS), v1alpha1.ProtocolTLS, r.https
	http.Name, http.Port, http.Protocol, http.Backend.Addresses = endpoint.AppsHTTP, int32(r.ports.HTTP), v1alpha1.ProtocolTCP, r.http
	table, clash := a.table.WithApps(https, http)
	if clash = cmp.Or(clash, a.portInUse(https), a.portInUse(http)); clash != "" || len(r.https) == 0 {
		return clash
	}
	a.table, a.plan.Addresses = table, r.answers
	if len(a.plan.Addresses) == 0 {
		a.plan.Addresses = []netip.Addr{a.address(ipam.Proxy)}
	}
	return ""
}

// portInUse: the proxy's pod has ports of its own, and a live port cannot change its protocol.
func (a *appsView) portInUse(e endpoint.Endpoint) string {
	if e.Port == names.HealthPort || e.Port == names.MetricsPort {
		return e.Name + " has the proxy's own port; choose another"
	}
	for _, b := range a.Children.otherwise(e) {
		return e.Name + " has the port of " + b.Name + ", which has another protocol: its open connections would break; choose another port"
	}
	return ""
}

func (a *appsView) appsDomain() string {
	if a.spec.BaseDomain != "" {
		return "apps." + string(a.spec.BaseDomain)
	}
	return a.controlPlane().AppsDomain()
}

// readBack is what the children were told last: it stays while there is nothing better, over restarts too.
func (c Children) readBack() appsRoute {
	r := appsRoute{source: "kept: what was seen in the hosted cluster last"}
	var proxy []v1alpha1.IPAddress // also while there is no ProxyServer: all names but that of *.apps lead to it
	if c.Proxy != nil {
		proxy = append(proxy, c.Proxy.Spec.NetworkConfig.ServerIP)
		for _, b := range c.Proxy.Spec.Backends {
			switch b.Name {
			case endpoint.AppsHTTPS:
				r.https, r.hostname, r.ports.HTTPS = addrPorts(b.TargetAddresses), string(b.Hostname), b.Port
			case endpoint.AppsHTTP:
				r.http, r.ports.HTTP = addrPorts(b.TargetAddresses), b.Port
			}
		}
	}
	if c.DNS == nil {
		return r
	}
	var wild []v1alpha1.IPAddress
	for _, e := range c.DNS.Spec.StaticEntries {
		if strings.HasPrefix(string(e.Hostname), "*.") {
			wild = append(wild, e.IP)
		} else {
			proxy = append(proxy, e.IP)
		}
	}
	for _, ip := range wild {
		if at, err := netip.ParseAddr(string(ip)); err == nil && !slices.Contains(proxy, ip) && !slices.Contains(r.answers, at) && len(r.answers) < mostExternalIPs {
			r.answers = append(r.answers, at)
		}
	}
	return r
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

// keptForApps are the addresses that MetalLB may give *.apps, and those that it has: DHCP leases none of them.
func keptForApps(infra *v1alpha1.Infra, children Children) (pool, seen []ipam.Range) {
	if !publishes(infra) {
		return nil, nil
	}
	for _, text := range appsSpec(infra).MetalLB.IPAddressPoolRange {
		pool = append(pool, rangeOf(string(text)))
	}
	for _, a := range children.readBack().answers {
		seen = append(seen, ipam.Single(a))
	}
	return pool, seen
}

// takenByApps are ours; what is seen only now, and may be followed, is not leased either, before it is answered.
func (v *view) takenByApps() []ipam.Taken {
	var taken []ipam.Taken
	pool, seen := keptForApps(v.Infra, v.Children)
	for _, r := range pool {
		taken = append(taken, ipam.Taken{Range: r, By: "appsIngress.metallb.ipAddressPoolRange"})
	}
	if v.Guest != nil && publishes(v.Infra) {
		for _, at := range externalIPs(v.Guest.Service) {
			if _, refused := v.refuses(at); !refused {
				seen = append(seen, ipam.Single(at))
			}
		}
	}
	for _, r := range seen {
		taken = append(taken, ipam.Taken{Range: r})
	}
	return taken
}

// rangeOf reads a network or first-last, as MetalLB's pools have them.
func rangeOf(text string) ipam.Range {
	if p, err := netip.ParsePrefix(text); err == nil {
		return ipam.Whole(p)
	}
	first, last, _ := strings.Cut(text, "-")
	return span(strings.TrimSpace(first), strings.TrimSpace(last))
}

// external says whether *.apps had an address of MetalLB's.
func (r appsRoute) external() bool { return len(r.answers) > 0 }

func at(addresses []netip.Addr, port int32) []netip.AddrPort {
	var all []netip.AddrPort
	for _, a := range addresses {
		all = append(all, netip.AddrPortFrom(a, uint16(port)))
	}
	return all
}

// holder says who has an address that *.apps must not lead to. Before addresses are assigned, ours are those of before.
func (v *view) holder(at netip.Addr) string {
	ours := []map[ipam.Component]netip.Addr{written(v.Infra), given(v.Infra, v.Children), v.assigned.Addresses}
	switch {
	case local.Is(at):
		return "a loopback, link-local, multicast or metadata address"
	case at == v.gateway:
		return "networkConfig.gateway"
	case slices.ContainsFunc(v.table.Endpoints, func(e endpoint.Endpoint) bool { return slices.Contains(e.Literals, at) }):
		return "an endpoint of the control plane"
	case slices.Contains(v.assigned.Spare, at), slices.ContainsFunc(ours, func(all map[ipam.Component]netip.Addr) bool { return has(all, at) }):
		return "this Infra's"
	case slices.ContainsFunc(v.near, func(n near) bool { return n.has(at) }) && !v.answers(at):
		return "another Infra's on this VLAN"
	}
	return ""
}

// answers says whether our DNS gives an address for *.apps by now: it was nobody's when it was taken up, and whoever stands there, or
// says so, came or edited later.
func (v *view) answers(at netip.Addr) bool {
	return slices.Contains(v.Children.readBack().answers, at)
}

// has says whether a neighbour is at an address, or, being older, leases it.
func (n near) has(at netip.Addr) bool {
	leased := func(r ipam.Range) bool { return r.Contains(at) }
	return has(given(n.Infra, n.Children), at) || n.older && slices.ContainsFunc(n.Children.leased(), leased)
}

func has(all map[ipam.Component]netip.Addr, at netip.Addr) bool {
	return slices.Contains(slices.Collect(maps.Values(all)), at)
}
