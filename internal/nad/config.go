package nad

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/ipam"
)

// Kinds of CNI plugins that a pod can join a VLAN through.
const (
	bridge    = "bridge"
	cnvBridge = "cnv-bridge" // bridge under the name that OpenShift Virtualization installs it by
	macvlan   = "macvlan"
	ovn       = "ovn-k8s-cni-overlay"
)

// Config is a CNI configuration: what we understand of its main plugin, and all of it as it was written, so that a
// derived one keeps what we do not know.
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

// Parse reads spec.config: one plugin or a list of them.
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
		return Config{}, errors.New("spec.config names no plugin: type is missing")
	case len(c.main.IPAM) > 0 && c.main.IPAM[0] != '{' && string(c.main.IPAM) != "null":
		return Config{}, errors.New("spec.config: ipam is no object; leave it out")
	}
	return c, nil
}

// object is the text's one JSON object, its numbers as they are written. What follows it a plugin would not pass over.
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
		return nil, fmt.Errorf("spec.config goes on after its JSON object, with %.20q; remove that", rest)
	}
	return network, nil
}

// understood tells of a key of another type, which the plugins, written in Go as well, do not take either.
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
			return errors.New("spec.config: plugins must be a list of objects")
		}
		c.plugins = append(c.plugins, plugin)
	}
	if len(c.plugins) == 0 {
		return errors.New("spec.config: plugins is empty")
	}
	return nil
}

// String is the configuration as JSON, always a list but for OVN-Kubernetes, which takes none.
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

// Type is the main plugin.
func (c Config) Type() string { return c.main.Type }

// MTU of the network in bytes; 0 where it is not said.
func (c Config) MTU() int32 { return c.main.MTU }

// UsualMTU is Ethernet's, in bytes: the kernel gives it to a veth pair that is made without one.
const UsualMTU = 1500

// Carries is the longest frame that the network takes, in bytes; 0 where that cannot be told from here: macvlan has it
// from its master, OVN-Kubernetes from the pod network.
func (c Config) Carries() int32 {
	if c.main.MTU == 0 && (c.main.Type == bridge || c.main.Type == cnvBridge) {
		return UsualMTU
	}
	return c.main.MTU
}

// IsOVN says whether OVN-Kubernetes makes the interface: it assigns addresses itself and takes no chain of plugins.
func (c Config) IsOVN() bool { return c.main.Type == ovn }

// Unfit says why a pod of ours cannot join through this network, which has a namespace and a name; empty when it can.
func (c Config) Unfit(namespace, name string) string {
	switch {
	case c.main.Type == macvlan:
		return c.unfitMacvlan()
	case c.main.Type == bridge || c.main.Type == cnvBridge:
		return unfitVLAN(bridgeVLAN, c.main.VLAN)
	case c.IsOVN():
		return c.unfitOVN(namespace + "/" + name)
	}
	return fmt.Sprintf("our pods join no VLAN through plugin %q; they do through bridge, cnv-bridge, macvlan and OVN-Kubernetes localnet", c.main.Type)
}

// unfitMacvlan: the modes are those of the kernel (drivers/net/macvlan.c): passthru takes the master whole.
func (c Config) unfitMacvlan() string {
	switch {
	case c.main.Mode == "passthru":
		return `"mode": "passthru" lets one pod of a node have the master, and workers and our pods are several; write "mode": "bridge"`
	case c.main.LinkInContainer:
		return fmt.Sprintf(`"linkInContainer": true looks for the master %q in the pod, where it is not; write false`, c.main.Master)
	}
	return ""
}

// KeepsApart is the mode in which pods of one node do not hear each other on the network, though those of two nodes do; empty where they
// do. In vepa they do so only where the switch sends frames back whence they came (drivers/net/macvlan.c).
func (c Config) KeepsApart() string {
	if c.main.Type == macvlan && (c.main.Mode == "private" || c.main.Mode == "vepa") {
		return c.main.Mode
	}
	return ""
}

// unfitVLAN: the ends are those of the plugin (containernetworking/plugins, plugins/main/bridge/bridge.go) and of 802.1Q.
func unfitVLAN(key string, id int) string {
	if id < 0 || id > 4094 {
		return fmt.Sprintf("%q: %d is no VLAN; there are those from 1 to 4094, and 0 for none", key, id)
	}
	return ""
}

// Keys that have the VLAN's number: OVN-Kubernetes' own, and that of the bridge plugin.
const (
	ovnVLAN    = "vlanID"
	bridgeVLAN = "vlan"
)

// MisnamedVLAN is a VLAN under the key of another plugin, what to write for it, and the network with that; ok is false where there
// is none. What a plugin does not know it passes over (config/cni.go of OVN-Kubernetes, bridge.go: json.Unmarshal), and
// frames stay untagged.
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

// Layer2 names the segment that the network lies on; two networks with the same name share their Ethernet frames.
// Empty when that cannot be told.
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

// physicalNetwork is the localnet's bridge mapping: OVN-Kubernetes takes the network's name where none is set.
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

// AssignsAddresses says whether the network gives its pods addresses: with bridge binding KubeVirt would then answer
// the guest's DHCP itself, and OVN-Kubernetes would pin the port to that address.
func (c Config) AssignsAddresses() bool {
	if c.IsOVN() {
		return c.assignsOnOVN()
	}
	var ipam struct {
		Type string `json:"type"`
	}
	return json.Unmarshal(c.main.IPAM, &ipam) == nil && ipam.Type != ""
}

// Carrier is what of a configuration decides over a network that is derived from it: two texts that say the same have one,
// however they are written. Of OVN-Kubernetes' keys these are those that lead to a localnet port (go-controller/pkg/types,
// NetConf): its controllers render the rest anew as their versions go. Of other plugins' these are all but what a derived
// network does not take over.
func (c Config) Carrier() any {
	if c.IsOVN() {
		return map[string]any{
			"type": c.main.Type, "topology": c.main.Topology, "physicalNetworkName": c.physicalNetwork(), "vlanID": c.main.VLANID, "mtu": c.main.MTU,
		}
	}
	return c.said(replaced...)
}

// Attachment is what of a configuration decides over a pod that is attached by it, as Carrier has it, with the addresses that
// it gives.
func (c Config) Attachment() any {
	if c.IsOVN() {
		return []any{c.Carrier(), c.main.Subnets}
	}
	return c.said()
}

// replaced are the keys of a main plugin that a derived network has its own values of, or does without.
var replaced = append([]string{"ipam", "capabilities"}, notForPods...)

// said are the plugins without what says nothing, and without some keys of the main one.
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

type ipamPlugin struct {
	Range      string          `json:"range"`
	Start      string          `json:"range_start"`
	End        string          `json:"range_end"`
	Subnet     string          `json:"subnet"`
	RangeStart string          `json:"rangeStart"`
	RangeEnd   string          `json:"rangeEnd"`
	Ranges     [][]ipamPlugin  `json:"ranges"`
	Addresses  []staticAddress `json:"addresses"`
}

type staticAddress struct {
	Address string `json:"address"`
	Gateway string `json:"gateway,omitempty"`
}

// Addresses are those that the network's own IPAM may give to others: ranges of host-local and whereabouts, and static
// ones. A range as wide as a whole subnet is not among them: it says nothing about which addresses are in use.
func (c Config) Addresses() []ipam.Range {
	var p ipamPlugin
	if json.Unmarshal(c.main.IPAM, &p) != nil {
		return nil
	}
	all := p.ranges()
	for _, set := range p.Ranges {
		for _, one := range set {
			all = append(all, one.ranges()...)
		}
	}
	for _, a := range p.Addresses {
		if prefix, err := netip.ParsePrefix(a.Address); err == nil {
			all = append(all, ipam.Single(prefix.Addr()))
		}
	}
	return all
}

// BakesAddresses says whether the network's static IPAM names the pod's addresses itself. Multus then must not be asked for
// them again: where the network lacks the capability `ips` it hands them over as CNI_ARGS, static adds them a second time,
// and the CNI ADD ends with "file exists".
func (c Config) BakesAddresses() bool {
	var p ipamPlugin
	return json.Unmarshal(c.main.IPAM, &p) == nil && len(p.Addresses) > 0
}

// ranges reads one range in the words of host-local (subnet, rangeStart, rangeEnd) or of whereabouts (range, which may
// be first-last/bits, range_start, range_end).
func (p ipamPlugin) ranges() []ipam.Range {
	first, last := orElse(p.RangeStart, p.Start), orElse(p.RangeEnd, p.End)
	if from, to, ok := strings.Cut(p.Range, "-"); ok {
		to, _, _ = strings.Cut(to, "/")
		first, last = orElse(first, from), orElse(last, to)
	}
	if first == "" && last == "" {
		return nil
	}
	subnet, _ := netip.ParsePrefix(orElse(p.Subnet, p.Range))
	r := ipam.Usable(subnet)
	if a, err := netip.ParseAddr(first); err == nil {
		r.First = a
	}
	if a, err := netip.ParseAddr(last); err == nil {
		r.Last = a
	}
	if !r.IsValid() {
		return nil
	}
	return []ipam.Range{r}
}

// Static is what a derived network gives to its one pod.
type Static struct {
	// Name of the network.
	Name string
	// Addresses of the interface with their prefix lengths.
	Addresses []netip.Prefix
	// Gateway of the VLAN; used with Routes or Anywhere only.
	Gateway netip.Addr
	// Routes are networks of off-link clients.
	Routes []netip.Prefix
	// Anywhere: clients are everywhere, so answers are routed by their source address (plugin sbr). The on-link route
	// moves to that table too, so the pod must bind its source for what it starts itself.
	Anywhere bool
	// PreventForwarding chains the tuning plugin.
	PreventForwarding bool
}

// notForPods are what a workers' network says that a pod with an address must not have (containernetworking/plugins v1.9.1,
// plugins/main/bridge/bridge.go).
var notForPods = []string{
	"isGateway", "isDefaultGateway", "forceAddress", "ipMasq", "ipMasqBackend", // the node would route the VLAN
	"disableContainerInterface", // beside an IPAM it fails CNI ADD
	"portIsolation",             // isolated ports of a node, its workers', do not hear each other
}

// WithStatic derives a network on the same layer 2 that gives exactly these addresses, makes no gateway of the node,
// and lets the pod choose its hardware address, which is then the one that macspoofchk lets pass.
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
			address.Gateway = s.Gateway.String() // an address without one gets an empty table from sbr
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

// chainable is the version, or the first one that hands results down a chain.
func chainable(version any) string {
	v, _ := version.(string)
	if v == "" || strings.HasPrefix(v, "0.1.") || strings.HasPrefix(v, "0.2.") || v == "0.3.0" {
		return "0.3.1"
	}
	return v
}

// WithoutAddresses is the same network, which gives its pods none.
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

func orElse(value, otherwise string) string {
	if value == "" {
		return otherwise
	}
	return value
}
