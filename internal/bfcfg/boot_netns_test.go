//go:build netns

package bfcfg

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/coreos/ignition/v2/config/v3_4/types"
	"k8s.io/utils/ptr"
)

// disk is the root of a system that systemd itself boots, in namespaces of its own: it has the files and units of an ignition, this machine's
// /usr, and programs of testdata/boot in place of those that need a BlueField.
type disk struct {
	t     *testing.T
	root  string
	units []string
}

// newDisk writes what Ignition would (coreos/ignition v2.26.0, internal/exec/util/unit.go): what is enabled is a preset, for the first boot.
func newDisk(t *testing.T, config types.Config) *disk {
	t.Helper()
	d := &disk{t: t, root: t.TempDir()}
	for _, f := range config.Storage.Files {
		d.write(f.Path, file(t, config, f.Path), ptr.Deref(f.Mode, 0o644))
	}
	presets := "disable *\n"
	for _, u := range config.Systemd.Units {
		d.write("/etc/systemd/system/"+u.Name, ptr.Deref(u.Contents, ""), 0o644)
		presets, d.units = "enable "+u.Name+"\n"+presets, append(d.units, u.Name)
	}
	d.write("/etc/systemd/system-preset/20-ignition.preset", presets, 0o644)
	d.write("/etc/systemd/system.conf.d/test.conf", "[Manager]\nDefaultEnvironment=PATH=/programs:/usr/sbin:/usr/bin\nDefaultDeviceTimeoutSec=1\n", 0o644)
	d.write("/etc/passwd", "root:x:0:0::/root:/bin/bash\n", 0o644)
	d.write("/etc/group", "root:x:0:\n", 0o644)
	d.write("/etc/machine-id", "uninitialized\n", 0o444) // as on RHCOS: systemd goes by the presets then
	for _, unit := range []string{"systemd-logind", "systemd-firstboot", "systemd-sysusers", "systemd-tmpfiles-setup", "systemd-tmpfiles-setup-dev", "dbus", "getty@tty1"} {
		d.link("/etc/systemd/system/"+unit+".service", "/dev/null")
	}
	for name, text := range parts(t, "programs") {
		d.write("/programs/"+name, "#!/bin/bash\necho \"${0##*/}${*:+ $*}\" >>/calls\n"+text, 0o755)
	}
	d.link("/usr/bin/nm-online", "/programs/nm-online")
	for name, function := range map[string]string{"atf-uefi": "update_atf_uefi", "nic-fw": "update_nic_firmware", "bmc": "bmc_components_update"} {
		d.write("/opt/mellanox/bfb/"+name, function+"() { flash "+name+"; }\n", 0o644)
	}
	return d
}

func (d *disk) write(at, text string, mode int) {
	d.t.Helper()
	if err := os.MkdirAll(filepath.Dir(d.root+at), 0o755); err != nil {
		d.t.Fatal(err)
	}
	if err := os.WriteFile(d.root+at, []byte(text), os.FileMode(mode)); err != nil {
		d.t.Fatal(err)
	}
}

func (d *disk) link(at, to string) {
	d.t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(d.root+at), 0o755), os.Symlink(to, d.root+at)); err != nil {
		d.t.Fatal(err)
	}
}

// parts of a file of testdata/boot, by their headings.
func parts(t *testing.T, name string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for i, part := range strings.Split(string(read(t, "testdata/boot/"+name+".txt")), "\n## ") {
		if heading, text, _ := strings.Cut(part, "\n"); i > 0 {
			all[heading] = text
		}
	}
	return all
}

// boots says what was called until the system ends.
func (d *disk) boots(ctx context.Context) (calls string) {
	d.t.Helper()
	if os.Geteuid() != 0 {
		d.t.Fatal("systemd is booted in namespaces: run these tests as root (make test does)")
	}
	_ = os.Remove(d.root + "/calls") // of an earlier boot
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	log, err := exec.CommandContext(ctx, "unshare", "--mount", "--pid", "--fork", "--kill-child", "bash", "-uc", ownGroup, "boot", d.root, bootRoot).CombinedOutput()
	journal, _ := exec.Command("journalctl", "--directory", d.root+"/var/log/journal", "--output", "short-monotonic", "--no-hostname", "--boot", "all").CombinedOutput()
	log = append(log, journal...)
	d.t.Logf("systemd says (%v):\n%s", err, log)
	if ctx.Err() != nil {
		d.t.Error("it did not end")
	}
	if wrong := complaint.FindString(string(log)); wrong != "" {
		d.t.Errorf("systemd complains: %s", wrong)
	}
	failed, _ := os.ReadFile(d.root + "/failed") // of this machine's own units, some do not work in namespaces
	for _, unit := range d.units {
		if strings.Contains(string(failed), unit+" ") {
			d.t.Errorf("%s failed", unit)
		}
	}
	calls = string(read(d.t, d.root+"/calls"))
	d.t.Logf("what it did:\n%s", calls)
	return calls
}

// complaint is what systemd says of units that are wrong.
var complaint = regexp.MustCompile(`.*(ordering cycle|/etc/systemd/system/\S+: |bad unit file).*`)

// ownGroup has a system of its own processes only in its control groups.
const ownGroup = `
mount -t cgroup2 cgroup2 /mnt
group=$(mktemp -d /mnt/oooi-boot-XXXXXX)
(
	echo $BASHPID >"$group/cgroup.procs"
	exec unshare --mount --net --pid --ipc --uts --cgroup --fork --kill-child bash -euc "$2" boot "$1"
)
find "$group" -depth -type d -exec rmdir {} +
`

// bootRoot boots the root $1.
const bootRoot = `
mount --bind "$1" "$1"
cd "$1"
mkdir -p usr dev proc tmp sys run var/log/journal root etc/alternatives
mount --bind /etc/alternatives etc/alternatives
[ -e lower ] || mv usr lower
mkdir -p usr
mount -t overlay usr -o lowerdir="$1/lower:/usr" usr
mount --bind lower/local usr/local
for link in bin sbin lib lib64; do ln -sfn usr/$link $link; done
mount -t proc proc proc
mount -t sysfs -o ro sys sys
mount -t tmpfs cgroup sys/fs/cgroup
mount -t cgroup2 cgroup2 sys/fs/cgroup
for directory in run tmp dev; do mount -t tmpfs $directory $directory; done
for device in null zero full random urandom tty; do touch dev/$device; mount --bind /dev/$device dev/$device; done
mkdir dev/pts dev/shm
mknod dev/nvme0n1 b 259 0
ip link add p0 type veth peer name p1
ip link add oob_net0 type bridge
ip address add 198.51.100.52/24 dev oob_net0
pivot_root . .
umount --lazy .
exec env -i container=oooi /lib/systemd/systemd --log-target=journal --log-level=info --show-status=no
`

// inOrder: each call begins one of the lines, after the one before it.
func inOrder(t *testing.T, calls string, order ...string) {
	t.Helper()
	last := -1
	for i, call := range order {
		at := strings.Index("\n"+calls, "\n"+call)
		if at < 0 {
			t.Errorf("%q was not called", call)
			return
		}
		if at < last {
			t.Errorf("%q comes before %q", call, order[i-1])
		}
		last = at
	}
}

// rhcos is an ignition of HyperShift's with the units on which a DPU's depend.
func rhcos(t *testing.T) Source {
	t.Helper()
	config := types.Config{Ignition: types.Ignition{Version: types.MaxVersion.String()}}
	for name, text := range parts(t, "rhcos") {
		config.Systemd.Units = append(config.Systemd.Units, types.Unit{Name: name, Enabled: ptr.To(true), Contents: ptr.To(text)})
	}
	putFile(&config, machineConfigPath, 0o644, packed([]byte(`{"spec":{"osImageURL":"quay.io/example/rhcos:1"}}`)))
	from := source(t)
	from.Ignition = marshalled(config)
	return from
}

// A DPU boots three times: the live system, RHCOS that this has installed, and the BlueField layer that RHCOS is rebased to.
func TestADPUBootsThreeTimesBySystemd(t *testing.T) {
	t.Parallel()
	live := newDisk(t, install(t, rhcos(t)).live)
	inOrder(t, live.boots(t.Context()), "devlink dev eswitch set pci/0000:03:00.0 mode switchdev", "sleep 60", "told RebootMethodDiscovery=True",
		"coreos-installer install /dev/nvme0n1 --offline --ignition-file /var/target.ign", "efibootmgr --create", "sleep 10")

	installed := newDisk(t, parse(t, read(t, live.root+"/var/target.ign")))
	first := installed.boots(t.Context())
	inOrder(t, first, "devlink dev eswitch set", "note NetworkManager", "nm-online -q --timeout=480", "note machine-config-daemon-pull", "machine-config-daemon ")
	inOrder(t, first, "told HostAgentConnected=True", "told InstallError=False", "devlink port show", "dnf download dpu-agent", "machine-config-daemon ")
	lacks(t, first, "note kubelet", "flash", "dpu-agent --dpu")

	second := installed.boots(t.Context())
	inOrder(t, second, "told HostAgentConnected=True", "flash atf-uefi", "flash nic-fw", "flash bmc", "note nodeip-configuration", "note kubelet")
	inOrder(t, second, "flash bmc", "dpu-agent --dpu-name "+dpu1.DPUName+" ", "functions made", "note kubelet")
	inOrder(t, second, "note openvswitch", "ovs-vsctl --may-exist add-br br-sfc")
	contains(t, second, "told PF0LinkDown=True p0 is down", "told PF1LinkDown=True p1 is down", "told MachineOSURL=True quay.io/example/rhcos-bluefield:4.22.7")
	lacks(t, second, "machine-config-daemon", "dnf", "configure-host-vfs", "eswitch set")
}

// A DPU that does not trust its host asks it nothing, and its way is oob_net0.
func TestAZeroTrustDPUBootsThreeTimesBySystemd(t *testing.T) {
	t.Parallel()
	from := rhcos(t)
	from.ZeroTrust, from.Registry = true, "http://192.0.2.10:30080"
	live := newDisk(t, install(t, from).live)
	calls := live.boots(t.Context())
	inOrder(t, calls, "devlink dev eswitch set", "coreos-installer", "sleep 10")

	installed := newDisk(t, parse(t, read(t, live.root+"/var/target.ign")))
	first := installed.boots(t.Context())
	inOrder(t, first, "note NetworkManager", "note machine-config-daemon-pull", "machine-config-daemon ")
	inOrder(t, first, "dnf download dpu-agent --disablerepo=* --repofrompath=agentrepo,http://192.0.2.10:30080/rpm/", "machine-config-daemon ")

	second := installed.boots(t.Context())
	inOrder(t, second, "flash bmc", "dpu-agent --dpu-name "+dpu1.DPUName+" ", "functions made", "note kubelet")
	contains(t, second, " --skip-ovs-raw-script --zero-trust-mode --bootstrap-kubeconfig=/var/lib/dpf/dpuagent/bootstrap-kubeconfig\n")
	lacks(t, calls+first+second, "curl", "told")
}
