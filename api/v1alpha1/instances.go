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
