package endpoint

import (
	"net/netip"
	"slices"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/unroutable"
	"github.com/cldmnky/oooi/internal/valid"
)

// With adds the endpoints that the user lists in an Infra of this namespace. Of addresses it takes only those that the administrator
// allows.
func (t Table) With(extras []v1alpha1.ExtraEndpoint, namespace string, allowed []netip.Prefix) Table {
	t.Endpoints = slices.Clone(t.Endpoints)
	for _, x := range extras {
		e := Endpoint{Name: x.Name, Port: int32(x.Port), Protocol: x.Protocol, Views: v1alpha1.ViewVLAN, Source: "extraEndpoints"}
		for _, h := range x.Hostnames {
			e.Hostnames = append(e.Hostnames, string(h))
		}
		if t.clashes(e) || !t.target(&e, x.Target, namespace, allowed) {
			continue
		}
		t.Endpoints = append(t.Endpoints, e)
	}
	return t
}

func (t *Table) target(e *Endpoint, target v1alpha1.EndpointTarget, namespace string, allowed []netip.Prefix) bool {
	if target.Service != "" {
		e.Backend = Backend{Namespace: string(target.Namespace), Service: string(target.Service), Port: int32(target.Port)}
		if target.Namespace == "" {
			e.Backend.Namespace = namespace
		}
		return true
	}
	for _, text := range target.Addresses {
		a, ok := valid.Target(text)
		if !ok {
			t.find(finding.Refuse(v1alpha1.ConditionAccepted, "InvalidAddress").At("spec.extraEndpoints["+e.Name+"].target.addresses").
				Say("extraEndpoints[%s].target.addresses has %q; write ip:port, e.g. 10.20.0.5:443", e.Name, text))
			return false
		}
		if !Allows(allowed, a.Addr()) {
			t.find(finding.Refuse(v1alpha1.ConditionAccepted, "AddressNotAllowed").At("spec.extraEndpoints["+e.Name+"].target.addresses").
				Say("extraEndpoints[%s].target.addresses has %s, which lies outside the operator's --extra-endpoint-cidrs; ask the administrator to add it, or set target.service", e.Name, a.Addr()))
			return false
		}
		e.Backend.Addresses = append(e.Backend.Addresses, a)
	}
	return true
}

// Allows never allows an unroutable address, whatever is listed.
func Allows(allowed []netip.Prefix, a netip.Addr) bool {
	return !unroutable.Is(a) && slices.ContainsFunc(allowed, func(p netip.Prefix) bool { return p.Contains(a.Unmap()) })
}

// ofControlPlane are the names of the control plane's endpoints.
var ofControlPlane = []string{"api", "ignition", "oauth", "konnectivity", "metrics-proxy"}

// Essential are the endpoints without which no worker becomes Ready.
var Essential = []string{"api", "ignition", "konnectivity"}

// clashes says whether e clashes with an endpoint of the table, or with one that it will have once the control plane is published.
func (t *Table) clashes(e Endpoint) bool {
	others := slices.Clone(t.Endpoints)
	if hc := t.of.HostedCluster; hc != nil && hc.Status.ControlPlaneEndpoint.Host == "" {
		for _, name := range ofControlPlane {
			others = append(others, Endpoint{Name: name})
		}
	}
	for _, other := range others {
		if why := e.clash(other); why != "" {
			t.find(finding.Refuse(v1alpha1.ConditionAccepted, "ExtraEndpointConflict").At("spec.extraEndpoints["+e.Name+"]").Say("extraEndpoints[%s] %s", e.Name, why))
			return true
		}
	}
	return false
}

func (e Endpoint) clash(other Endpoint) string {
	if e.Name == other.Name {
		return "has the name of an endpoint of the control plane; choose another name"
	}
	if e.Port != other.Port {
		return ""
	}
	if e.Protocol == v1alpha1.ProtocolTCP || other.Protocol == v1alpha1.ProtocolTCP {
		return "needs a port for itself, or shares one with " + other.Name + ", which does; choose another port"
	}
	for _, h := range e.Hostnames {
		if slices.Contains(other.Hostnames, h) {
			return "has hostname " + h + " on the port where " + other.Name + " has it; remove it"
		}
	}
	return ""
}
