package bfcfg

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/coreos/ignition/v2/config/v3_4/types"
	"k8s.io/utils/ptr"

	"github.com/cldmnky/oooi/internal/dpf"
)

func TestEachFileOfContentIsInTheTable(t *testing.T) {
	files := asInContent(t)
	for part, rows := range map[string][]row{"common": commonRows, "live": liveRows, "target": targetRows} {
		for _, r := range rows {
			name := part + r.path
			if r.is(zeroTrust) {
				name += ".zero-trust"
			}
			if _, there := files[name]; !there {
				t.Errorf("content has no %s", name)
			}
			delete(files, name)
			if r.is(unit) != (r.mode == 0) || r.is(unit) != strings.HasSuffix(r.path, ".service") {
				t.Errorf("%s: mode %o, kind %b", r.path, r.mode, r.kind)
			}
			if script := strings.HasPrefix(files[name], "#!"); script && r.mode != 0o755 {
				t.Errorf("%s cannot be executed", r.path)
			}
		}
	}
	for name := range files {
		t.Errorf("nobody gets %s", name)
	}
}

func TestScriptsHaveNoSyntaxErrors(t *testing.T) {
	scripts := 0
	for name, text := range asInContent(t) {
		if !strings.HasSuffix(name, ".sh") {
			continue
		}
		scripts++
		bash := exec.Command("bash", "-n")
		bash.Stdin = strings.NewReader(text)
		if out, err := bash.CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", name, err, out)
		}
	}
	if scripts < 10 {
		t.Fatalf("only %d scripts are found", scripts)
	}
}

// What units and scripts call has to be among the files of the same system.
func TestWhatIsCalledIsThere(t *testing.T) {
	zeroTrust := source(t)
	zeroTrust.ZeroTrust, zeroTrust.Registry = true, "http://192.0.2.10:30080"
	for _, from := range []Source{source(t), zeroTrust} {
		dpu := install(t, from)
		for _, config := range []types.Config{dpu.live, dpu.target} {
			var texts []string
			for _, f := range config.Storage.Files {
				texts = append(texts, file(t, config, f.Path))
			}
			for _, u := range config.Systemd.Units {
				texts = append(texts, ptr.Deref(u.Contents, ""))
			}
			for _, word := range strings.Fields(strings.Join(texts, "\n")) {
				_, name, found := strings.Cut(word, "/usr/local/bin/")
				if name = strings.TrimRight(name, `:;"'),.`); found && strings.HasSuffix(name, ".sh") && fileAt(&config, "/usr/local/bin/"+name) < 0 {
					t.Errorf("nothing writes /usr/local/bin/%s", name)
				}
			}
		}
	}
}

// Without a default route, NetworkManager is connecting as long as one connection asks for an address, and nm-online waits for it. Whom a DPU gets
// its address from is on one network; nobody answers on the others.
func TestADPUAsksForAnAddressOnItsWayToTheAPIOnly(t *testing.T) {
	const profiles = "/etc/NetworkManager/system-connections/"
	zeroTrust := source(t)
	zeroTrust.ZeroTrust, zeroTrust.Registry, zeroTrust.MTU = true, "http://192.0.2.10:30080", 9000
	for want, from := range map[string]Source{"br-comm-ch": source(t), "oob_net0": zeroTrust} {
		target := install(t, from).target
		var asks []string
		for _, f := range target.Storage.Files {
			name, is := strings.CutPrefix(f.Path, profiles)
			if !is {
				continue
			}
			text := file(t, target, f.Path)
			_, of, port := strings.Cut(text, "\nmaster=")
			of, _, _ = strings.Cut(of, "\n")
			switch {
			case port && fileAt(&target, profiles+of+".nmconnection") < 0:
				t.Errorf("%s is a port of %s, which there is not", name, of)
			case !port && !strings.Contains(text, "[ipv4]\nmethod=disabled"):
				asks = append(asks, strings.TrimSuffix(name, ".nmconnection"))
			}
		}
		if !slices.Equal(asks, []string{want}) {
			t.Errorf("%v ask for an address, want %s", asks, want)
		}
		for _, name := range []string{"br-comm-ch", "pf0vf0"} { // without a profile NetworkManager would make one that asks
			if fileAt(&target, profiles+name+".nmconnection") < 0 {
				t.Errorf("%s has no profile", name)
			}
		}
	}
}

// A file whose text comes from a ConfigMap is written by DPF's agent. Without the text, the target would have an empty one in place of the image's.
func TestWhatTheAgentWritesIsNotInTheTarget(t *testing.T) {
	applied := dpf.ConfigFile{Path: "/etc/chrony.conf", Type: dpf.AgentApplied}
	target := install(t, source(t).with(dpf.ConfigFile{Path: "/etc/motd", Raw: "hello\n", Type: "cloud-init"}, applied)).target
	if got := file(t, target, "/etc/motd"); got != "hello\n" {
		t.Errorf("/etc/motd is %q", got)
	}
	if i := fileAt(&target, applied.Path); i >= 0 {
		t.Errorf("there is %+v", target.Storage.Files[i])
	}
	applied.Path = "/etc/kubernetes/kubelet.conf"
	if _, err := Template(source(t).with(applied)); err == nil {
		t.Error("the agent would write what a DPU needs to reach its API")
	}
}

// settings are the words of a key in a unit, and in the drop-ins among the files.
func settings(t *testing.T, config types.Config, unit, key string) (words []string) {
	t.Helper()
	texts := []string{}
	for _, u := range config.Systemd.Units {
		if u.Name == unit {
			texts = append(texts, ptr.Deref(u.Contents, ""))
		}
	}
	for _, f := range config.Storage.Files {
		if strings.HasPrefix(f.Path, "/etc/systemd/system/"+unit+".d/") {
			texts = append(texts, file(t, config, f.Path))
		}
	}
	for line := range strings.Lines(strings.Join(texts, "\n")) {
		if value, found := strings.CutPrefix(strings.TrimSpace(line), key+"="); found {
			words = append(words, strings.Fields(value)...)
		}
	}
	return words
}

// mustHave says that a unit has words under a key.
func mustHave(t *testing.T, config types.Config, unit, key string, words ...string) {
	t.Helper()
	got := settings(t, config, unit, key)
	for _, word := range words {
		if !slices.Contains(got, word) {
			t.Errorf("%s: %s=%v, without %s", unit, key, got, word)
		}
	}
}
