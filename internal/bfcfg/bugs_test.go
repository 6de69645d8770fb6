package bfcfg

import (
	"strings"
	"testing"
)

// Bugs of rh-ecosystem-edge/dpf-hcp-provisioner-operator that concern what a DPU gets, by the numbers of its issues.

func TestBugs245And267TheMTUReachesTheWayToTheAPI(t *testing.T) {
	from := source(t)
	from.MTU = 9000
	target := install(t, from).target
	for _, name := range []string{"pf0vf0", "p0", "p1", "pf0hpf", "pf1hpf"} {
		at := "/etc/NetworkManager/system-connections/" + name + ".nmconnection"
		_, ethernet, _ := strings.Cut(file(t, target, at), "[ethernet]\n")
		if !strings.HasPrefix(ethernet, "mtu=9000\n") {
			t.Errorf("%s has no MTU of 9000", name)
		}
	}
}

func TestBug247OpenVSwitchRunsBeforeItIsConfigured(t *testing.T) {
	target := install(t, source(t)).target
	mustHave(t, target, "dpf-ovs.service", "Requires", "openvswitch.service")
	mustHave(t, target, "dpf-ovs.service", "After", "openvswitch.service")
}

func TestBug143TheAgentStartsAfterTheFirmwareIsUpgraded(t *testing.T) {
	target := install(t, source(t)).target
	mustHave(t, target, "dpu-agent.service", "After", "dpu-fw-upgrade.service", "install-dpu-agent.service")
	mustHave(t, target, "dpu-agent.service", "Wants", "dpu-fw-upgrade.service")
	mustHave(t, target, "dpu-agent.service", "Before", "kubelet-dependencies.target", "nodeip-configuration.service", "ovs-configuration.service")
}

// The first boot ends with a reboot to the layer, which has to find the agent.
func TestTheAgentIsInstalledBeforeTheFirstBootEnds(t *testing.T) {
	target := install(t, source(t)).target
	for _, key := range []string{"Requires", "After"} {
		mustHave(t, target, "machine-config-daemon-firstboot.service", key, "install-dpu-agent.service")
		mustHave(t, target, "machine-config-daemon-pull.service", key, "setup-vfs-devlink.service")
		mustHave(t, target, "install-dpu-agent.service", key, "tmfifo-agent-link.service")
	}
	mustHave(t, target, "dpu-sf-gate.service", "Before", "kubelet-dependencies.target")
	mustHave(t, target, "devlink-activate.service", "Before", "network-pre.target")
}

// The public operator decodes HyperShift's files as queries of URLs, which turns each + into a space.
func TestFilesOfHyperShiftStayAsTheyAre(t *testing.T) {
	from := source(t)
	hypershift, err := from.hypershift()
	if err != nil {
		t.Fatal(err)
	}
	target := install(t, from).target
	for _, f := range hypershift.Storage.Files {
		if want := file(t, hypershift, f.Path); f.Path != machineConfigPath && file(t, target, f.Path) != want {
			t.Errorf("%s is %q, not %q", f.Path, file(t, target, f.Path), want)
		}
	}
	if text := file(t, target, "/etc/kubernetes/kubeconfig"); !strings.Contains(text, "a+b") {
		t.Errorf("the testdata has no +: %s", text)
	}
	if text := file(t, target, machineConfigPath); !strings.Contains(text, `"osImageURL":"quay.io/example/rhcos-bluefield:4.22.7"`) || !strings.Contains(text, `"kernelType":"default"`) {
		t.Errorf("the MachineConfig is %s", text)
	}
}
