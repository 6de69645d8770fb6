package endpoint

import (
	"cmp"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	routev1 "github.com/openshift/api/route/v1"
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	corev1 "k8s.io/api/core/v1"
)

func ingressOf(s *corev1.Service) []string {
	var hosts []string
	for _, i := range s.Status.LoadBalancer.Ingress {
		if host := cmp.Or(i.Hostname, i.IP); host != "" {
			hosts = append(hosts, host)
		}
	}
	return hosts
}

// route adds what a Route publishes; false if there is no such Route, or it has no host yet.
func (r *reader) route(name, route string) bool {
	found := r.findRoute(route)
	if found == nil || hostOf(found) == "" {
		return false
	}
	e := vlanEndpoint(name, r.routePort(route), hyperv1.Route, "Route "+route)
	r.lead(e, r.service(found.Spec.To.Name), hostOf(found))
	return true
}

// routePort is the port of a Route: HTTPS's, or the node port of the control plane's own router if that is how it is published
// (openshift/enhancements: hypershift, router service publishing).
func (r *reader) routePort(route string) int32 {
	found, s := r.findRoute(route), r.findService(router)
	if found == nil || found.Labels[ControlPlaneLabel] == "" || s == nil || s.Spec.Type != corev1.ServiceTypeNodePort {
		return httpsPort
	}
	for _, p := range s.Spec.Ports {
		if p.Port == httpsPort && p.NodePort != 0 {
			return p.NodePort
		}
	}
	return httpsPort
}

// lead adds an endpoint that leads to a Service. For a missing Service it adds none; whoever looked it up awaits it.
func (r *reader) lead(e Endpoint, s *corev1.Service, hosts ...string) {
	if s == nil || len(s.Spec.Ports) == 0 {
		return
	}
	e.Backend = Backend{Namespace: s.Namespace, Service: s.Name, Port: servicePort(s, e.Port)}
	r.table.add(e, hosts...)
}

// servicePort is the port whose nodePort workers dial, or else the first: HyperShift's Services for workers have one port.
func servicePort(s *corev1.Service, dialled int32) int32 {
	for _, p := range s.Spec.Ports {
		if p.NodePort == dialled {
			return p.Port
		}
	}
	return s.Spec.Ports[0].Port
}

// behind is the Service that a Route leads to, or else the first of these services that exists. If none does, it is awaited.
func (r *reader) behind(route string, services ...string) *corev1.Service {
	if found := r.findRoute(route); found != nil && r.findService(found.Spec.To.Name) != nil {
		return r.findService(found.Spec.To.Name)
	}
	for _, name := range services {
		if s := r.findService(name); s != nil {
			return s
		}
	}
	return r.service(services[0])
}

// service finds a Service, or else awaits it.
func (r *reader) service(name string) *corev1.Service {
	s := r.findService(name)
	if s == nil {
		r.table.await("Service %s/%s", r.Namespace, name)
	}
	return s
}

func (r *reader) findService(name string) *corev1.Service {
	for i := range r.Services {
		if s := &r.Services[i]; s.Namespace == r.Namespace && s.Name == name {
			r.table.needs(s)
			return s
		}
	}
	return nil
}

func (r *reader) findRoute(name string) *routev1.Route {
	for i := range r.Routes {
		if found := &r.Routes[i]; found.Namespace == r.Namespace && found.Name == name {
			r.table.needs(found)
			return found
		}
	}
	return nil
}

// hostOf a Route is the one it requests, or else the one its router gave it.
func hostOf(r *routev1.Route) string {
	if r.Spec.Host == "" && len(r.Status.Ingress) > 0 {
		return r.Status.Ingress[0].Host
	}
	return r.Spec.Host
}

// published is how a service is published. By Route if that is not said: HyperShift's CLI publishes all but the API so.
func (cp ControlPlane) published(service hyperv1.ServiceType) hyperv1.ServicePublishingStrategy {
	for _, s := range cp.services() {
		if s.Service == service {
			return s.ServicePublishingStrategy
		}
	}
	return hyperv1.ServicePublishingStrategy{Type: hyperv1.Route}
}

// splitHostPort reads host or host:port; without a port it returns the fallback.
func splitHostPort(endpoint string, fallback int32) (string, int32) {
	if _, err := netip.ParseAddr(endpoint); err == nil {
		return endpoint, fallback
	}
	host, port, err := net.SplitHostPort(endpoint)
	if err != nil {
		return strings.Trim(endpoint, "[]"), fallback
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil || number == 0 {
		return host, fallback
	}
	return host, int32(number)
}

func hostPortOfURL(text string, fallback int32) (string, int32) {
	u, err := url.Parse(text)
	if err != nil {
		return "", 0
	}
	return splitHostPort(u.Host, fallback)
}
