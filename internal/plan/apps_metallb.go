package plan

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	accore "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/endpoint"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/ipam"
)

// mostExternalIPs that a Service is believed to have: MetalLB gives it one of each family.
const mostExternalIPs = 8

// suggestedClass is the one that MetalLB is to serve when it serves none.
const suggestedClass = "metallb.io/metallb"

// loadBalancer has the hosted cluster's MetalLB give a Service an address. One that it has is followed, whatever else is wrong.
func (a *appsView) loadBalancer(at types.NamespacedName) {
	ips := externalIPs(a.Guest.Service)
	a.accept(ips, at)
	class, ok := a.class()
	if !ok {
		a.plan.Undecided = true
		return
	}
	a.plan.Service = a.service(at, class)
	a.advertised()
	switch {
	case a.Guest.Foreign:
		free := at.Name + "-oooi"
		a.find(appsFail("ServiceNameTaken", fieldAppsService).Set(finding.Values{fieldAppsService: free}), "Service %s of the hosted cluster is somebody else's; set appsIngress.service.name, e.g. to %s", at, free)
	case a.Guest.Refused != "":
		a.find(appsFail("ServiceRefused", fieldApps+".service"), "the hosted cluster refuses Service %s: %s", at, a.Guest.Refused)
	case len(ips) > 0:
		// It has been judged.
	case !a.Guest.MetalLB.installed():
		a.notInstalled()
	case a.before.external():
		a.find(appsFail("ExternalIPLost", fieldApps), "Service %s of the hosted cluster has lost its external IP; *.apps leads to the last one, %s, until MetalLB gives one again", at, a.before.answers[0])
	case class != "" && a.Guest.MetalLB.class() == "":
		a.classNotSet(class)
	default:
		a.find(appsWait("WaitingForExternalIP"), "waiting for MetalLB to give Service %s of the hosted cluster an external IP%s", at, a.unserved(class))
	}
}

func (a *appsView) notInstalled() {
	without := a.withoutMetalLB()
	a.find(appsFail("MetalLBNotInstalled", fieldAppsMode).Set(finding.Values{fieldAppsMode: without, fieldApps + ".metallb": nil}),
		"MetalLB is not installed in the hosted cluster: its controller, its speaker or both are not there; install it, or set appsIngress.mode: %s, which needs none", without)
}

// unserved tells when MetalLB serves another class than the Service has.
func (a *appsView) unserved(class string) string {
	if serves := a.Guest.MetalLB.class(); serves != class {
		return "; it serves class " + serves + ", and appsIngress.metallb.loadBalancerClass is " + class
	}
	return ""
}

// class of the Service. On KubeVirt HyperShift's own cloud provider takes every Service that has none.
func (a *appsView) class() (class string, known bool) {
	serves := a.Guest.MetalLB.class()
	switch class = cmp.Or(a.spec.MetalLB.LoadBalancerClass, serves); {
	case class != "" || a.platform() == nil:
		return class, true
	case !a.Guest.MetalLB.installed():
		a.notInstalled()
	default:
		a.classNotSet(cmp.Or(a.Guest.MetalLB.someClass(), suggestedClass))
	}
	return "", false
}

// classNotSet writes the settings out so that they can be taken as they stand.
func (a *appsView) classNotSet(class string) {
	f := appsFail("MetalLBClassNotSet", fieldAppsClass).Change(a.Guest.MetalLB.serving(class)...)
	a.find(f, "the hosted cluster's MetalLB serves no load balancer class, and on KubeVirt HyperShift's own cloud provider takes every Service without one. "+
		"Give it one in the hosted cluster, by: kubectl apply --server-side --force-conflicts --field-manager=oooi-advice -f FILE, with the FILE below; it is then read from there, "+
		"or set here: appsIngress.metallb.loadBalancerClass: %s. Or set appsIngress.mode: %s, which needs no MetalLB\n---\n%s", class, a.withoutMetalLB(), f.Say("").YAML())
}

// installed is MetalLB with both of its parts, or with an operator that makes them.
func (m GuestMetalLB) installed() bool {
	return len(m.Objects) > 0 || m.runs("Deployment") && m.runs("DaemonSet")
}

func (m GuestMetalLB) runs(kind string) bool {
	return slices.ContainsFunc(m.Workloads, func(w GuestWorkload) bool { return w.Kind == kind })
}

// class that MetalLB serves: as its operator was told, else the one that its controller and its speaker both have.
func (m GuestMetalLB) class() string {
	for _, o := range m.Objects {
		if o.Class != "" {
			return o.Class
		}
	}
	some := m.someClass()
	if slices.ContainsFunc(m.Workloads, func(w GuestWorkload) bool { return w.class() != some }) {
		return ""
	}
	return some
}

func (m GuestMetalLB) someClass() string {
	for _, w := range m.Workloads {
		if class := w.class(); class != "" {
			return class
		}
	}
	return ""
}

// class is that of flag --lb-class; Go's flags also have one dash, and the value as an argument of its own.
func (w GuestWorkload) class() string {
	for i, arg := range w.Args {
		name, value, joined := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(arg, "-"), "-"), "=")
		switch {
		case name != "lb-class" || name == arg:
		case joined:
			return value
		case i+1 < len(w.Args):
			return w.Args[i+1]
		}
	}
	return ""
}

// serving is what makes MetalLB serve a class: its operator's object, or what runs it.
func (m GuestMetalLB) serving(class string) []finding.Change {
	var all []finding.Change
	for _, o := range m.Objects {
		of := finding.Object{APIVersion: "metallb.io/v1beta1", Kind: "MetalLB", Namespace: o.Namespace, Name: o.Name}
		all = append(all, finding.Change{Of: of, Values: finding.Values{"spec.loadBalancerClass": class}})
	}
	for _, w := range m.Workloads {
		if len(m.Objects) > 0 || w.class() != "" {
			continue
		}
		of := finding.Object{APIVersion: "apps/v1", Kind: w.Kind, Namespace: w.Namespace, Name: w.Name}
		container := map[string]any{"name": w.Container, "args": append(slices.Clone(w.Args), "--lb-class="+class)}
		all = append(all, finding.Change{Of: of, Values: finding.Values{"spec.template.spec.containers": []any{container}}})
	}
	return all
}

func (a *appsView) advertised() {
	name := string(a.spec.MetalLB.L2AdvertisementName)
	if name != "" && a.Guest.MetalLB.installed() && !slices.Contains(a.Guest.MetalLB.Advertisements, name) {
		const field = fieldApps + ".metallb.l2AdvertisementName"
		a.find(appsFail("L2AdvertisementNotFound", field).Set(finding.Values{field: nil}), "the hosted cluster has no L2Advertisement %s; create it, or remove appsIngress.metallb.l2AdvertisementName", name)
	}
}

// service leads to the guest's routers (upstream.md#routers).
func (a *appsView) service(at types.NamespacedName, class string) *accore.ServiceApplyConfiguration {
	spec := accore.ServiceSpec().WithType(corev1.ServiceTypeLoadBalancer).WithIPFamilyPolicy(corev1.IPFamilyPolicyPreferDualStack).
		WithSelector(map[string]string{RouterLabel: RouterIngress.Name}).
		WithPorts(routerPort("http", a.spec.Ports.HTTP, routerHTTP), routerPort("https", a.spec.Ports.HTTPS, routerHTTPS))
	if class != "" {
		spec.WithLoadBalancerClass(class)
	}
	s := accore.Service(at.Name, at.Namespace).WithLabels(a.labels()).WithSpec(spec)
	if pool := string(a.spec.MetalLB.AddressPoolName); pool != "" {
		// The second is the spelling of MetalLB before 0.14.
		s.WithAnnotations(map[string]string{"metallb.io/address-pool": pool, "metallb.universe.tf/address-pool": pool})
	}
	return s
}

func routerPort(name string, port v1alpha1.Port, target int32) *accore.ServicePortApplyConfiguration {
	return servicePort(name, corev1.ProtocolTCP, int32(port)).WithTargetPort(intstr.FromInt32(target))
}

func nodePortOf(s *corev1.Service, port int32) int32 {
	if s == nil {
		return 0
	}
	for _, p := range s.Spec.Ports {
		if p.Port == port && isPort(p.NodePort) {
			return p.NodePort
		}
	}
	return 0
}

// externalIPs are those that a Service says it has; names are never followed.
func externalIPs(s *corev1.Service) []netip.Addr {
	if s == nil {
		return nil
	}
	var all []netip.Addr
	for _, i := range s.Status.LoadBalancer.Ingress {
		if a, err := netip.ParseAddr(i.IP); err == nil && a.Zone() == "" && !slices.Contains(all, a.Unmap()) && len(all) < mostExternalIPs {
			all = append(all, a.Unmap())
		}
	}
	return all
}

// accept follows the external IPs that may be followed; while there is none, all stays as it is.
func (a *appsView) accept(ips []netip.Addr, service types.NamespacedName) {
	good := slices.DeleteFunc(slices.Clone(ips), func(at netip.Addr) bool { _, refused := a.refuses(at); return refused })
	for _, at := range ips {
		f, refused := a.refuses(at)
		if len(good) > 0 && at.Is4() != a.cidr.Addr().Is4() { // MetalLB with both families gives one of each
			f.Outcome = finding.OK
		}
		if refused {
			a.findings = append(a.findings, f)
		}
	}
	if len(good) == 0 {
		return
	}
	slices.SortFunc(good, netip.Addr.Compare)
	a.route = a.leadingTo(good, "Service "+service.String()+" of the hosted cluster")
}

func (a *appsView) leadingTo(addresses []netip.Addr, source string) appsRoute {
	dialled := a.dialled(addresses)
	return appsRoute{https: at(dialled, int32(a.spec.Ports.HTTPS)), http: at(dialled, int32(a.spec.Ports.HTTP)), answers: addresses, source: source}
}

// refuses an external IP, and says why. It is the word of the guest's administrator, who must not steer the proxy beyond the VLAN.
func (v *view) refuses(at netip.Addr) (finding.Finding, bool) {
	const unused = "it is not used"
	outside := appsFail("ExternalIPOutsideNetwork", fieldApps)
	pool := appsSpec(v.Infra).MetalLB.IPAddressPoolRange
	holder := v.holder(at)
	switch {
	case holder != "":
		return outside.Say("the hosted cluster gives *.apps the address %s, which is %s; %s: keep it out of MetalLB's pools", at, holder, unused), true
	case !v.onVLAN(at) && !endpoint.Admits(v.Settings.ExtraEndpointCIDRs, at):
		return outside.Say("the hosted cluster gives *.apps the address %s, which no host of networkConfig.cidr %s has; %s: have MetalLB give an address of the VLAN, or ask the administrator to add this one's network to --extra-endpoint-cidrs", at, v.cidr, unused), true
	case len(pool) > 0 && !slices.ContainsFunc(pool, func(r v1alpha1.AddressOrRange) bool { return rangeOf(string(r)).Contains(at) }):
		return appsFail("ExternalIPOutsidePool", fieldAppsPool).Say("the hosted cluster gives *.apps the address %s, which lies outside appsIngress.metallb.ipAddressPoolRange %v; %s: add its range, or set appsIngress.metallb.addressPoolName", at, pool, unused), true
	}
	return finding.Finding{}, false
}

func (v *view) onVLAN(at netip.Addr) bool {
	return ipam.Usable(v.cidr).Contains(at)
}

// dialled are those on the VLAN, if there are any: the proxy binds its own address there, and cannot elsewhere.
func (a *appsView) dialled(all []netip.Addr) []netip.Addr {
	near := slices.DeleteFunc(slices.Clone(all), func(at netip.Addr) bool { return !a.cidr.Contains(at) })
	if len(near) > 0 {
		return near
	}
	return all
}
