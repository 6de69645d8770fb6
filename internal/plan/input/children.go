package input

import (
	"net/netip"
	"slices"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/component"
	"github.com/cldmnky/oooi/internal/endpoint"
	"github.com/cldmnky/oooi/internal/ipam"
	"github.com/cldmnky/oooi/internal/plan/desired"
)

// Children are the servers of an Infra that exist, by component.
type Children map[component.Name]component.Server

// DHCP is the DHCPServer; nil if there is none.
func (c Children) DHCP() *v1alpha1.DHCPServer { return child[*v1alpha1.DHCPServer](c, component.DHCP) }

// DNS is the DNSServer; nil if there is none.
func (c Children) DNS() *v1alpha1.DNSServer { return child[*v1alpha1.DNSServer](c, component.DNS) }

// Proxy is the ProxyServer; nil if there is none.
func (c Children) Proxy() *v1alpha1.ProxyServer {
	return child[*v1alpha1.ProxyServer](c, component.Proxy)
}

func child[T component.Server](c Children, name component.Name) T {
	server, _ := c[name].(T)
	return server
}

// Addresses of the children, by instance.
func (c Children) Addresses() map[component.Name]netip.Addr {
	all := map[component.Name]netip.Addr{}
	for _, part := range component.All {
		if server := c[part.Name]; server != nil {
			written := part.Written(server)
			if a, err := netip.ParseAddr(written.ServerIP); err == nil {
				all[part.Name] = a
			}
			for _, text := range written.AdditionalServerIPs {
				if a, err := netip.ParseAddr(string(text)); err == nil {
					all[part.Name.Second()] = a
				}
			}
		}
	}
	return all
}

// Reporting are the addresses of all instances in the children's status. One that is no longer wanted stays there until its pod is gone.
func (c Children) Reporting() (all []netip.Addr) {
	for _, part := range component.All {
		if server := c[part.Name]; server != nil {
			for _, i := range part.Written(server).Instances {
				if a, err := netip.ParseAddr(string(i.IP)); err == nil {
					all = append(all, a)
				}
			}
		}
	}
	return all
}

// Pool of the DHCPServer; not valid if there is no DHCPServer.
func (c Children) Pool() ipam.Range {
	if c.DHCP() == nil {
		return ipam.Range{}
	}
	return Span(c.DHCP().Spec.LeaseConfig.RangeStart, c.DHCP().Spec.LeaseConfig.RangeEnd)
}

// Exclusions are the ranges that the DHCPServer keeps out of its pool.
func (c Children) Exclusions() []ipam.Range {
	if c.DHCP() == nil {
		return nil
	}
	return Spans(c.DHCP().Spec.ExcludeRanges)
}

// Leased are the ranges that a DHCP server leases from now. Our pool avoids those of a newer Infra too, but leaves it no room for more.
func (c Children) Leased() []ipam.Range { return ipam.Without(c.Pool(), c.Exclusions()) }

// Network is the NetworkAttachmentDefinition of a child; empty if the child does not exist.
func (c Children) Network(child string) string {
	for _, part := range component.All {
		if server := c[part.Name]; server != nil && server.GetName() == child {
			return string(part.Written(server).Attachment.NetworkAttachmentDefinition)
		}
	}
	return ""
}

// Carries says whether the proxy has a captured address.
func (c Children) Carries(published netip.Addr) bool {
	return c.Proxy() != nil && slices.ContainsFunc(c.Proxy().Spec.NetworkConfig.CapturedAddresses, func(a v1alpha1.CapturedAddress) bool { return a.IP == desired.IP(published) })
}

// OtherProtocol are the backends at an endpoint's port that have another protocol.
func (c Children) OtherProtocol(e endpoint.Endpoint) []v1alpha1.ProxyBackend {
	if c.Proxy() == nil {
		return nil
	}
	var all []v1alpha1.ProxyBackend
	for _, b := range c.Proxy().Spec.Backends {
		if int32(b.Port) == e.Port && b.Protocol != e.Protocol {
			all = append(all, b)
		}
	}
	return all
}

// Ignores says whether the DHCPServer serves only clients that it knows.
func (c Children) Ignores() bool {
	return c.DHCP() != nil && c.DHCP().Spec.UnknownClients == v1alpha1.UnknownClientsIgnore
}
