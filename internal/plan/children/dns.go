package children

import (
	"net/netip"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/cldmnky/oooi/api/v1alpha1"
	ac "github.com/cldmnky/oooi/api/v1alpha1/applyconfiguration/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/component"
	"github.com/cldmnky/oooi/internal/endpoint"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/plan/apps"
	"github.com/cldmnky/oooi/internal/plan/desired"
	"github.com/cldmnky/oooi/internal/plan/input"
	"github.com/cldmnky/oooi/internal/valid"
)

func dns(in apps.Published) []runtime.ApplyConfiguration {
	c, child := in.Infra.Spec.InfraComponents.DNS, names.DNSServer(in.Infra.Name)
	attachment, objects := attachments(in, component.DNS, child)
	objects = append(objects, ac.DNSServer(child, in.Infra.Namespace).WithLabels(desired.Labels(in.Infra)).WithAnnotations(in.WithNodes(c.Placement)).WithOwnerReferences(owner(in)).
		WithSpec(desired.As[ac.DNSServerSpecApplyConfiguration](dnsSpec(in, attachment))))
	return objects
}

func dnsSpec(in apps.Published, attachment v1alpha1.Attachment) v1alpha1.DNSServerSpec {
	n, c := in.Infra.Spec.NetworkConfig, in.Infra.Spec.InfraComponents.DNS
	var further []v1alpha1.IPAddress
	for _, at := range in.Addresses(component.DNS)[1:] {
		further = append(further, desired.IP(at))
	}
	spec := v1alpha1.DNSServerSpec{
		NetworkConfig:       v1alpha1.DNSNetworkConfig{Attachment: attachment, ServerIP: desired.IP(in.Address(component.DNS)), AdditionalServerIPs: further, SecondaryNetworkCIDR: n.CIDR, ClientCIDRs: n.ClientCIDRs},
		HostedClusterDomain: v1alpha1.DNSName(in.Domain()), DeniedZones: deniedZones(in.Settings), UpstreamDNS: n.DNSServers,
		CacheTTL: metav1.Duration{Duration: valid.DefaultCacheTTL}, Image: c.Image, Placement: c.Placement,
	}
	if !input.Enabled(in.Infra.Spec.InfraComponents.Proxy.Enabled) {
		spec.StaticEntries = entries(in.Table.Records(netip.Addr{}))
		return spec
	}
	spec.StaticEntries = entries(in.Table.Records(in.Address(component.Proxy)))
	if proxy := in.Children.Proxy(); proxy != nil {
		service, _ := netip.ParseAddr(proxy.Status.ServiceIP)
		spec.InternalEntries = entries(onPods(in).Records(service))
	}
	return spec
}

// onPods are the endpoints that DNS also answers on the pod network, each with the proxy's address.
func onPods(in apps.Published) endpoint.Table {
	table := endpoint.Table{}
	for _, e := range in.Table.Endpoints {
		if e.Views == v1alpha1.ViewVLANAndPods {
			e.Answers = nil
			table.Endpoints = append(table.Endpoints, e)
		}
	}
	return table
}

func entries(records []endpoint.Record) []v1alpha1.DNSEntry {
	var all []v1alpha1.DNSEntry
	for _, r := range records {
		all = append(all, v1alpha1.DNSEntry{Hostname: v1alpha1.DNSNameOrWildcard(r.Hostname), IP: desired.IP(r.IP)})
	}
	return all
}
