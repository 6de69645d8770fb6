package bridge

import (
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"k8s.io/utils/ptr"
)

// unneeded are the capabilities that nothing on a DPU uses (the same as a DPFHCPProvisioner's, hostedcluster.go, buildHostedCluster).
var unneeded = []hyperv1.OptionalCapability{
	hyperv1.ImageRegistryCapability, hyperv1.InsightsCapability, hyperv1.ConsoleCapability,
	hyperv1.OpenShiftSamplesCapability, hyperv1.IngressCapability, hyperv1.NodeTuningCapability,
}

// capabilities are immutable in HyperShift, so an existing hosted cluster keeps its own.
func (in Input) capabilities() *hyperv1.Capabilities {
	hc := in.cluster()
	if hc == nil {
		return &hyperv1.Capabilities{Disabled: unneeded}
	}
	if c := hc.Spec.Capabilities; c != nil && len(c.Disabled)+len(c.Enabled) > 0 {
		return c
	}
	return nil
}

// nodeSelector has no default: HyperShift's pods do not tolerate the taint of control-plane Nodes (openshift/hypershift v0.1.60,
// support/controlplane-component/defaults.go, setControlPlaneIsolation), and would not start where all of these have it.
func (in Input) nodeSelector() map[string]string {
	all := map[string]string{}
	for key, value := range in.Bridge.Spec.NodeSelector {
		all[key] = string(value)
	}
	if hc := in.cluster(); hc != nil && len(all) == 0 {
		return hc.Spec.NodeSelector
	}
	return all
}

// networking is immutable in HyperShift, so an existing hosted cluster keeps its own. Its webhook replaces a missing allocateNodeCIDRs by
// Disabled, so that must be Enabled from the start, or never.
func (in Input) networking() hyperv1.ClusterNetworking {
	hc := in.cluster()
	if hc == nil {
		n := written(in.networks())
		if ptr.Deref(in.Bridge.Spec.FlannelEnabled, true) {
			n.AllocateNodeCIDRs = ptr.To(hyperv1.AllocateNodeCIDRsEnabled)
		}
		return n
	}
	n := hyperv1.ClusterNetworking{
		NetworkType:    hyperv1.Other,
		ClusterNetwork: hc.Spec.Networking.ClusterNetwork, ServiceNetwork: hc.Spec.Networking.ServiceNetwork, MachineNetwork: hc.Spec.Networking.MachineNetwork,
	}
	if allocatesNodeCIDRs(hc) {
		n.AllocateNodeCIDRs = hc.Spec.Networking.AllocateNodeCIDRs
	}
	return n
}
