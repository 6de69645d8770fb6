// Package ovnkube stands in for OVN-Kubernetes on localnet networks, for both its CNI plugin and its controller: it gives a pod a port in a
// real OVN, set up as OVN-Kubernetes does, and refuses what OVN-Kubernetes refuses. It has no IPAM. Source: ovn-kubernetes 8871cd9
// (2026-08-21), paths below go-controller/pkg/.
package ovnkube

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Conf is the plugin's configuration, as far as localnet needs it (cni/types).
type Conf struct {
	CNIVersion          string `json:"cniVersion"`
	Name                string `json:"name"`
	Topology            string `json:"topology"`
	NetAttachDefName    string `json:"netAttachDefName"`
	PhysicalNetworkName string `json:"physicalNetworkName"`
	VLANID              int    `json:"vlanID"`
	MTU                 int    `json:"mtu"`
	Subnets             string `json:"subnets"`
	IPAM                struct {
		Type string `json:"type"`
	} `json:"ipam"`
}

// podNetworkMTU is the MTU that OVN-Kubernetes uses if a network has none: the pod network's (config.Default.MTU).
const podNetworkMTU = 1400

// Port is a pod's port on its network's logical switch.
type Port struct {
	Network, NAD    string
	PhysicalNetwork string
	VLAN, MTU       int
	// Name of the logical port, which is also the interface's iface-id.
	Name      string
	MAC       net.HardwareAddr
	Addresses []netip.Prefix
	Pod       *corev1.Pod
}

// asked is an element of a pod's network annotation.
type asked struct {
	Name, Namespace, MAC string
	IPs                  []string
}

// PortOf is the port that the pod's annotation requests, or why OVN-Kubernetes makes none. written is spec.config of the
// NetworkAttachmentDefinition that conf names.
func PortOf(conf Conf, written string, pod *corev1.Pod) (Port, error) {
	if err := conf.refused(written); err != nil {
		return Port{}, err
	}
	want, err := selection(conf.NetAttachDefName, pod)
	if err != nil {
		return Port{}, err
	}
	p := Port{
		Network: conf.Name, NAD: conf.NetAttachDefName, PhysicalNetwork: cmp.Or(conf.PhysicalNetworkName, conf.Name),
		VLAN: conf.VLANID, MTU: cmp.Or(conf.MTU, podNetworkMTU), Name: PortName(conf.NetAttachDefName, pod.Namespace, pod.Name), Pod: pod,
	}
	if conf.Subnets != "" && len(want.IPs) > 0 { // allocator/pod/pod_annotation.go
		return Port{}, errors.New("cannot allocate a static IP request with IPAM: only supported on primary networks")
	}
	for _, text := range want.IPs {
		address, err := netip.ParsePrefix(text)
		if err != nil {
			return Port{}, err
		}
		p.Addresses = append(p.Addresses, address)
	}
	p.MAC, err = macOf(want.MAC, p.Addresses)
	return p, err
}

// refused does what ValidateNetConf (util/multi_network.go) and ParseNetConf (config/cni.go) do.
func (c Conf) refused(written string) error {
	var list struct{ Plugins []json.RawMessage }
	if err := json.Unmarshal([]byte(written), &list); err != nil {
		return err
	}
	switch {
	case len(list.Plugins) > 1:
		return errors.New("CNI plugin chaining is not supported")
	case c.Topology != "localnet":
		return fmt.Errorf("the stand-in has no topology %q", c.Topology)
	case c.NetAttachDefName == "":
		return fmt.Errorf("missing NADName in network %s", c.Name)
	case c.IPAM.Type != "":
		return errors.New("IPAM key is not supported: use subnets")
	}
	return nil
}

// selection is what the pod requests of the network. OVN-Kubernetes compares it with the name in the configuration, so with a configuration
// copied from elsewhere the pod gets no port (util/multi_network.go, GetPodNADToNetworkMapping).
func selection(nad string, pod *corev1.Pod) (asked, error) {
	var all []asked
	if err := json.Unmarshal([]byte(pod.Annotations["k8s.v1.cni.cncf.io/networks"]), &all); err != nil {
		return asked{}, fmt.Errorf("the pod's networks: %w", err)
	}
	for _, one := range all {
		if cmp.Or(one.Namespace, pod.Namespace)+"/"+one.Name == nad {
			return one, nil
		}
	}
	return asked{}, fmt.Errorf("the pod asks for no network %s, which netAttachDefName names", nad)
}

// macOf is the requested address, or else one made from the first IP, or else any (allocator/pod/pod_annotation.go, util.IPAddrToHWAddr).
func macOf(wish string, addresses []netip.Prefix) (net.HardwareAddr, error) {
	if wish != "" {
		return net.ParseMAC(wish)
	}
	mac := net.HardwareAddr{0x0a, 0x58, 0, 0, 0, 0}
	if len(addresses) > 0 && addresses[0].Addr().Is4() {
		copy(mac[2:], addresses[0].Addr().AsSlice())
	} else {
		rand.Read(mac[2:])
	}
	return mac, nil
}

// PortName does what util's GetUserDefinedNetworkLogicalPortName does.
func PortName(nad, namespace, pod string) string { return prefix(nad) + namespace + "_" + pod }

// prefix does what GetUserDefinedNetworkPrefix (util/multi_network.go) does: network names that differ only in - / . share it.
func prefix(network string) string {
	return strings.NewReplacer("-", ".", "/", ".").Replace(network) + "_"
}

// Switch of the network, one for all nodes (types/const.go).
func (p Port) Switch() string { return prefix(p.Network) + "ovn_localnet_switch" }

// Localnet is the switch's port to the physical network (ovn/localnet_user_defined_network_controller.go).
func (p Port) Localnet() string { return prefix(p.Network) + "ovn_localnet_port" }

// Security is both the port's addresses and its port_security (ovn/base_network_controller_pods.go).
func (p Port) Security() string {
	all := p.MAC.String()
	for _, a := range p.Addresses {
		all += " " + a.Addr().String()
	}
	return all
}
