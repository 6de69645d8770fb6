package nad

import (
	"maps"
	"net/netip"
	"slices"
	"strings"
)

// Carrier is the part of a configuration that a derived network depends on: equal for two texts that mean the same, however they are
// written. Of OVN-Kubernetes' keys it has those that choose a localnet port (go-controller/pkg/types, NetConf): its controllers may render
// the rest differently after an upgrade. Of other plugins' keys it has all that a derived network copies.
func (c Config) Carrier() any {
	if c.IsOVN() {
		return map[string]any{
			"type": c.main.Type, "topology": c.main.Topology, "physicalNetworkName": c.physicalNetwork(), "vlanID": c.main.VLANID, "mtu": c.main.MTU,
		}
	}
	return c.said(replaced...)
}

// Attachment is the part that an attached pod depends on: Carrier's, and the addresses that the network assigns.
func (c Config) Attachment() any {
	if c.IsOVN() {
		return []any{c.Carrier(), c.main.Subnets}
	}
	return c.said()
}

// replaced are the keys of a main plugin that a derived network sets itself, or omits.
var replaced = append([]string{"ipam", "capabilities"}, notForPods...)

// said are the plugins without empty values, and without some keys of the main one.
func (c Config) said(but ...string) []map[string]any {
	var all []map[string]any
	for i, p := range c.plugins {
		if i == 0 {
			p = without(p, but...)
		}
		p = maps.Clone(p)
		maps.DeleteFunc(p, func(_ string, value any) bool {
			object, is := value.(map[string]any)
			return value == nil || is && len(object) == 0
		})
		all = append(all, p)
	}
	return all
}

// Static is what a derived network sets for its one pod.
type Static struct {
	// Name of the network.
	Name string
	// Addresses of the interface, with their prefix lengths.
	Addresses []netip.Prefix
	// Gateway of the VLAN; used only with Routes or Anywhere.
	Gateway netip.Addr
	// Routes lead to networks of off-link clients.
	Routes []netip.Prefix
	// Anywhere: clients may be in any network, so answers are routed by their source address (plugin sbr). The on-link route moves to that
	// table too, so the pod must bind the source of connections that it opens itself.
	Anywhere bool
	// PreventForwarding chains the tuning plugin.
	PreventForwarding bool
}

// notForPods are keys of a workers' network that a pod with an address must not have (containernetworking/plugins v1.9.1,
// plugins/main/bridge/bridge.go).
var notForPods = []string{
	"isGateway", "isDefaultGateway", "forceAddress", "ipMasq", "ipMasqBackend", // the node would route for the VLAN
	"disableContainerInterface", // with an IPAM it fails CNI ADD
	"portIsolation",             // isolated ports of one node, which include its workers', cannot reach each other
}

// WithStatic derives a network on the same layer 2 that assigns exactly these addresses and does not make the node a gateway. The pod may
// choose its MAC address, which is then the one that macspoofchk allows.
func (c Config) WithStatic(s Static) Config {
	main := without(c.plugins[0], notForPods...)
	main["ipam"] = s.ipam()
	main["capabilities"] = map[string]any{"mac": true}

	out := Config{main: c.main, network: maps.Clone(c.network), plugins: []map[string]any{main}}
	out.network["name"] = s.Name
	out.network["cniVersion"] = chainable(c.network["cniVersion"])
	for _, p := range c.plugins[1:] {
		if p["type"] != "sbr" {
			out.plugins = append(out.plugins, p)
		}
	}
	if s.PreventForwarding {
		out.plugins = append(out.plugins, map[string]any{"type": "tuning", "sysctl": map[string]any{forwardingKey: "0"}})
	}
	if s.Anywhere {
		out.plugins = append(out.plugins, map[string]any{"type": "sbr"})
	}
	return out
}

func (s Static) ipam() map[string]any {
	var addresses []staticAddress
	for _, a := range s.Addresses {
		address := staticAddress{Address: a.String()}
		if s.Anywhere && s.Gateway.IsValid() {
			address.Gateway = s.Gateway.String() // without a gateway, sbr gives the address an empty table
		}
		addresses = append(addresses, address)
	}
	ipam := map[string]any{"type": "static", "addresses": addresses}
	if s.Anywhere || len(s.Routes) == 0 {
		return ipam
	}
	var routes []map[string]string
	for _, dst := range s.Routes {
		routes = append(routes, map[string]string{"dst": dst.String(), "gw": s.Gateway.String()})
	}
	ipam["routes"] = routes
	return ipam
}

// chainable is this version, or the first one that passes results along a chain.
func chainable(version any) string {
	v, _ := version.(string)
	if v == "" || strings.HasPrefix(v, "0.1.") || strings.HasPrefix(v, "0.2.") || v == "0.3.0" {
		return "0.3.1"
	}
	return v
}

// WithoutAddresses is the same network, assigning its pods no addresses.
func (c Config) WithoutAddresses() Config {
	out := c
	out.plugins = slices.Clone(c.plugins)
	out.plugins[0] = without(c.plugins[0], "ipam", "subnets", "excludeSubnets", "reservedSubnets", "infrastructureSubnets")
	return out
}

// WithMTU is the same network with another MTU.
func (c Config) WithMTU(bytes int32) Config {
	out := c
	out.plugins = slices.Clone(c.plugins)
	out.plugins[0] = maps.Clone(c.plugins[0])
	out.plugins[0]["mtu"], out.main.MTU = bytes, bytes
	return out
}

func without(plugin map[string]any, keys ...string) map[string]any {
	left := maps.Clone(plugin)
	for _, k := range keys {
		delete(left, k)
	}
	return left
}
