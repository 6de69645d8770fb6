package nad

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cldmnky/oooi/internal/finding"
)

// The CNI plugins through which a pod can join a VLAN.
const (
	bridge    = "bridge"
	cnvBridge = "cnv-bridge" // the bridge plugin, as OpenShift Virtualization installs it
	macvlan   = "macvlan"
	ovn       = "ovn-k8s-cni-overlay"
)

// Config is a CNI configuration: what we understand of its main plugin, and all of it as written, so that a derived network keeps what we
// do not know.
type Config struct {
	main    mainPlugin
	network map[string]any   // name, cniVersion and the like
	plugins []map[string]any // the chain; the main plugin first
}

type mainPlugin struct {
	Type   string          `json:"type"`
	IPAM   json.RawMessage `json:"ipam"`
	MTU    int32           `json:"mtu"`
	Bridge string          `json:"bridge"`
	VLAN   int             `json:"vlan"`
	Master string          `json:"master"`
	Mode   string          `json:"mode"`

	LinkInContainer bool `json:"linkInContainer"`

	Topology            string `json:"topology"`
	Subnets             string `json:"subnets"`
	VLANID              int    `json:"vlanID"`
	PhysicalNetworkName string `json:"physicalNetworkName"`
	NetAttachDefName    string `json:"netAttachDefName"`
	Role                string `json:"role"`
}

// Parse reads spec.config: one plugin, or a list of them.
func Parse(text string) (Config, error) {
	network, err := object(text)
	if err != nil {
		return Config{}, err
	}
	c := Config{network: network}
	if err := c.takePlugins(); err != nil {
		return Config{}, err
	}
	main, err := json.Marshal(c.plugins[0])
	if err != nil {
		return Config{}, err
	}
	if err := understood(json.Unmarshal(main, &c.main)); err != nil {
		return Config{}, err
	}
	switch {
	case c.main.Type == "":
		return Config{}, errors.New("spec.config has no plugin: write its type, e.g. \"type\": \"bridge\"")
	case len(c.main.IPAM) > 0 && c.main.IPAM[0] != '{' && string(c.main.IPAM) != "null":
		return Config{}, errors.New("spec.config: ipam is not an object; remove it")
	}
	return c, nil
}

// object parses a text that is one JSON object, and keeps its numbers as written. Trailing text is an error, as it is to a plugin.
func object(text string) (map[string]any, error) {
	if strings.TrimSpace(text) == "" {
		return nil, errors.New("spec.config is empty; write the network's CNI configuration there, as a JSON object")
	}
	var network map[string]any
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	if err := dec.Decode(&network); err != nil {
		return nil, fmt.Errorf("spec.config is not a JSON object: %w", err)
	}
	if rest := strings.TrimSpace(text[dec.InputOffset():]); rest != "" {
		return nil, fmt.Errorf("spec.config has text after its JSON object: %.20q; remove it", rest)
	}
	return network, nil
}

// understood reports a key of the wrong type, which the plugins, also written in Go, do not accept either.
func understood(err error) error {
	var mistyped *json.UnmarshalTypeError
	if errors.As(err, &mistyped) {
		return finding.Mistyped("spec.config: "+mistyped.Field, mistyped.Value, mistyped.Type)
	}
	return err
}

func (c *Config) takePlugins() error {
	maps.DeleteFunc(c.network, func(_ string, value any) bool { return value == nil }) // libcni refuses "cniVersion": null
	listed, isList := c.network["plugins"]
	if !isList {
		c.plugins = []map[string]any{maps.Clone(c.network)}
		c.network = maps.Clone(c.network)
		maps.DeleteFunc(c.network, func(key string, _ any) bool { return key != "cniVersion" && key != "name" })
		delete(c.plugins[0], "cniVersion")
		delete(c.plugins[0], "name")
		return nil
	}
	delete(c.network, "plugins")
	all, _ := listed.([]any)
	for _, one := range all {
		plugin, ok := one.(map[string]any)
		if !ok {
			return errors.New("spec.config: plugins is not a list of objects; write each plugin as an object")
		}
		c.plugins = append(c.plugins, plugin)
	}
	if len(c.plugins) == 0 {
		return errors.New("spec.config: plugins is empty; write the network's plugin there")
	}
	return nil
}

// String is the configuration as JSON: always a list, except for OVN-Kubernetes, which accepts none.
func (c Config) String() string {
	whole := maps.Clone(c.network)
	if c.IsOVN() && len(c.plugins) == 1 {
		maps.Copy(whole, c.plugins[0])
	} else {
		whole["plugins"] = c.plugins
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(whole); err != nil {
		panic(err) // it was parsed from JSON
	}
	return strings.TrimSpace(out.String())
}

// Type is the main plugin's.
func (c Config) Type() string { return c.main.Type }

// MTU of the network in bytes; 0 if it sets none.
func (c Config) MTU() int32 { return c.main.MTU }

// UsualMTU is Ethernet's, in bytes: what the kernel gives a veth pair that is created without one.
const UsualMTU = 1500

// Carries is the network's MTU, the bridge plugin's default included; 0 where it is set elsewhere: macvlan takes its master's,
// OVN-Kubernetes the pod network's.
func (c Config) Carries() int32 {
	if c.main.MTU == 0 && (c.main.Type == bridge || c.main.Type == cnvBridge) {
		return UsualMTU
	}
	return c.main.MTU
}

// IsOVN says whether OVN-Kubernetes makes the interface: it assigns addresses itself, and accepts no chain of plugins.
func (c Config) IsOVN() bool { return c.main.Type == ovn }

// Layer2 names the segment that the network is on; networks with the same name share their Ethernet frames. Empty when that cannot be told.
func (c Config) Layer2() string {
	switch {
	case c.main.Type == bridge || c.main.Type == cnvBridge:
		return fmt.Sprintf("bridge/%s/%d", orElse(c.main.Bridge, "cni0"), c.main.VLAN)
	case c.main.Type == macvlan && c.main.Master != "":
		return "macvlan/" + c.main.Master
	case c.IsOVN() && c.main.Topology == "localnet":
		return fmt.Sprintf("localnet/%s/%d", c.physicalNetwork(), c.main.VLANID)
	}
	return ""
}

// physicalNetwork is the localnet's bridge mapping: OVN-Kubernetes uses the network's name if none is set.
func (c Config) physicalNetwork() string {
	return orElse(c.main.PhysicalNetworkName, c.name())
}

// name of the network.
func (c Config) name() string {
	name, _ := c.network["name"].(string)
	return name
}

// PreventsForwarding says whether a plugin of the chain turns forwarding off on the interface.
func (c Config) PreventsForwarding() bool {
	return slices.ContainsFunc(c.plugins, func(p map[string]any) bool {
		sysctl, _ := p["sysctl"].(map[string]any)
		return p["type"] == "tuning" && sysctl[forwardingKey] == "0"
	})
}
