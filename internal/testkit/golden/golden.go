// Package golden compares output with files that a person has read.
package golden

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write golden files instead of comparing with them")

// Cases runs one subtest for each directory of testdata. run turns a directory into the texts of its golden files, by name. Any file that is
// neither one of these nor named in inputs is stale, and fails the subtest.
func Cases(t *testing.T, testdata string, inputs []string, run func(t *testing.T, dir string) map[string]string) {
	t.Helper()
	dirs, err := filepath.Glob(filepath.Join(testdata, "*", inputs[0]))
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no case with %s in %s", inputs[0], testdata)
	}
	for _, input := range dirs {
		dir := filepath.Dir(input)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			want := run(t, dir)
			for name, text := range want {
				Compare(t, filepath.Join(dir, name), text)
			}
			for _, name := range inputs {
				want[name] = ""
			}
			rejectStale(t, dir, want)
		})
	}
}

// YAML is one document of a golden file.
func YAML(t *testing.T, of any) string {
	t.Helper()
	text, err := yaml.Marshal(of)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Compare compares a text with a golden file.
func Compare(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v; run the test with -update and read what it wrote", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs (-file +made); run with -update where that is meant:\n%s", file, diff)
	}
}

func rejectStale(t *testing.T, dir string, known map[string]string) {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if _, ok := known[f.Name()]; ok {
			continue
		}
		if !*update {
			t.Errorf("%s is stale: nothing makes it", filepath.Join(dir, f.Name()))
		} else if err := os.Remove(filepath.Join(dir, f.Name())); err != nil {
			t.Fatal(err)
		}
	}
}
