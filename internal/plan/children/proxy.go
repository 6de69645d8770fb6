package children

import (
	"net/netip"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/cldmnky/oooi/api/v1alpha1"
	ac "github.com/cldmnky/oooi/api/v1alpha1/applyconfiguration/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/component"
	"github.com/cldmnky/oooi/internal/endpoint"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/plan/apps"
	"github.com/cldmnky/oooi/internal/plan/desired"
)

func proxy(in apps.Published) []runtime.ApplyConfiguration {
	c, child := in.Infra.Spec.InfraComponents.Proxy, names.ProxyServer(in.Infra.Name)
	var captured []netip.Addr
	for _, c := range in.CapturedAddresses {
		captured = append(captured, c.IP)
	}
	attachment, objects := attachments(in, component.Proxy, child, captured...)
	objects = append(objects, ac.ProxyServer(child, in.Infra.Namespace).WithLabels(desired.Labels(in.Infra)).WithAnnotations(in.WithNodes(c.Placement)).WithOwnerReferences(owner(in)).
		WithSpec(desired.As[ac.ProxyServerSpecApplyConfiguration](proxySpec(in, attachment))))
	return slices.Concat(objects, proxyAccess(in, child), policies(in, child))
}

func proxySpec(in apps.Published, attachment v1alpha1.Attachment) v1alpha1.ProxyServerSpec {
	c := in.Infra.Spec.InfraComponents.Proxy
	spec := v1alpha1.ProxyServerSpec{
		NetworkConfig: v1alpha1.ProxyNetworkConfig{Attachment: attachment, ServerIP: desired.IP(in.Address(component.Proxy)), AdditionalServerIPs: further(in, component.Proxy, desired.IP), CapturedAddresses: carried(in)},
		ProxyImage:    c.ProxyImage, ManagerImage: c.ManagerImage, Placement: c.Placement,
	}
	for _, e := range in.Table.Endpoints {
		spec.Backends = append(spec.Backends, backend(e))
	}
	return spec
}

// carried are the captured addresses, which the proxy has in addition to its own.
func carried(in apps.Published) []v1alpha1.CapturedAddress {
	var all []v1alpha1.CapturedAddress
	for _, captured := range in.CapturedAddresses {
		address := v1alpha1.CapturedAddress{IP: desired.IP(captured.IP)}
		for _, port := range captured.Ports {
			address.Ports = append(address.Ports, v1alpha1.Port(port))
		}
		all = append(all, address)
	}
	return all
}

func backend(e endpoint.Endpoint) v1alpha1.ProxyBackend {
	b := v1alpha1.ProxyBackend{Name: e.Name, CatchAll: e.CatchAll, Port: v1alpha1.Port(e.Port), Protocol: e.Protocol, Views: e.Views}
	for i, h := range e.Hostnames {
		switch {
		case e.Protocol == v1alpha1.ProtocolTCP: // plain TCP carries no name
		case i == 0:
			b.Hostname = v1alpha1.DNSNameOrWildcard(h)
		default:
			b.AlternateHostnames = append(b.AlternateHostnames, v1alpha1.DNSNameOrWildcard(h))
		}
	}
	if e.Backend.Service != "" {
		b.TargetService, b.TargetNamespace, b.TargetPort = v1alpha1.ObjectName(e.Backend.Service), v1alpha1.ObjectName(e.Backend.Namespace), v1alpha1.Port(e.Backend.Port)
	}
	for _, a := range e.Backend.Addresses {
		b.TargetAddresses = append(b.TargetAddresses, a.String())
	}
	return b
}
