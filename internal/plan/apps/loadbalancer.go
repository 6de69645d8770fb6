package apps

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	accore "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/plan/desired"
	"github.com/cldmnky/oooi/internal/plan/input"
)

// suggestedClass is a class for MetalLB if it serves none.
const suggestedClass = "metallb.io/metallb"

// loadBalancer has the hosted cluster's MetalLB give a Service an address. An address that it has is used, whatever else is wrong.
func (a *publisher) loadBalancer(at types.NamespacedName) {
	ips := input.ExternalIPs(a.Guest.Service)
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
		a.find(fail("ServiceNameTaken", fieldService).Set(finding.Values{fieldService: free}), "Service %s of the hosted cluster belongs to somebody else; set appsIngress.service.name, e.g. to %s", at, free)
	case a.Guest.Refused != "":
		a.find(fail("ServiceRefused", fieldApps+".service"), "the hosted cluster refuses Service %s: %s", at, a.Guest.Refused)
	case len(ips) > 0:
		// accept has checked them.
	case !a.Guest.MetalLB.Installed():
		a.notInstalled()
	case a.before.External():
		a.find(fail("ExternalIPLost", fieldApps), "Service %s of the hosted cluster has lost its external IP; *.apps leads to the last one, %s, until MetalLB gives one again", at, a.before.Answers[0])
	case class != "" && a.Guest.MetalLB.Class() == "":
		a.classNotSet(class)
	default:
		a.find(wait("WaitingForExternalIP"), "waiting for MetalLB to give Service %s of the hosted cluster an external IP%s", at, a.unserved(class))
	}
}

func (a *publisher) notInstalled() {
	without := a.withoutMetalLB()
	a.find(fail("MetalLBNotInstalled", fieldMode).Set(finding.Values{fieldMode: without, fieldApps + ".metallb": nil}),
		"MetalLB is not installed in the hosted cluster: its controller, its speaker or both are missing; install it, or set appsIngress.mode: %s, which does not need it", without)
}

// unserved says if MetalLB serves another class than the Service has.
func (a *publisher) unserved(class string) string {
	if serves := a.Guest.MetalLB.Class(); serves != class {
		return "; it serves class " + serves + ", and appsIngress.metallb.loadBalancerClass is " + class
	}
	return ""
}

// class is that of the Service. On KubeVirt, HyperShift's own cloud provider takes every Service without a class.
func (a *publisher) class() (class string, known bool) {
	serves := a.Guest.MetalLB.Class()
	switch class = cmp.Or(a.spec.MetalLB.LoadBalancerClass, serves); {
	case class != "" || a.Platform() == nil:
		return class, true
	case !a.Guest.MetalLB.Installed():
		a.notInstalled()
	default:
		a.classNotSet(cmp.Or(a.Guest.MetalLB.SomeClass(), suggestedClass))
	}
	return "", false
}

// classNotSet has the settings in its message, ready to be applied.
func (a *publisher) classNotSet(class string) {
	f := fail("MetalLBClassNotSet", fieldClass).Change(a.Guest.MetalLB.Serving(class)...)
	a.find(f, "the hosted cluster's MetalLB serves no load balancer class, and on KubeVirt HyperShift's own cloud provider takes every Service without one. "+
		"Give it one in the hosted cluster, by: kubectl apply --server-side --force-conflicts --field-manager=oooi-advice -f FILE, with the FILE below; it is then read from there, "+
		"or set here: appsIngress.metallb.loadBalancerClass: %s. Or set appsIngress.mode: %s, which needs no MetalLB\n---\n%s", class, a.withoutMetalLB(), f.Say("").YAML())
}

func (a *publisher) advertised() {
	name := string(a.spec.MetalLB.L2AdvertisementName)
	if name != "" && a.Guest.MetalLB.Installed() && !slices.Contains(a.Guest.MetalLB.Advertisements, name) {
		const field = fieldApps + ".metallb.l2AdvertisementName"
		a.find(fail("L2AdvertisementNotFound", field).Set(finding.Values{field: nil}), "the hosted cluster has no L2Advertisement %s; create it, or remove appsIngress.metallb.l2AdvertisementName", name)
	}
}

// service selects the hosted cluster's routers (upstream.md#routers).
func (a *publisher) service(at types.NamespacedName, class string) *accore.ServiceApplyConfiguration {
	spec := accore.ServiceSpec().WithType(corev1.ServiceTypeLoadBalancer).WithIPFamilyPolicy(corev1.IPFamilyPolicyPreferDualStack).
		WithSelector(map[string]string{input.RouterLabel: input.RouterIngress.Name}).
		WithPorts(routerPort("http", a.spec.Ports.HTTP, input.RouterHTTP), routerPort("https", a.spec.Ports.HTTPS, input.RouterHTTPS))
	if class != "" {
		spec.WithLoadBalancerClass(class)
	}
	s := accore.Service(at.Name, at.Namespace).WithLabels(desired.Labels(a.Infra)).WithSpec(spec)
	if pool := string(a.spec.MetalLB.AddressPoolName); pool != "" {
		// The second is the spelling of MetalLB before 0.14.
		s.WithAnnotations(map[string]string{"metallb.io/address-pool": pool, "metallb.universe.tf/address-pool": pool})
	}
	return s
}

func routerPort(name string, port v1alpha1.Port, target int32) *accore.ServicePortApplyConfiguration {
	return desired.ServicePort(name, corev1.ProtocolTCP, int32(port)).WithTargetPort(intstr.FromInt32(target))
}
