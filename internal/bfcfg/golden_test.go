package bfcfg

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coreos/ignition/v2/config/v3_4/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/cldmnky/oooi/internal/dpf"
	"github.com/cldmnky/oooi/internal/testkit/golden"
)

// Each directory of testdata has settings, and what a DPU gets with them.
func TestSettingsBecomeTheFilesOfADPU(t *testing.T) {
	golden.Cases(t, "testdata", []string{"in.yaml"}, func(t *testing.T, dir string) map[string]string {
		var in struct {
			MTU         int
			ZeroTrust   bool
			Registry    string
			ConfigFiles []dpf.ConfigFile
		}
		if err := yaml.UnmarshalStrict(read(t, filepath.Join(dir, "in.yaml")), &in); err != nil {
			t.Fatal(err)
		}
		from := source(t)
		if in.ConfigFiles != nil {
			from = from.with(in.ConfigFiles...)
		}
		from.MTU, from.ZeroTrust, from.Registry = in.MTU, in.ZeroTrust, in.Registry
		dpu := install(t, from)
		return map[string]string{"live.txt": listing(t, dpu.live), "target.txt": listing(t, dpu.target)}
	})
}

// listing is an ignition for readers: a line for each file and unit, and below it the text, unless that is as it is in content.
func listing(t *testing.T, config types.Config) string {
	t.Helper()
	var out strings.Builder
	fmt.Fprintf(&out, "ignition %s\n%s", config.Ignition.Version, golden.YAML(t, map[string]any{"passwd": config.Passwd}))
	static := asInContent(t)
	for _, f := range config.Storage.Files {
		where, mode := "", "----"
		if f.Mode != nil {
			mode = fmt.Sprintf("%04o", *f.Mode)
		}
		if ptr.Deref(f.Overwrite, false) {
			where = " replaces"
		}
		fmt.Fprintf(&out, "file %s%s %s", mode, where, f.Path)
		if f.Path == "/var/target.ign" {
			out.WriteString(" (target.txt)\n")
			continue
		}
		tell(&out, static, f.Path, file(t, config, f.Path))
	}
	for _, u := range config.Systemd.Units {
		fmt.Fprintf(&out, "unit enabled=%v dropins=%d %s", ptr.Deref(u.Enabled, false), len(u.Dropins), u.Name)
		tell(&out, static, "/etc/systemd/system/"+u.Name, ptr.Deref(u.Contents, ""))
	}
	return out.String()
}

func tell(out *strings.Builder, static map[string]string, at, text string) {
	for _, name := range []string{"common" + at, "live" + at, "target" + at, "common" + at + ".zero-trust", "live" + at + ".zero-trust", "target" + at + ".zero-trust"} {
		if static[name] == text && text != "" {
			fmt.Fprintf(out, " = %s\n", name)
			return
		}
	}
	out.WriteString("\n")
	for line := range strings.Lines(text) {
		out.WriteString("    | " + strings.TrimSuffix(line, "\n") + "\n")
	}
}

// asInContent is every file of content.
func asInContent(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := fs.WalkDir(content, "content", func(at string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := content.ReadFile(at)
		all[strings.TrimPrefix(at, "content/")] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
