package ovnkube

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Sandbox is what the environment tells a CNI plugin about the pod's namespace.
type Sandbox struct{ ID, Netns, Interface string }

// host is the node's end of the pod's veth.
func (s Sandbox) host() string { return s.ID[:10] + "_" + s.Interface }

// Plug makes the pod's interface, its port, and the switch if it is missing. It returns once the port's flows are installed, as
// OVN-Kubernetes' CNI does (cni/helper_linux.go, cni/ovs.go).
func Plug(s Sandbox, p Port) error {
	if err := s.interfaceFor(p); err != nil {
		return err
	}
	if err := p.onSwitch(); err != nil {
		return err
	}
	return commands(
		"ovs-vsctl --may-exist add-port br-int "+s.host()+" other_config:transient=true -- set interface "+s.host()+
			" external_ids:iface-id="+p.Name+" external_ids:iface-id-ver="+string(p.Pod.UID)+" external_ids:sandbox="+s.ID+
			" external_ids:attached_mac="+quoted(p.MAC.String()),
		"ovs-vsctl --timeout=20 wait-until interface "+s.host()+" external_ids:ovn-installed=true",
	)
}

// interfaceFor makes the veth. It turns checksum offload off: Open vSwitch's userspace datapath forwards packets as they are, so a checksum
// that the kernel left for later would never be computed.
func (s Sandbox) interfaceFor(p Port) error {
	mtu, pod := strconv.Itoa(p.MTU), filepath.Base(s.Netns)
	all := []string{
		"ip link add " + s.host() + " mtu " + mtu + " type veth peer name " + s.Interface + " mtu " + mtu + " address " + p.MAC.String() + " netns " + pod,
		"ethtool -K " + s.host() + " tx off",
		"nsenter --net=" + s.Netns + " ethtool -K " + s.Interface + " tx off",
		"ip link set " + s.host() + " up",
		"ip -n " + pod + " link set " + s.Interface + " up",
	}
	for _, a := range p.Addresses {
		all = append(all, "ip -n "+pod+" addr add "+a.String()+" dev "+s.Interface)
	}
	return commands(all...)
}

// onSwitch does the controller's part. OVN's database does not require switch names to be unique, so two pods must not make the switch at
// once. The port is written as OVN-Kubernetes' libovsdb does: ovn-nbctl's lsp-set-addresses refuses addresses of a pod that is still
// ending.
func (p Port) onSwitch() error {
	lock, err := os.Create(filepath.Join(os.Getenv("OVN_RUNDIR"), "switches.lock")) //nolint:gosec // the lab's own directory
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return err
	}
	localnet := "ovn-nbctl --may-exist ls-add " + p.Switch() + " -- --may-exist lsp-add " + p.Switch() + " " + p.Localnet() +
		" -- lsp-set-type " + p.Localnet() + " localnet -- lsp-set-addresses " + p.Localnet() + " unknown" +
		" -- lsp-set-options " + p.Localnet() + " network_name=" + p.PhysicalNetwork
	if p.VLAN != 0 {
		localnet += " -- set logical_switch_port " + p.Localnet() + " tag_request=" + strconv.Itoa(p.VLAN)
	}
	if err := commands(localnet); err != nil {
		return err
	}
	return run("ovn-nbctl", "--may-exist", "lsp-add", p.Switch(), p.Name,
		"--", "set", "logical_switch_port", p.Name, "addresses="+quoted(p.Security()), "port_security="+quoted(p.Security()),
		"--", "lsp-set-options", p.Name, "requested-chassis="+p.Pod.Spec.NodeName, "iface-id-ver="+string(p.Pod.UID))
}

// Unplug removes what Plug made. A sandbox may be removed after the pod got another, whose port then stays.
func Unplug(s Sandbox, port string) error {
	if err := commands("ovs-vsctl --if-exists del-port br-int " + s.host()); err != nil {
		return err
	}
	if _, err := os.Stat("/sys/class/net/" + s.host()); err == nil {
		if err := commands("ip link del " + s.host()); err != nil {
			return err
		}
	}
	others, err := exec.Command("ovs-vsctl", "--bare", "--columns=name", "find", "interface", "external_ids:iface-id="+port).Output() //nolint:gosec // no shell reads it
	if err != nil || strings.TrimSpace(string(others)) != "" {
		return err
	}
	return commands("ovn-nbctl --if-exists lsp-del " + port)
}

// quoted is a value with colons, as ovs-vsctl requires it.
func quoted(value string) string { return strconv.Quote(value) }

func commands(lines ...string) error {
	for _, line := range lines {
		words := strings.Fields(line)
		if err := run(words[0], words[1:]...); err != nil {
			return err
		}
	}
	return nil
}

func run(name string, args ...string) error {
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil { //nolint:gosec // running commands is what it does
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}
