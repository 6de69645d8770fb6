package nad

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
)

// What OVN-Kubernetes does with a localnet and its pods, as far as planning depends on it. Sources are paths below go-controller/pkg of
// ovn-kubernetes 8871cd9 (2026-08-21), unless they name a release or a proposal (docs/okeps).

// ovnKey is a key of spec.config.
type ovnKey struct {
	key string
	// assigns: with this key OVN-Kubernetes assigns addresses to pods, pins their ports to them, and refuses `ips`.
	assigns bool
	// stays in our copy, which has the same VLAN and no addresses. Other keys are left out, or set by us.
	stays  bool
	when   string
	source string
}

var ovnKeys = []ovnKey{
	{"topology", false, true, "localnet leads to a physical network; layer2 and layer3 do not", "util/multi_network.go newNetInfo"},
	{"physicalNetworkName", false, true, "names the bridge mapping; without it the network's name does", "ovn/base_secondary_layer2_network_controller.go, util/multi_network.go PhysicalNetworkName"},
	{"vlanID", false, true, "tags the localnet port", "util/multi_network.go newLocalnetNetConfInfo"},
	{"mtu", false, true, "is the interface's; without it that of the pod network", "cni/cni.go"},
	{"role", false, true, "secondary only", "util/multi_network.go ValidateNetConf"},
	{"name", false, false, "names the network in all namespaces; - and / become . in the names of its switches", "util/multi_network.go GetUserDefinedNetworkPrefix"},
	{"netAttachDefName", false, false, "must be the object's own namespace/name", "util/multi_network.go ValidateNetConf"},
	{"subnets", true, false, "always: addresses are allocated, and `ips` fail the pod", "allocator/pod/pod_annotation.go validateStaticIPRequest"},
	{"excludeSubnets", false, false, "with subnets only", "util/multi_network.go validateSubnetContainment"},
	{"allowPersistentIPs", false, true, "with subnets only", "allocator/pod/pod_annotation.go"},
	{"reservedSubnets", false, false, "refused on localnet", "util/multi_network.go ValidateNetConf"},
	{"infrastructureSubnets", false, false, "refused on localnet", "util/multi_network.go ValidateNetConf"},
	{"ipam", true, false, "a type is refused up to 1.3; planned for 1.4: dhcp has OVN-Kubernetes ask the VLAN's DHCP server", "util/multi_network.go ValidateNetConf; okep-6224-dhcp-ipam-localnet.md"},
	{"macSecurityMode", false, true, "planned: Disabled takes port security off", "okep-3926-disable-port-security.md"},
}

// ovnAsked is a key of the pod annotation k8s.v1.cni.cncf.io/networks.
type ovnAsked struct {
	key string
	// used by our pods.
	used   bool
	when   string
	source string
}

var ovnAsks = []ovnAsked{
	{"interface", true, "always", "cni/cni.go"},
	{"mac", true, "always; the port then sends from no other", "allocator/pod/pod_annotation.go"},
	{"ips", true, "without subnets, several and /32s too; the port then has \"MAC ip1 ip2 …\" as port_security: ovn (2411e96, controller/lflow.c) drops what the pod " +
		"sends from another address, ARP too, and what it would get for another; frames to a broadcast or multicast address pass", "ovn/base_network_controller_pods.go"},
	// Pods, Services and the join subnet stay on eth0; everything else goes to the VLAN's router: what our DNS forwards to the nodes'
	// resolvers, and the proxy's connections to outside the cluster. Routes to single networks cannot be requested.
	{"default-route", false, "on localnet always, as the pod's only default route", "allocator/pod/pod_annotation.go AddRoutesGatewayIP"},
}

// notCopied are the keys that a copy leaves out.
func notCopied() []string {
	var all []string
	for _, k := range ovnKeys {
		if !k.stays {
			all = append(all, k.key)
		}
	}
	return all
}

// assignsOnOVN says whether OVN-Kubernetes assigns addresses on this network.
func (c Config) assignsOnOVN() bool {
	return slices.ContainsFunc(ovnKeys, func(k ovnKey) bool { return k.assigns && !empty(c.plugins[0][k.key]) })
}

// empty says whether a value means nothing: "ipam": {} is the same as no ipam.
func empty(value any) bool {
	object, isObject := value.(map[string]any)
	return value == nil || value == "" || isObject && (object["type"] == nil || object["type"] == "")
}

// unfitOVN says why OVN-Kubernetes refuses a network, so that every pod on it waits, including the workers' (go-controller/pkg:
// config/cni.go ParseNetConf, util/multi_network.go ValidateNetConf).
func (c Config) unfitOVN(object string) string {
	switch {
	case c.main.Topology != "localnet":
		return fmt.Sprintf("topology %q of %s does not reach a VLAN; only localnet does", c.main.Topology, ovn)
	case len(c.plugins) > 1:
		return fmt.Sprintf("OVN-Kubernetes accepts no other plugin beside its own; remove %v", c.plugins[1]["type"])
	case c.name() == "":
		return `OVN-Kubernetes requires a "name"; write one, the same in every NetworkAttachmentDefinition of this network`
	case c.main.NetAttachDefName != object:
		return fmt.Sprintf("netAttachDefName is %q, but OVN-Kubernetes requires the object's own namespace and name; write %q", c.main.NetAttachDefName, object)
	case c.main.Role != "" && c.main.Role != "secondary":
		return fmt.Sprintf("role is %q, but a localnet is always secondary; remove role", c.main.Role)
	}
	return unfitVLAN(ovnVLAN, c.main.VLANID)
}

// CopyForOVN derives a localnet on the same physical network and VLAN that honours the `ips` of a pod's annotation.
func (c Config) CopyForOVN(network, namespace, name string) Config {
	main := without(c.plugins[0], notCopied()...)
	main["netAttachDefName"] = namespace + "/" + name
	main["physicalNetworkName"] = c.physicalNetwork()
	out := Config{main: c.main, network: maps.Clone(c.network), plugins: []map[string]any{main}}
	out.network["name"] = network
	return out
}

// NetworkOnOVN names an Infra's network in OVN-Kubernetes, which has one switch per name. It turns - and / into dots; this name has
// neither, so no other network's can become the same.
func NetworkOnOVN(namespace, infra string) string {
	h := sha256.Sum256([]byte(namespace + "/" + infra))
	return fmt.Sprintf("oooi.%x", h[:8])
}

// PortSecured says whether OVN-Kubernetes limits a pod of the network to its own addresses.
func (c Config) PortSecured() bool { return c.IsOVN() && c.plugins[0]["macSecurityMode"] != "Disabled" }
