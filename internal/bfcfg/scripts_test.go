package bfcfg

import (
	"os"
	"strings"
	"testing"
)

// hostAgent plays DPF's agent on the host: it writes down what it is told, and says that the phase is DPU Config.
const hostAgent = `case "$*" in
*/get-object*) echo '{"status": {"phase": "DPU Config"}}' ;;
*--data-binary*) jq -c 'del(.agentStatus.conditions[]?.lastTransitionTime, .agentStatus.lastStartupTime)' | sed "s|^|${@: -1} |" >>$(dirname "$0")/../told ;;
esac`

// told is what the host's agent heard.
func (b *box) told() string {
	text, _ := os.ReadFile(b.root + "/told")
	return string(text)
}

func contains(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%s\nhas no %s", text, part)
		}
	}
}

func lacks(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if strings.Contains(text, part) {
			t.Errorf("%s\nhas %s", text, part)
		}
	}
}

func TestTheTargetGetsTheIdentityOfTheLiveSystem(t *testing.T) {
	from := source(t)
	from.ZeroTrust, from.Registry = true, "http://192.0.2.10:30080"
	b := newBox(t, install(t, from).live, "zero-trust")
	b.mustRun("add-identity.sh", b.root+"/var/target.ign")
	b.mustRun("add-identity.sh", b.root+"/var/target.ign") // again, when the installation is started again
	text, err := os.ReadFile(b.root + "/var/target.ign")
	if err != nil {
		t.Fatal(err)
	}
	target := parse(t, []byte(strings.ReplaceAll(string(text), b.root, "")))
	for at, want := range map[string]string{
		"/etc/hostname": dpu1.DPUHostName + "\n", "/etc/dpf/environment": file(t, install(t, from).live, "/etc/dpf/environment"),
		"/var/lib/dpf/dpuagent/bootstrap-kubeconfig": dpu1.BootstrapKubeconfig,
	} {
		if got := file(t, target, at); got != want {
			t.Errorf("%s is %q, not %q", at, got, want)
		}
	}
	if mode := *target.Storage.Files[fileAt(&target, "/var/lib/dpf/dpuagent/bootstrap-kubeconfig")].Mode; mode != 0o600 {
		t.Errorf("the kubeconfig has mode %o", mode)
	}
}

// installer is a live system with a disk, a ConnectX, and a firmware that has 16 VFs.
func installer(t *testing.T, mode string) *box {
	b := newBox(t, install(t, source(t)).live, mode)
	b.write("/usr/local/bin/install-rhcos-dpf.sh", strings.Replace(string(read(t, b.root+"/usr/local/bin/install-rhcos-dpf.sh")), "[ -b ", "[ -e ", 1))
	b.write("/dev/nvme0n1", "")
	b.command("curl", hostAgent)
	b.command("lspci", `echo "0000:03:00.0 Ethernet controller: Mellanox Technologies MT43244 BlueField-3 integrated ConnectX-7"`)
	b.command("mstconfig", `case "$*" in *"q NUM_OF_VFS") echo "*  NUM_OF_VFS  0  ${VFS:-16}  46";; *"q SRIOV_EN") echo "   SRIOV_EN  False(0)  True(1)  True(1)";; *PF_NUM*) echo "   PF_NUM_OF_VF_VALID  False(0)  False(0)  False(0)";; esac`)
	b.command("efibootmgr", `[ $# -gt 0 ] || printf 'BootOrder: 0001\nBoot0001* Red-Hat CoreOS GRUB\tHD(2)\nBoot00A2* NET-OOB-IPV4\n'`)
	b.command("sleep", `[ "$1" != 60 ] || [ ! -e $(dirname "$0")/../told ] || kill $PPID`) // the power cycle
	return b
}

func TestTheLiveSystemInstallsTheTarget(t *testing.T) {
	b := installer(t, "trusted")
	_, calls, _ := b.run("install-rhcos-dpf.sh") // until the power cycle
	contains(t, calls,
		"mstconfig -d 0000:03:00.0 -y set SRIOV_EN=1 PF_NUM_OF_VF_VALID=0 NUM_OF_VFS=46\n",
		"coreos-installer install /dev/nvme0n1 --offline --ignition-file /var/target.ign --append-karg console=hvc0 --append-karg console=ttyAMA0 --append-karg earlycon=pl011,0x13010000 --append-karg ignore_loglevel --append-karg hugepagesz=2048kB --append-karg hugepages=8072 --append-karg iommu.passthrough=1\n",
		"efibootmgr --bootnum 0001 --delete-bootnum\n", `--part 2 --loader \EFI\redhat\shimaa64.efi --label Red-Hat CoreOS GRUB`)
	lacks(t, calls, "00A2", "systemctl reboot", " reset")
	contains(t, b.told(), `"type":"RebootMethodDiscovery"`, `"rebootMethod":"PowerCycle"`, `"dpuUID":"`+dpu1.DPUUID+`"`)
	lacks(t, b.told(), "InstallError")
}

func TestAHostIsNotPowerCycledForNothing(t *testing.T) {
	b := installer(t, "trusted")
	b.env = append(b.env, "VFS=46")
	calls := b.mustRun("install-rhcos-dpf.sh")
	contains(t, calls, "coreos-installer", "systemctl reboot")
	lacks(t, calls, "mstconfig -d 0000:03:00.0 -y")
	lacks(t, b.told(), "PowerCycle")
}

func TestAnInstallationThatFailsIsTold(t *testing.T) {
	b := installer(t, "trusted")
	b.command("coreos-installer", "exit 1")
	if _, calls, err := b.run("install-rhcos-dpf.sh"); err == nil || strings.Contains(calls, "reboot") {
		t.Errorf("it went on: %s", calls)
	}
	contains(t, b.told(), `"type":"InstallError","status":"True","reason":"RHCOSInstallation"`)
}

func TestAnErrorIsToldToAHostThatIsNotUpYet(t *testing.T) {
	b := installer(t, "trusted")
	if err := os.Remove(b.root + "/dev/nvme0n1"); err != nil {
		t.Fatal(err)
	}
	b.command("curl", `echo x >>"$0.calls"; [ "$(wc -l <"$0.calls")" -gt 2 ] || exit 7
`+hostAgent)
	if _, calls, err := b.run("install-rhcos-dpf.sh"); err == nil || strings.Contains(calls, "coreos-installer") {
		t.Errorf("it went on: %s", calls)
	}
	contains(t, b.told(), `"type":"InstallError","status":"True","reason":"Hardware"`)
}

func TestAHostThatIsNotTrustedIsToldNothing(t *testing.T) {
	b := installer(t, "zero-trust")
	calls := b.mustRun("install-rhcos-dpf.sh")
	contains(t, calls, "coreos-installer", "systemctl reboot")
	lacks(t, calls, "curl")
}

// firmware is an installed system whose layer has firmware.
func firmware(t *testing.T) *box {
	b := newBox(t, install(t, source(t)).target, "trusted")
	b.command("curl", hostAgent)
	b.command("rpm", "echo ${DOCA:-2.9.1}")
	b.command("lspci", `echo "0000:03:00.0 0200: 15b3:a2dc (rev 01)"`)
	for name, function := range map[string]string{"atf-uefi": "update_atf_uefi", "nic-fw": "update_nic_firmware", "bmc": "bmc_components_update"} {
		b.write("/opt/mellanox/bfb/"+name, function+"() { flash "+name+"; }\n")
	}
	b.command("flash", `[ "$1" != "$BROKEN" ]`)
	return b
}

func flashed(calls string) (parts string) {
	for line := range strings.Lines(calls) {
		if part, found := strings.CutPrefix(line, "flash "); found {
			parts += strings.TrimSpace(part) + " "
		}
	}
	return strings.TrimSpace(parts)
}

func TestBug227FirmwareIsFlashedOnceForAVersion(t *testing.T) {
	b := firmware(t)
	for _, boot := range []struct{ doca, broken, flashes string }{
		{"2.9.1", "bmc", "atf-uefi nic-fw bmc"},
		{"2.9.1", "", "bmc"}, // what failed is tried again, alone
		{"2.9.1", "", ""},
		{"3.0.0", "", "atf-uefi nic-fw bmc"},
		{"3.0.0", "", ""},
	} {
		b.env = append(b.env, "DOCA="+boot.doca, "BROKEN="+boot.broken)
		if got := flashed(b.mustRun("dpu-fw-upgrade.sh")); got != boot.flashes {
			t.Errorf("with DOCA %s and a broken %q it flashes %q, not %q", boot.doca, boot.broken, got, boot.flashes)
		}
	}
	contains(t, b.told(), `"type":"BMCFirmwareUpgraded","status":"False","reason":"Failed"`, `"type":"BMCFirmwareUpgraded","status":"True","reason":"Upgraded"`, `"type":"NICFirmwareUpgraded","status":"True"`)
}

func TestFirmwareThatFailsIsTold(t *testing.T) {
	b := firmware(t)
	b.env = append(b.env, "BROKEN=nic-fw")
	if out, _, err := b.run("dpu-fw-upgrade.sh"); err == nil {
		t.Errorf("it succeeded: %s", out)
	}
	contains(t, b.told(), `"type":"InstallError","status":"True","reason":"FirmwareUpgradeFailed"`)
}

// Whoever complains comes after what takes an earlier boot's complaint back.
func TestAComplaintIsOfThisBoot(t *testing.T) {
	target := install(t, source(t)).target
	b := newBox(t, target, "trusted")
	b.command("curl", hostAgent)
	b.mustRun("tmfifo-agent-link.sh")
	contains(t, b.told(), `"type":"InstallError","status":"False","reason":"Started"`)
	var units []string
	for _, f := range target.Storage.Files {
		name, is := strings.CutSuffix(strings.TrimPrefix(f.Path, "/usr/local/bin/"), ".sh")
		if text := file(t, target, f.Path); is && name != "dpf-common" && (strings.Contains(text, "complain ") || strings.Contains(text, "fail ")) {
			units = append(units, name+".service")
		}
	}
	if len(units) != 3 {
		t.Errorf("%v complain, not three", units)
	}
	for _, unit := range units {
		mustHave(t, target, unit, "After", "tmfifo-agent-link.service")
	}
}

func TestADPUWaitsForTheVFsOfItsHost(t *testing.T) {
	b := newBox(t, install(t, source(t)).target, "trusted")
	b.command("curl", hostAgent)
	b.command("devlink", `[ $(grep -c "^devlink" $(dirname "$0")/../calls) -lt 5 ] || echo "pci/0000:03:00.0/196608: type eth netdev pf0vf0 flavour pcivf"`)
	b.command("ip", `[ $(grep -c "^ip" $(dirname "$0")/../calls) -lt 3 ] || echo "9: br-comm-ch    inet 192.0.2.53/24 brd 192.0.2.255 scope global noprefixroute br-comm-ch"`)
	calls := b.mustRun("setup-vfs-devlink.sh")
	if asked, rebound := strings.Count(b.told(), "/configure-host-vfs"), strings.Count(b.told(), "/rebind-host-driver"); asked != 5 || rebound != 1 {
		t.Errorf("asked %d times, bound anew %d times: %s", asked, rebound, calls)
	}
	if looked := strings.Count(calls, "ip -4 -o address show dev br-comm-ch scope global\n"); looked != 3 {
		t.Errorf("looked for an address %d times: %s", looked, calls)
	}
}

func TestAZeroTrustDPUWaitsForAnAddressOnly(t *testing.T) {
	b := newBox(t, install(t, source(t)).target, "zero-trust")
	b.command("ip", `echo "3: oob_net0    inet 198.51.100.52/24 brd 198.51.100.255 scope global dynamic noprefixroute oob_net0"`)
	calls := b.mustRun("setup-vfs-devlink.sh")
	contains(t, calls, "ip -4 -o address show dev oob_net0 scope global\n")
	lacks(t, calls, "curl", "devlink")
	lacks(t, b.mustRun("tmfifo-agent-link.sh"), "curl")
}

func TestKubeletWaitsForTheFunctionsOfTheFlavor(t *testing.T) {
	b := newBox(t, install(t, source(t)).target, "trusted")
	b.command("mlnx-sf", `case $(grep -c "^mlnx-sf" $(dirname "$0")/../calls) in 1) exit 1;; 2) echo '[{}]';; *) jq -nc '[range(40)]';; esac`)
	if calls := b.mustRun("wait-for-sfs.sh"); strings.Count(calls, "mlnx-sf") != 3 {
		t.Errorf("it waited until %s", calls)
	}
	b.write("/etc/dpf/dpuflavor.yaml", "spec: {}\n")
	lacks(t, b.mustRun("wait-for-sfs.sh"), "mlnx-sf")
}

func TestLinksThatGoDownAreToldUntilDPFHeard(t *testing.T) {
	b := newBox(t, install(t, source(t)).target, "trusted")
	b.write("/sys/class/net/p0/operstate", "up\n")
	b.write("/sys/class/net/p1/operstate", "down\n")
	b.command("devlink", `echo '{"port": {"a": {"flavour": "physical", "netdev": "p1"}, "b": {"flavour": "physical", "netdev": "p0"}, "c": {"flavour": "pcivf", "netdev": "pf0vf0"}}}'`)
	b.command("sleep", `[ $(grep -c ^sleep $(dirname "$0")/../calls) -lt 4 ]`)
	b.command("curl", `[ $(grep -c ^curl $(dirname "$0")/../calls) -gt 1 ] || exit 22; `+hostAgent)
	calls := b.mustRun("pf-monitor.sh")
	contains(t, b.told(), `"type":"PF0LinkDown","status":"False","reason":"PF0LinkUp","message":"p0 is up"`, `"type":"PF1LinkDown","status":"True","reason":"PF1LinkDown","message":"p1 is down"`)
	if said := strings.Count(calls, "curl"); said != 3 {
		t.Errorf("DPF was told %d times", said)
	}
}

func TestTheBootedImageIsTold(t *testing.T) {
	b := newBox(t, install(t, source(t)).target, "trusted")
	b.command("curl", hostAgent)
	b.command("rpm-ostree", `echo '{"deployments": [{"booted": false}, {"booted": true, "container-image-reference": "ostree-unverified-registry:quay.io/example/rhcos:1"}]}'`)
	b.mustRun("report-machineosurl.sh")
	b.command("rpm-ostree", "exit 1")
	b.mustRun("report-machineosurl.sh")
	contains(t, b.told(), `"type":"MachineOSURL","status":"True","reason":"Reported","message":"quay.io/example/rhcos:1"`, `"type":"MachineOSURL","status":"False","reason":"LookupFailed"`)
}

func TestFunctionsGoToSwitchdevWithSoftwareSteering(t *testing.T) {
	b := newBox(t, install(t, source(t)).live, "trusted")
	b.command("lspci", `echo "0000:03:00.0 Ethernet controller: Mellanox ConnectX-7"`)
	b.command("devlink", `state=$(dirname "$0")/../mode; case "$*" in
*"eswitch show"*) echo "pci/0000:03:00.0: mode $(cat $state || echo switchdev) inline-mode none";;
*"param show"*) printf 'pci/0000:03:00.0:\n  name flow_steering_mode type driver-specific\n values:\n  cmode runtime value dmfs\n';;
*"eswitch set"*) echo ${@: -1} >$state;; esac`)
	contains(t, b.mustRun("dpf-switchdev.sh"), "devlink dev eswitch set pci/0000:03:00.0 mode legacy\n", "devlink dev param set pci/0000:03:00.0 name flow_steering_mode value smfs cmode runtime\n", "devlink dev eswitch set pci/0000:03:00.0 mode switchdev\n")
}
