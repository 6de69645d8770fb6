package vlan

import (
	"net/netip"
	"slices"

	"github.com/cldmnky/oooi/internal/nad"
	"github.com/cldmnky/oooi/internal/plan/input"
)

// Network is the workers' network, and how our pods join it.
type Network struct {
	Source *nad.NetworkAttachmentDefinition
	Config nad.Config
	Broken string // why the configuration could not be read, or does not fit
	// Direct: pods attach to the source itself.
	Direct bool
	// Tuned: forwarding is turned off on our pods' interface.
	Tuned bool
	// Anywhere: clients are in every network.
	Anywhere bool
}

func networkOf(in input.Input) Network {
	v := networkAt(in.NAD)
	v.Anywhere = slices.ContainsFunc(input.ClientNetworks(in.Infra), func(p netip.Prefix) bool { return p.Bits() == 0 })
	v.Tuned = tuningAllowed(in) && !v.Config.IsOVN()
	if in.NAD != nil {
		allowed := in.NAD.Namespace == in.Infra.Namespace || slices.Contains(in.Settings.NADSourceNamespaces, in.NAD.Namespace)
		v.Direct = v.Config.IsOVN() && !v.Config.AssignsAddresses() && allowed
	}
	return v
}

// networkAt is the network without what depends on who joins it.
func networkAt(source *nad.NetworkAttachmentDefinition) Network {
	v := Network{Source: source}
	if source == nil {
		return v
	}
	config, err := nad.Parse(source.Spec.Config)
	if err != nil {
		v.Broken = err.Error()
		return v
	}
	v.Config, v.Broken = config, config.Unfit(source.Namespace, source.Name)
	return v
}

// tuningAllowed says whether the tuning plugin may turn forwarding off. On OpenShift, nodes keep the list when its ConfigMap is deleted,
// which is then recreated without our line (cluster-network-operator, pkg/controller/allowlist); elsewhere there is no list.
func tuningAllowed(in input.Input) bool {
	if in.SysctlAllowlist == nil {
		return !in.OpenShift
	}
	return nad.AllowsTuning(in.SysctlAllowlist.Data[nad.SysctlAllowlistKey])
}
