//go:build e2e

package e2e

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	ignition "github.com/coreos/ignition/v2/config/v3_4"
	"github.com/coreos/ignition/v2/config/v3_4/types"
	"k8s.io/utils/ptr"

	"github.com/cldmnky/oooi/test/lab/scene"
)

// Where Ignition writes units, and which of them are enabled (coreos/ignition v2.26.0, internal/exec/util/unit.go).
const (
	unitDirectory = "/etc/systemd/system/"
	preset        = "/etc/systemd/system-preset/20-ignition.preset"
)

// hasItsTarget: all that a machine's ignition says is in the machine: each file, link and unit, with its mode and its content, and of each unit
// whether it is enabled.
func hasItsTarget(t *testing.T, ctx context.Context, m scene.Machine) {
	t.Helper()
	target, report, err := ignition.Parse(content(t, m.UserData))
	if err != nil {
		t.Fatalf("%v: %s", err, report.String())
	}
	want, got := writtenOf(t, target), map[string]string{}
	for paths := range slices.Chunk(slices.Sorted(maps.Keys(want)), 20) {
		out, err := lab.On(ctx, m, "for at in "+strings.Join(paths, " ")+`; do [ -L $at ] && echo "$at link to $(readlink $at)" || echo "$at $(stat -c %a $at) $(sha256sum < $at)"; done`)
		must(t, err)
		for line := range strings.Lines(out) {
			at, is, _ := strings.Cut(strings.TrimSpace(line), " ")
			got[at] = is
		}
	}
	for at, is := range want {
		if got[at] != is {
			t.Errorf("%s: %s is %q, and its target says %q", m.Name, at, got[at], is)
		}
	}
	t.Logf("%s: looked at %d files, %d links and %d units of its target", m.Name, len(target.Storage.Files), len(target.Storage.Links), len(target.Systemd.Units))
}

// writtenOf is what Ignition makes of a config, by path: a link's target, or a mode and a digest.
func writtenOf(t *testing.T, config types.Config) map[string]string {
	t.Helper()
	made := map[string]string{}
	file := func(at string, mode *int, text []byte) {
		made[at] = fmt.Sprintf("%o %x  -", ptr.Deref(mode, 0o644), sha256.Sum256(text))
	}
	for _, f := range config.Storage.Files {
		var text []byte
		for _, part := range append([]types.Resource{f.Contents}, f.Append...) {
			if part.Source != nil {
				text = append(text, contentOf(t, part)...)
			}
		}
		file(f.Path, f.Mode, text)
	}
	for _, l := range config.Storage.Links {
		made[l.Path] = "link to " + *l.Target
	}
	presets := ""
	for _, u := range slices.SortedFunc(slices.Values(config.Systemd.Units), func(a, b types.Unit) int { return strings.Compare(a.Name, b.Name) }) {
		if u.Contents != nil {
			file(unitDirectory+u.Name, nil, []byte(*u.Contents))
		}
		for _, d := range u.Dropins {
			file(unitDirectory+u.Name+".d/"+d.Name, nil, []byte(*d.Contents))
		}
		if u.Enabled != nil {
			presets += map[bool]string{true: "enable ", false: "disable "}[*u.Enabled] + u.Name + "\n"
		}
	}
	file(preset, nil, []byte(presets))
	return made
}
