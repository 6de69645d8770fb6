package nad

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Unfit says why a pod of ours cannot join through this network, given its namespace and name; empty when it can.
func (c Config) Unfit(namespace, name string) string {
	switch {
	case c.main.Type == macvlan:
		return c.unfitMacvlan()
	case c.main.Type == bridge || c.main.Type == cnvBridge:
		return unfitVLAN(bridgeVLAN, c.main.VLAN)
	case c.IsOVN():
		return c.unfitOVN(namespace + "/" + name)
	}
	return fmt.Sprintf("pods cannot join a VLAN through plugin %q; use bridge, cnv-bridge, macvlan or OVN-Kubernetes localnet", c.main.Type)
}

// unfitMacvlan: the modes are the kernel's (drivers/net/macvlan.c); passthru takes the whole master.
func (c Config) unfitMacvlan() string {
	switch {
	case c.main.Mode == "passthru":
		return `"mode": "passthru" gives the master to one pod of a node, and workers and our pods need it too; write "mode": "bridge"`
	case c.main.LinkInContainer:
		return fmt.Sprintf(`"linkInContainer": true looks for the master %q in the pod, but it is on the node; write false`, c.main.Master)
	}
	return ""
}

// KeepsApart is the mode that keeps pods of one node from reaching each other on the network, though pods of two nodes do; empty if there
// is none. With vepa they do reach each other if the switch reflects frames (drivers/net/macvlan.c).
func (c Config) KeepsApart() string {
	if c.main.Type == macvlan && (c.main.Mode == "private" || c.main.Mode == "vepa") {
		return c.main.Mode
	}
	return ""
}

// unfitVLAN: the bounds are the plugin's (containernetworking/plugins, plugins/main/bridge/bridge.go) and those of 802.1Q.
func unfitVLAN(key string, id int) string {
	if id < 0 || id > 4094 {
		return fmt.Sprintf("%q: %d is not a VLAN; use 1 to 4094, or 0 for untagged traffic", key, id)
	}
	return ""
}

// The keys for the VLAN's number: OVN-Kubernetes', and the bridge plugin's.
const (
	ovnVLAN    = "vlanID"
	bridgeVLAN = "vlan"
)

// MisnamedVLAN finds a VLAN under another plugin's key, and returns the right key and the network with it; ok is false if there is none. A
// plugin ignores unknown keys (config/cni.go of OVN-Kubernetes, bridge.go: json.Unmarshal), so frames stay untagged.
func (c Config) MisnamedVLAN() (wrote, write string, tagged Config, ok bool) {
	if c.main.VLAN != 0 && !c.IsOVN() || c.main.VLANID != 0 && c.IsOVN() {
		return "", "", c, false
	}
	var key, other string
	switch {
	case c.IsOVN():
		other, key = bridgeVLAN, ovnVLAN
	case c.main.Type == bridge || c.main.Type == cnvBridge:
		other, key = ovnVLAN, bridgeVLAN
	}
	for wrote, value := range c.plugins[0] {
		id, err := strconv.Atoi(fmt.Sprint(value))
		if !strings.EqualFold(wrote, other) || err != nil || id == 0 || unfitVLAN(wrote, id) != "" {
			continue
		}
		tagged = c
		tagged.plugins = slices.Clone(c.plugins)
		tagged.plugins[0] = without(c.plugins[0], wrote)
		tagged.plugins[0][key] = id
		return wrote, fmt.Sprintf("%q: %d", key, id), tagged, true
	}
	return "", "", c, false
}

// Tagged is the network with its VLAN under the plugin's own key.
func (c Config) Tagged() Config {
	_, _, tagged, _ := c.MisnamedVLAN()
	return tagged
}
