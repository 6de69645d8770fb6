package bridge

import (
	"fmt"
	"net/netip"
	"slices"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/api/util/ipnet"
	"k8s.io/utils/ptr"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/internal/endpoint"
	"github.com/cldmnky/oooi/internal/finding"
)

// network is one of a hosted cluster, with the field that has it.
type network struct {
	field string
	netip.Prefix
	hostPrefix int32
}

// These are fields of spec.networking, of HostedClusters and of bridges.
const pods, services, machines = "clusterNetwork", "serviceNetwork", "machineNetwork"

func (n network) String() string {
	if n.hostPrefix != 0 {
		return fmt.Sprintf("%s with hostPrefix %d", n.Prefix, n.hostPrefix)
	}
	return n.Prefix.String()
}

// chosen are the networks that the bridge sets.
func (in Input) chosen() (all []network) {
	spec := ptr.Deref(in.Bridge.Spec.Networking, dpuv1.ClusterNetworking{})
	for _, e := range spec.ClusterNetwork {
		all = append(all, network{pods, prefix(string(e.CIDR)), e.HostPrefix})
	}
	for _, e := range spec.ServiceNetwork {
		all = append(all, network{services, prefix(string(e.CIDR)), 0})
	}
	for _, e := range spec.MachineNetwork {
		all = append(all, network{machines, prefix(string(e.CIDR)), 0})
	}
	return all
}

// networks are those of a new hosted cluster: what the bridge sets, else HyperShift's defaults.
func (in Input) networks() []network {
	all := in.chosen()
	for _, usual := range []network{{pods, prefix(endpoint.DefaultClusterNetwork), 0}, {services, prefix(endpoint.DefaultServiceNetwork), 0}} {
		if !slices.ContainsFunc(all, usual.sameField) {
			all = append(all, usual)
		}
	}
	return all
}

func (n network) sameField(other network) bool { return n.field == other.field }

// prefix is the network that a text is. The schema makes sure that it is one.
func prefix(text string) netip.Prefix {
	p, _ := netip.ParsePrefix(text) // the zero Prefix overlaps none
	return p
}

// have are the networks of an existing hosted cluster.
func have(n hyperv1.ClusterNetworking) (all []network) {
	for _, e := range n.ClusterNetwork {
		all = append(all, network{pods, prefix(e.CIDR.String()), e.HostPrefix})
	}
	for _, e := range n.ServiceNetwork {
		all = append(all, network{services, prefix(e.CIDR.String()), 0})
	}
	for _, e := range n.MachineNetwork {
		all = append(all, network{machines, prefix(e.CIDR.String()), 0})
	}
	return all
}

// written are networks as a HostedCluster has them.
func written(all []network) hyperv1.ClusterNetworking {
	out := hyperv1.ClusterNetworking{NetworkType: hyperv1.Other}
	for _, n := range all {
		switch cidr := *ipnet.MustParseCIDR(n.Prefix.String()); n.field {
		case pods:
			out.ClusterNetwork = append(out.ClusterNetwork, hyperv1.ClusterNetworkEntry{CIDR: cidr, HostPrefix: n.hostPrefix})
		case services:
			out.ServiceNetwork = append(out.ServiceNetwork, hyperv1.ServiceNetworkEntry{CIDR: cidr})
		default:
			out.MachineNetwork = append(out.MachineNetwork, hyperv1.MachineNetworkEntry{CIDR: cidr})
		}
	}
	return out
}

func allocatesNodeCIDRs(hc *hyperv1.HostedCluster) bool {
	return ptr.Deref(hc.Spec.Networking.AllocateNodeCIDRs, "") == hyperv1.AllocateNodeCIDRsEnabled
}

// overlaps reports the networks of a new hosted cluster that DPUs could not use. One that exists, or did, keeps what it has.
func (in Input) overlaps() (all []finding.Finding) {
	if in.works() {
		return nil
	}
	mine := in.networks()
	for i, n := range mine {
		with := ""
		if n.field != machines { // DPUs may be where the Nodes are
			with = in.there(n.Prefix)
		}
		for _, other := range mine[:i] {
			if n.Overlaps(other.Prefix) {
				with = fmt.Sprintf("%s %s", other.field, other.Prefix)
			}
		}
		if with != "" {
			all = append(all, finding.Refuse(dpuv1.ConditionReady, "NetworksOverlap").At("spec.networking."+n.field).
				Say("%s %s of the hosted cluster overlaps %s: recreate the bridge with another networking.%s", n.field, n.Prefix, with, n.field))
		}
	}
	return all
}

// there is the network of the management cluster that a network overlaps.
func (in Input) there(cidr netip.Prefix) string {
	for _, n := range in.Networks {
		if n.Overlaps(cidr) {
			return fmt.Sprintf("%s, a network of the management cluster", n)
		}
	}
	return ""
}

// differs reports what the bridge sets that its hosted cluster was not created with.
func (in Input) differs() (all []finding.Finding) {
	hc := in.cluster()
	if hc == nil {
		return nil
	}
	other := func(field string, said, is any) {
		all = append(all, in.differing(finding.Fail, field, said, is))
	}
	if said, is := in.Bridge.Spec.FlannelEnabled, allocatesNodeCIDRs(hc); said != nil && *said != is {
		other("flannelEnabled", *said, is)
	}
	theirs := have(hc.Spec.Networking)
	for _, n := range in.chosen() {
		at := slices.IndexFunc(theirs, n.sameField)
		switch {
		case at < 0:
			other("networking."+n.field, n, "none")
		case n.Prefix != theirs[at].Prefix || n.hostPrefix != 0 && n.hostPrefix != theirs[at].hostPrefix:
			other("networking."+n.field, n, theirs[at])
		}
	}
	return all
}
