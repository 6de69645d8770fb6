package bridge

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	corev1 "k8s.io/api/core/v1"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/kubelet"
	"github.com/cldmnky/oooi/internal/metallb"
)

func listed(networks []netip.Prefix) string {
	var all []string
	for _, n := range networks {
		all = append(all, n.String())
	}
	return strings.Join(all, ", ")
}

var published = []hyperv1.ServiceType{hyperv1.APIServer, hyperv1.OAuthServer, hyperv1.Konnectivity, hyperv1.Ignition}

// services says how the control plane is published. HyperShift allows no change, so an existing hosted cluster keeps what it has.
func (in Input) services(p *Plan) []hyperv1.ServicePublishingStrategyMapping {
	if hc := in.cluster(); hc != nil {
		p.Find(in.away(hc.Spec.Services)...)
		return hc.Spec.Services
	}
	var all []hyperv1.ServicePublishingStrategyMapping
	if Exposed(in.Bridge) {
		for _, service := range published {
			strategy := hyperv1.ServicePublishingStrategy{Type: hyperv1.Route}
			if service == hyperv1.APIServer {
				strategy.Type = hyperv1.LoadBalancer
			}
			all = append(all, hyperv1.ServicePublishingStrategyMapping{Service: service, ServicePublishingStrategy: strategy})
		}
		return all
	}
	address := nodeAddress(in.Nodes)
	if address == "" {
		p.Find(finding.Wait(dpuv1.ConditionReady, "NodeAddressUnknown").At("spec.exposeThroughLoadBalancer").
			Say("the control plane is published through node ports, but no Ready Node of the management cluster has an ExternalIP or InternalIP: see kubectl get nodes -o wide"))
		return nil
	}
	for _, service := range published {
		all = append(all, hyperv1.ServicePublishingStrategyMapping{Service: service, ServicePublishingStrategy: hyperv1.ServicePublishingStrategy{
			Type: hyperv1.NodePort, NodePort: &hyperv1.NodePortPublishingStrategy{Address: address},
		}})
	}
	return all
}

// away reports node ports at an address that no Ready Node has any more.
func (in Input) away(services []hyperv1.ServicePublishingStrategyMapping) []finding.Finding {
	for _, s := range services {
		if s.NodePort != nil && !slices.ContainsFunc(in.Nodes, func(n corev1.Node) bool { return isReady(n) && has(n, s.NodePort.Address) }) {
			return one(finding.Fail(dpuv1.ConditionReady, "NodeAddressNotFound").At("spec.exposeThroughLoadBalancer").
				Say("the control plane is reached at %s, which is not the address of any Ready Node of the management cluster: bring the Node back, or give its address to another; HyperShift does not publish it elsewhere", s.NodePort.Address))
		}
	}
	return nil
}

func has(n corev1.Node, address string) bool {
	return slices.ContainsFunc(n.Status.Addresses, func(a corev1.NodeAddress) bool { return a.Address == address })
}

// nodeAddress is a Ready Node's ExternalIP, or else a Ready Node's InternalIP.
func nodeAddress(nodes []corev1.Node) string {
	for _, kind := range []corev1.NodeAddressType{corev1.NodeExternalIP, corev1.NodeInternalIP} {
		for _, n := range sorted(nodes) {
			for _, a := range n.Status.Addresses {
				if a.Type == kind && isReady(n) {
					return a.Address
				}
			}
		}
	}
	return ""
}

func isReady(n corev1.Node) bool { return kubelet.NodeReady(&n).Status == corev1.ConditionTrue }

// metallb checks that MetalLB, which only a virtual IP needs, is installed, and may announce that.
func (in Input) metallb() []finding.Finding {
	const kind = dpuv1.ConditionMetalLBConfigured
	field, vip := virtualIP(in.Bridge)
	switch {
	case !Exposed(in.Bridge):
		return one(in.nodePorts())
	case vip == "":
		return one(finding.Warn(kind, "NotNeeded").Say("metalLBVirtualIP is not set: the address comes from the cluster's load balancer"))
	}
	if found := in.virtualIP(); found != nil || in.Served.MetalLB {
		return found
	}
	return one(finding.Wait(kind, "MetalLBNotInstalled").At("spec."+field).
		Say("the cluster does not serve MetalLB's IPAddressPools and L2Advertisements (%s): install the MetalLB operator; the bridge notices it", metallb.GroupVersion))
}

// nodePorts says how the control plane is reached without a load balancer: HyperShift takes one address for node ports. Some clusters have no
// other way, so a HighlyAvailable one gets them too (docs/adr/0018-two-names-of-one-field.md).
func (in Input) nodePorts() finding.Finding {
	const kind = dpuv1.ConditionMetalLBConfigured
	if in.Bridge.Spec.ControlPlaneAvailabilityPolicy == dpuv1.SingleReplica {
		return finding.Warn(kind, "NotNeeded").Say("the control plane is reached through node ports")
	}
	return finding.Warn(kind, "ReachedAtOneNode").At("spec.virtualIP").
		Say("the control plane is HighlyAvailable, but is reached through node ports at the address of one Node, and not while that Node is down: to have an address that moves, create the bridge with virtualIP, which MetalLB announces; or with controlPlaneAvailabilityPolicy: SingleReplica, if that will do")
}

// virtualIP checks whether MetalLB may announce it. MetalLB answers ARP for any address in its pools, even the gateway's or a Node's, and a
// bridge's author need not be allowed to write pools.
func (in Input) virtualIP() []finding.Finding {
	vip := VirtualIP(in.Bridge)
	field, _ := virtualIP(in.Bridge)
	refuse := func(reason string) finding.Builder {
		if in.works() { // it is immutable, so to freeze the rest would mend nothing
			return finding.Fail(dpuv1.ConditionMetalLBConfigured, reason).At("spec." + field)
		}
		return finding.Refuse(dpuv1.ConditionMetalLBConfigured, reason).At("spec." + field)
	}
	switch {
	case !in.Settings.Announces(vip):
		return one(refuse("VirtualIPNotAllowed").Say("%s %s lies outside the networks that bridges may announce (%s): use an address from these, or ask the administrator to add a network to the operator's --bridge-virtual-ips",
			field, vip, cmp.Or(listed(in.Settings.VirtualIPs), "none")))
	case slices.ContainsFunc(in.Nodes, func(n corev1.Node) bool { return has(n, vip.String()) }):
		return one(refuse("VirtualIPInUse").Say("%s %s is the address of a Node of the management cluster: choose an unused one", field, vip))
	case !in.announced() && slices.ContainsFunc(in.Rivals, in.announces):
		return one(refuse("VirtualIPInUse").Say("%s %s belongs to another bridge, which has its hosted cluster: choose an unused one", field, vip))
	}
	return nil
}

// works says whether the bridge has, or had, its hosted cluster.
func (in Input) works() bool { return in.cluster() != nil || Reported(in.Bridge) }

// announces says whether a rival has our virtual IP: the bridge whose address is announced has it, or else the one that works. Of two that
// wait, neither has.
func (in Input) announces(r Rival) bool {
	theirs := in.rival(r)
	return announceOne(r.DPUHCPBridge, in.Bridge) && (theirs.announced() || !in.works() && theirs.works())
}

// announced says whether MetalLB's pool has the bridge's address.
func (in Input) announced() bool {
	vip := VirtualIP(in.Bridge)
	return in.Pool != nil && vip.IsValid() && slices.Equal(in.Pool.Spec.Addresses, []string{pooled(vip)})
}

// pooled is an address in the form of a pool.
func pooled(vip netip.Addr) string { return netip.PrefixFrom(vip, vip.BitLen()).String() }
