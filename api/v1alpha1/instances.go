package v1alpha1

import (
	"fmt"
	"slices"
)

// ServerIPField is the field below spec of a DHCPServer, DNSServer or ProxyServer that has the address of an instance: 0 is the first.
func ServerIPField(instance int) string {
	if instance == 0 {
		return "networkConfig.serverIP"
	}
	return fmt.Sprintf("networkConfig.additionalServerIPs[%d]", instance-1)
}

// InstanceAt is what a status has of the instance at an address; empty if it has none.
func InstanceAt(all []Instance, ip IPAddress) Instance {
	i := slices.IndexFunc(all, func(one Instance) bool { return one.IP == ip })
	if i < 0 {
		return Instance{}
	}
	return all[i]
}

// Probes says whether what the first instance found of the backends is its own word of now: while it is away, or its pod is not Ready on a node, its
// word is old.
func (s *ProxyServer) Probes() bool {
	first := InstanceAt(s.Status.Instances, s.Spec.NetworkConfig.ServerIP)
	return first.Ready && (len(s.Spec.NetworkConfig.ServerIPs()) == 1 || first.Node != "")
}

// Hears says whether something comes from that address.
func (h Health) Hears() bool { return h.State == HealthAnswers || h.State == HealthConfirmed }

// HealthAt is what an instance finds at an address; empty if it does not say.
func (i Instance) HealthAt(ip IPAddress) HealthState {
	for _, h := range i.Health {
		if h.IP == ip {
			return h.State
		}
	}
	return ""
}
