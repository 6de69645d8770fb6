//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// recorders stand in for programs that need a BlueField, its host, or an hour: each notes how it was called, and answers as on a card with
// nothing configured. All other programs of the live part are real.
var recorders = map[string]string{
	"coreos-installer": "", "efibootmgr": "", "systemctl": "", "sleep": "", "modprobe": "", "udevadm": "",
	"mokutil":   "echo SecureBoot disabled",
	"lspci":     "echo '0000:03:00.0 Ethernet controller: Mellanox Technologies MT43244 BlueField-3 integrated ConnectX-7 network controller'",
	"mstconfig": `case "$*" in *" q "*) echo "        ${@: -1}        False(0)        False(0)" ;; esac`,
	"curl": `case "$*" in
*/get-object*) echo '{"status": {"phase": "DPU Config"}}' ;;
*/trigger-reboot*) kill -9 -1 ;; # the host's power is cut
*@-*) cat > /dev/null ;;
esac`,
}

// installed runs the live part of a DPU's installation: the real Ignition writes its files, and then its unit's program runs in a root of
// those files and this machine's programs. It returns what was called that a virtual machine has not, and the target that the installer got.
func installed(t *testing.T, ctx context.Context, live []byte) (calls []string, target string) {
	t.Helper()
	root := t.TempDir()
	config := filepath.Join(root, "config.ign")
	must(t, os.WriteFile(config, live, 0o600))
	for name, answer := range recorders {
		path := filepath.Join(root, "recorders", name)
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must(t, os.WriteFile(path, []byte("#!/bin/bash\necho \"${0##*/} $*\" >> /calls\n"+answer+"\n"), 0o755))
	}
	out, err := exec.CommandContext(ctx, "unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "bash", "-euxo", "pipefail", "-c", liveRoot, "live", root, os.Getenv("LAB_BIN")).CombinedOutput()
	t.Logf("the live part says:\n%s", out)
	must(t, err)
	return strings.Split(strings.TrimSpace(string(content(t, filepath.Join(root, "calls")))), "\n"), filepath.Join(root, "var/target.ign")
}

// liveRoot makes the root $1, with the lab's programs in $2, and runs the unit's program there.
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
program=$(sed -n 's/^ExecStart=//p' etc/systemd/system/install-rhcos-dpf.service)
set -a; . etc/dpf/environment
PATH=/recorders:/usr/bin:/usr/sbin chroot . "$program" || [ $? = 137 ]
`

// hasRun looks for a call that has these words.
func hasRun(calls []string, words string) error {
	for _, call := range calls {
		if strings.Contains(call, words) {
			return nil
		}
	}
	return fmt.Errorf("no call has %q in\n%s", words, strings.Join(calls, "\n"))
}
