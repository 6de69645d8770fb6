//go:build e2e

package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	ignition "github.com/coreos/ignition/v2/config/v3_4"
)

// recorders stand in for programs that need a BlueField, its host, or an hour: each notes how it was called, and answers as on a card with
// nothing configured. All other programs of the live part are real.
var recorders = map[string]string{
	"coreos-installer": "", "efibootmgr": "", "systemctl": "", "sleep": "", "modprobe": "", "udevadm": "",
	"mokutil": "echo SecureBoot disabled",
	"devlink": `case "$*" in
*"eswitch show"*) echo "pci/0000:03:00.0: mode $(cat /mode 2> /dev/null || echo legacy) inline-mode none encap-mode basic" ;;
*"eswitch set"*) echo "${@: -1}" > /mode ;;
*"param show"*) printf 'pci/0000:03:00.0:\n  name flow_steering_mode type driver-specific\n    values:\n      cmode runtime value dmfs\n' ;;
esac`,
	"lspci":     "echo '0000:03:00.0 Ethernet controller: Mellanox Technologies MT43244 BlueField-3 integrated ConnectX-7 network controller'",
	"mstconfig": `case "$*" in *" q "*) echo "        ${@: -1}        False(0)        False(0)" ;; esac`,
	"curl": `case "$*" in
*/get-object*) echo '{"status": {"phase": "DPU Config"}}' ;;
*/trigger-reboot*) kill -9 -1 ;; # the host's power is cut
*@-*) cat > /dev/null ;;
esac`,
}

// installed runs the live part of a DPU's installation: the real Ignition writes its files, and then its units' programs run, one after the
// other, in a root of those files and this machine's programs. What they have done that needs a BlueField must be what testdata/live keeps for the
// mode. It returns the target that the installer got.
func installed(t *testing.T, ctx context.Context, live []byte, mode string) (target string) {
	t.Helper()
	root := t.TempDir()
	config := filepath.Join(root, "config.ign")
	must(t, os.WriteFile(config, live, 0o600))
	for name, answer := range recorders {
		path := filepath.Join(root, "recorders", name)
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must(t, os.WriteFile(path, []byte("#!/bin/bash\necho \"${0##*/}${*:+ $*}\" >> /calls\n"+answer+"\n"), 0o755))
	}
	script := []string{"--mount", "--net", "--pid", "--fork", "--kill-child", "bash", "-euxo", "pipefail", "-c", liveRoot, "live", root, os.Getenv("LAB_BIN")}
	out, err := exec.CommandContext(ctx, "unshare", append(script, enabledIn(t, live)...)...).CombinedOutput()
	t.Logf("the live part says:\n%s", out)
	must(t, err)
	name := strings.TrimSpace(string(fileOf(t, live, "/etc/hostname")))
	recorded, kept := string(content(t, filepath.Join(root, "calls"))), strings.ReplaceAll(string(content(t, filepath.Join("testdata/live", mode))), "$DPUName", name)
	t.Logf("what the live part did that needs a BlueField:\n%s", recorded)
	if recorded != kept {
		t.Errorf("testdata/live/%s keeps another list of it:\n%s", mode, kept)
	}
	return filepath.Join(root, "var/target.ign")
}

// enabledIn are the units that an ignition enables.
func enabledIn(t *testing.T, config []byte) (units []string) {
	t.Helper()
	parsed, report, err := ignition.Parse(config)
	if err != nil {
		t.Fatalf("%v: %s", err, report.String())
	}
	for _, unit := range parsed.Systemd.Units {
		if unit.Enabled != nil && *unit.Enabled {
			units = append(units, unit.Name)
		}
	}
	return units
}

// liveRoot makes the root $1, with the lab's programs in $2, and runs the programs of the units after them there. A write to rshim, through which
// the host hears of the DPU, is seen in its files: the last line of its log is kept.
const liveRoot = `
root=$1
mount -t tmpfs run /run
IGNITION_CONFIG_FILE=$root/config.ign "$2/ignition" --platform=file --stage=fetch --root="$root" --log-to-stdout > "$root/ignition.log"
IGNITION_CONFIG_FILE=$root/config.ign "$2/ignition" --platform=file --stage=files --root="$root" --log-to-stdout >> "$root/ignition.log"
cd "$root"
mkdir -p usr dev proc tmp sys etc/alternatives
mount --bind /etc/alternatives etc/alternatives
mv usr/local local
mount --bind /usr usr
mount --bind local usr/local
for link in bin lib lib64; do ln -sfn usr/$link $link; done
mount -t tmpfs dev dev
mknod dev/nvme0n1 b 259 0
for device in null zero urandom; do touch dev/$device; mount --bind /dev/$device dev/$device; done
mount -t proc proc proc
rshim=sys/devices/platform/MLNXBF04:00
mkdir -p $rshim
touch $rshim/rsh_log $rshim/os_up
for unit in "${@:3}"; do
	echo "[$unit]" >> calls
	(
		set -a
		for file in $(sed -n 's/^EnvironmentFile=//p' "etc/systemd/system/$unit"); do . ".$file"; done
		PATH=/recorders:/usr/bin:/usr/sbin exec chroot . $(sed -n 's/^ExecStart=//p' "etc/systemd/system/$unit")
	) || [ $? = 137 ]
done
echo "[rshim]" >> calls
(cd $rshim; grep . * /dev/null) >> calls
`
