package bridge

import (
	"net/netip"
	"slices"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
)

// APIAddresses are the addresses of the hosted API server, without its names: no kubelet may get a certificate for one.
func APIAddresses(b *dpuv1.DPUHCPBridge, hc *hyperv1.HostedCluster) (all []netip.Addr) {
	_, vip := virtualIP(b)
	hosts := []string{vip, hc.Status.ControlPlaneEndpoint.Host}
	for _, s := range hc.Spec.Services {
		if s.NodePort != nil {
			hosts = append(hosts, s.NodePort.Address)
		}
	}
	for _, host := range hosts {
		if ip, err := netip.ParseAddr(host); err == nil && !slices.Contains(all, ip.Unmap()) {
			all = append(all, ip.Unmap())
		}
	}
	return all
}

// ServiceNetworks are the networks of the hosted cluster's Services: no kubelet may get a certificate for an address in them.
func ServiceNetworks(hc *hyperv1.HostedCluster) (all []netip.Prefix) {
	for _, n := range hc.Spec.Networking.ServiceNetwork {
		if network, err := netip.ParsePrefix(n.CIDR.String()); err == nil {
			all = append(all, network)
		}
	}
	return all
}
