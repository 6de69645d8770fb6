// Package subject names what findings are about: objects, and fields of them.
package subject

import (
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/ipam"
	"github.com/cldmnky/oooi/internal/nad"
)

// Fields that findings are about.
const (
	FieldCIDR           = ipam.FieldCIDR
	FieldGateway        = "spec.networkConfig.gateway"
	FieldRoutes         = "spec.networkConfig.routes"
	FieldNAD            = "spec.networkConfig.networkAttachmentDefinition"
	FieldMTU            = "spec.networkConfig.mtu"
	FieldNTP            = "spec.networkConfig.ntpServers"
	FieldResolvers      = "spec.networkConfig.dnsServers"
	FieldUnknownClients = "spec.infraComponents.dhcp.unknownClients"
	FieldDHCP           = "spec.infraComponents.dhcp.enabled"
	FieldDNS            = "spec.infraComponents.dns.enabled"
	FieldProxy          = "spec.infraComponents.proxy.enabled"
	FieldControlPlane   = "spec.infraComponents.proxy.controlPlaneNamespace"
)

// Infra as findings name it.
func Infra(infra *v1alpha1.Infra) finding.Object {
	return finding.Object{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Infra", Namespace: infra.Namespace, Name: infra.Name}
}

// NAD as findings name it.
func NAD(n *nad.NetworkAttachmentDefinition) finding.Object {
	return finding.Object{APIVersion: nad.GroupVersion.String(), Kind: "NetworkAttachmentDefinition", Namespace: n.Namespace, Name: n.Name}
}

// NodePool as findings name it.
func NodePool(p *hyperv1.NodePool) finding.Object {
	return finding.Object{APIVersion: hyperv1.GroupVersion.String(), Kind: "NodePool", Namespace: p.Namespace, Name: p.Name}
}

// Fields of a NodePool.
const (
	FieldNetworks       = "spec.platform.kubevirt.additionalNetworks"
	FieldDefaultNetwork = "spec.platform.kubevirt.attachDefaultNetwork"
)
