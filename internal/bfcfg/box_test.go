package bfcfg

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/coreos/ignition/v2/config/v3_4/types"
)

// box is a directory in which the scripts of an ignition run as on the DPU: it has their files, and commands that write down that they
// were called. The scripts are changed in nothing but their paths.
type box struct {
	t    *testing.T
	root string
	env  []string
}

var rooted = regexp.MustCompile(`(^|[\s"'=(<>{])(/(?:usr/local|etc|var|opt|sys|dev/nvme0n1|dev/fwctl)\b)`)

// commands of the DPU that scripts may call; each does nothing but to succeed, until a test has another text for it.
var commands = []string{"coreos-installer", "curl", "devlink", "dnf", "efibootmgr", "ip", "ipmitool", "lspci", "mlnx-sf", "mokutil", "mstconfig", "mstflint", "restorecon", "rpm", "rpm-ostree", "sleep", "sync", "systemctl"}

func newBox(t *testing.T, config types.Config, mode string) *box {
	t.Helper()
	b := &box{t: t, root: t.TempDir()}
	for _, f := range config.Storage.Files {
		b.write(f.Path, rooted.ReplaceAllString(file(t, config, f.Path), "${1}"+b.root+"${2}"))
	}
	for _, name := range commands {
		b.command(name, "")
	}
	b.env = []string{"PATH=" + b.root + "/commands:" + os.Getenv("PATH"), "DPUName=" + dpu1.DPUName, "DPUNamespace=" + dpu1.DPUNamespace, "DPUUID=" + dpu1.DPUUID, "DPUMode=" + mode}
	return b
}

func (b *box) write(at, text string) {
	b.t.Helper()
	if err := os.MkdirAll(filepath.Dir(b.root+at), 0o700); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(b.root+at, []byte(text), 0o700); err != nil {
		b.t.Fatal(err)
	}
}

// command makes a command that writes its name and arguments down, and then runs a text.
func (b *box) command(name, text string) {
	b.t.Helper()
	b.write("/commands/"+name, "#!/bin/bash\necho \""+name+" $*\" >>"+b.root+"/calls\n"+text+"\n")
}

// run executes a script, and tells what it printed and what it called.
func (b *box) run(name string, arguments ...string) (out, calls string, err error) {
	b.t.Helper()
	if err := os.RemoveAll(b.root + "/calls"); err != nil {
		b.t.Fatal(err)
	}
	script := exec.Command("bash", append([]string{b.root + "/usr/local/bin/" + name}, arguments...)...)
	script.Env = b.env
	printed, err := script.CombinedOutput()
	called, _ := os.ReadFile(b.root + "/calls")
	return string(printed), strings.ReplaceAll(string(called), b.root, ""), err
}

// mustRun is run, of a script that must succeed.
func (b *box) mustRun(name string, arguments ...string) (calls string) {
	b.t.Helper()
	out, calls, err := b.run(name, arguments...)
	if err != nil {
		b.t.Fatalf("%s: %v\n%s\n%s", name, err, out, calls)
	}
	return calls
}
