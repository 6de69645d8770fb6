package intent

import (
	"net/netip"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/valid"
)

// These are the limits of the schema, for a file, which no API server validates. A missing value is the default.

// checkAddresses checks those of all instances, whichever is served here.
func (r *reader) checkAddresses(n v1alpha1.ProxyNetworkConfig) {
	if more := len(n.AdditionalServerIPs); more > valid.MostFurtherInstances {
		r.refuse("networkConfig.additionalServerIPs: %d are listed; list at most %d", more, valid.MostFurtherInstances)
	}
	for i, ip := range n.ServerIPs() {
		field := v1alpha1.ServerIPField(i)
		if _, ok := valid.Canonical(string(ip)); !ok {
			r.refuse("%s %q is not an IP address in canonical form, e.g. 192.168.100.4 or fd00:100::4", field, ip)
		}
		if i > 0 && (ip == n.ServerIP || slices.ContainsFunc(n.CapturedAddresses, func(c v1alpha1.CapturedAddress) bool { return c.IP == ip })) {
			r.refuse("%s %s is serverIP or a captured address, which the first instance has; give each instance an address of its own", field, ip)
		}
	}
}

func (r *reader) checkLists(spec v1alpha1.ProxyServerSpec) {
	if n := len(spec.Backends); n == 0 || n > valid.MostBackends {
		r.refuse("backends: %d are listed; list 1 to %d", n, valid.MostBackends)
	}
	if n := len(spec.NetworkConfig.CapturedAddresses); n > valid.MostCapturedAddresses {
		r.refuse("networkConfig.capturedAddresses: %d are listed; list at most %d", n, valid.MostCapturedAddresses)
	}
	seen := map[netip.Addr]bool{}
	for _, captured := range spec.NetworkConfig.CapturedAddresses {
		ip, ok := valid.Canonical(string(captured.IP))
		if !ok || seen[ip] {
			r.refuse("networkConfig.capturedAddresses: ip %q must be an IP address in canonical form, e.g. 203.0.113.7, and unique", captured.IP)
		}
		seen[ip] = true
		if n := len(captured.Ports); n == 0 || n > valid.MostCapturedPorts || twice(captured.Ports) {
			r.refuse("networkConfig.capturedAddresses: ip %s has %d ports; list 1 to %d different ones", captured.IP, n, valid.MostCapturedPorts)
		}
		for _, port := range captured.Ports {
			if !valid.Port(port) {
				r.refuse("networkConfig.capturedAddresses: ip %s: port %d is not a port (1 to 65535)", captured.IP, port)
			}
		}
	}
}

func (r *reader) checkBounds(b v1alpha1.ProxyBackend) {
	if b.Views != "" && b.Views != v1alpha1.ViewVLAN && !onPods(b) {
		r.refuse("backend %s: views %q is neither %s nor %s", b.Name, b.Views, v1alpha1.ViewVLAN, v1alpha1.ViewVLANAndPods)
	}
	if b.TimeoutSeconds != 0 && !valid.ConnectTimeout(b.TimeoutSeconds) {
		r.refuse("backend %s: timeoutSeconds %d is not 1 to %d", b.Name, b.TimeoutSeconds, valid.LongestConnectTimeout)
	}
	if n := len(b.TargetAddresses); n > valid.MostTargets || twice(b.TargetAddresses) {
		r.refuse("backend %s: targetAddresses has %d; list at most %d, each once", b.Name, n, valid.MostTargets)
	}
	if n := len(b.AlternateHostnames); n > valid.MostAlternateHostnames || twice(append(slices.Clone(b.AlternateHostnames), b.Hostname)) {
		r.refuse("backend %s: alternateHostnames has %d; list at most %d, each once and without the hostname", b.Name, n, valid.MostAlternateHostnames)
	}
	if protocolOf(b) == TCP && len(b.AlternateHostnames) > 0 {
		r.refuse("backend %s: alternateHostnames need protocol TLS: plain TCP carries no name", b.Name)
	}
	if b.TargetPort != 0 && !valid.Port(b.TargetPort) {
		r.refuse("backend %s: targetPort %d is not a port (1 to 65535)", b.Name, b.TargetPort)
	}
	for _, name := range []v1alpha1.ObjectName{b.TargetService, b.TargetNamespace} {
		if name != "" && len(validation.IsDNS1123Subdomain(string(name))) > 0 {
			r.refuse("backend %s: %q is not a name of a Service or namespace, e.g. kube-apiserver", b.Name, name)
		}
	}
}

// twice says whether a list has something more than once.
func twice[T comparable](list []T) bool {
	seen := map[T]bool{}
	for _, one := range list {
		seen[one] = true
	}
	return len(seen) < len(list)
}
