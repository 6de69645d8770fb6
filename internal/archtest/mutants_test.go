package archtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const (
	mutantsGate = `package gate

func (g *gate) admits(r request) bool {
	if r.size < 5 && !g.refused(r.name) {
		return true
	}
	return g.Settings.Open && len(r.name) > 0
}
`
	mutantsRows = `size	internal/gate/gate.go	r.size < 5 && !g.refused(r.name)	r.size < 5	./internal/gate -run TestGate
open	internal/gate/gate.go	return g.Settings.Open && len(r.name) > 0	return g.Settings.Open	./internal/gate -run TestGate
`
)

// A mutant's row follows its line to another place or other names, and removes there what it removed before.
func TestMutantsFollowTheirLines(t *testing.T) {
	for what, c := range map[string]struct {
		at      string            // the gate's new path, if it moved
		changes []string          // pairs of old and new text
		follow  map[string]string // the rows' new cells, by id: file, old and new text; none if nothing moved
		fails   string            // the error about a row that is not found
	}{
		"as it was": {},
		"a function is renamed": {changes: []string{"refused", "turnsAway"}, follow: map[string]string{
			"size": "internal/gate/gate.go	r.size < 5 && !g.turnsAway(r.name)	r.size < 5",
		}},
		"a field is renamed": {changes: []string{"size", "octets"}, follow: map[string]string{
			"size": "internal/gate/gate.go	r.octets < 5 && !g.refused(r.name)	r.octets < 5",
		}},
		"the line is wrapped and commented": {changes: []string{"< 5 && ", "< 5 && // octets\n\t\t"}, follow: map[string]string{
			"size": "internal/gate/gate.go	r.size < 5 && !g.refused(r.name)	r.size < 5",
		}},
		"the file is renamed": {at: "internal/gate/door.go", follow: map[string]string{
			"size": "internal/gate/door.go	r.size < 5 && !g.refused(r.name)	r.size < 5",
			"open": "internal/gate/door.go	return g.Settings.Open && len(r.name) > 0	return g.Settings.Open",
		}},
		"it moves to another package with exported names": {at: "internal/door/door.go", changes: []string{"refused", "Refused", "size", "Size"}, follow: map[string]string{
			"size": "internal/door/door.go	r.Size < 5 && !g.Refused(r.name)	r.Size < 5",
			"open": "internal/door/door.go	return g.Settings.Open && len(r.name) > 0	return g.Settings.Open",
		}},
		"what it calls moves to a package": {changes: []string{"package gate\n", "package gate\n\nimport \"oooi/internal/rules\"\n", "g.refused(", "rules.Refused("}, follow: map[string]string{
			"size": "internal/gate/gate.go	r.size < 5 && !rules.Refused(r.name)	r.size < 5",
		}},
		"a field is reached through another": {changes: []string{"g.Settings", "g.in.Settings"}, follow: map[string]string{
			"open": "internal/gate/gate.go	return g.in.Settings.Open && len(r.name) > 0	return g.in.Settings.Open",
		}},
		"a literal is changed":   {changes: []string{"< 5", "< 6"}, fails: "mutant size: NOT FOUND (the line has changed"},
		"an operator is changed": {changes: []string{"&& len", "|| len"}, fails: "mutant open: NOT FOUND (the line has changed"},
		"another name is asked":  {changes: []string{"refused(r.name)", "refused(r.kind)"}, fails: "mutant size: NOT FOUND (the line has changed"},
		"two lines are as near": {changes: []string{"Open && len(r.name) > 0", "Ajar && len(r.name) > 0 || func() bool {\n\treturn g.Settings.Shut && len(r.name) > 0 }()"},
			fails: "mutant open: NOT FOUND (ambiguous: internal/gate/gate.go:7, internal/gate/gate.go:8)"},
	} {
		t.Run(what, func(t *testing.T) {
			top := mutantsTree(t, c.at, strings.NewReplacer(c.changes...).Replace(mutantsGate), mutantsRows)
			said, err := mutants(t, top, "--there", "--moved")
			if c.fails != "" {
				if err == nil || !strings.Contains(said, c.fails) {
					t.Errorf("want a failure that says %q, got %v:\n%s", c.fails, err, said)
				}
				return
			}
			if err != nil || strings.Count(said, "moved: ") != len(c.follow) {
				t.Fatalf("want every row to be there and %d to have moved, got %v:\n%s", len(c.follow), err, said)
			}
			if said, err := mutants(t, top, "--follow"); err != nil {
				t.Fatalf("%v:\n%s", err, said)
			}
			want := mutantsRows
			for _, row := range strings.Split(strings.TrimSpace(mutantsRows), "\n") {
				cells := strings.Split(row, "\t")
				if now := c.follow[cells[0]]; now != "" {
					want = strings.Replace(want, row, cells[0]+"\t"+now+"\t"+cells[4], 1)
				}
			}
			if got := read(t, filepath.Join(top, "test/mutants/gate.tsv")); got != want {
				t.Errorf("want the rows\n%sgot\n%s", want, got)
			}
		})
	}
}

// A row whose test does not exist, which go test would pass, is reported.
func TestMutantsNameTheirTests(t *testing.T) {
	for args, want := range map[string]string{
		"./internal/gates -run TestGate": "mutant size: ./internal/gates is no directory",
		"./internal/gate -run TestGates": "mutant size: ./internal/gate has no test TestGates",
	} {
		top := mutantsTree(t, "", mutantsGate, strings.Replace(mutantsRows, "./internal/gate -run TestGate", args, 1))
		if said, err := mutants(t, top, "--there"); err == nil || !strings.Contains(said, want) {
			t.Errorf("%s: want a failure that says %q, got %v:\n%s", args, want, err, said)
		}
	}
}

// mutantsTree is a tree with a table, a gate, and the gate's test.
func mutantsTree(t *testing.T, at, gate, rows string) string {
	t.Helper()
	top := t.TempDir()
	if at == "" {
		at = "internal/gate/gate.go"
	}
	for name, text := range map[string]string{
		at:                           gate,
		"internal/gate/gate_test.go": "package gate\n\nfunc TestGate(t *testing.T) {}\n",
		"test/mutants/gate.tsv":      rows,
		"hack/mutants":               read(t, "../../hack/mutants"),
	} {
		name = filepath.Join(top, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return top
}

func mutants(t *testing.T, top string, args ...string) (string, error) {
	t.Helper()
	said, err := exec.Command("python3", append([]string{filepath.Join(top, "hack/mutants")}, args...)...).CombinedOutput()
	return string(said), err
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
