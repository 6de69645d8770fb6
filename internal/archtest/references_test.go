package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// stages are those of planning an Infra, in order: each gets what those before it return, and does not import those after it.
var stages = []string{"desired", "subject", "input", "permission", "vlan", "address", "apps", "check", "children", "workload", "provision", "ending"}

func TestAStageOfPlanningKnowsOnlyThoseBeforeIt(t *testing.T) {
	const within = "internal/plan/"
	for pkg, imports := range importsOfModule(t) {
		at := slices.Index(stages, strings.TrimPrefix(pkg, within))
		if at < 0 {
			continue
		}
		for _, i := range imports {
			if stage, ours := strings.CutPrefix(i, within); ours && slices.Index(stages[:at], stage) < 0 {
				t.Errorf("%s imports %s, which is none of the stages before it: %s", pkg, i, strings.Join(stages[:at], ", "))
			}
		}
	}
}

// oneWay are the packages in which no two files refer to each other, so that they can be read bottom-up.
var oneWay = []string{"internal/plan", "internal/guest"}

func TestFilesOfAPackageReferOneWay(t *testing.T) {
	read := 0
	for _, top := range oneWay {
		if err := filepath.WalkDir("../../"+top, func(dir string, entry os.DirEntry, err error) error {
			if err != nil || !entry.IsDir() || entry.Name() == "testdata" {
				return err
			}
			references := referencesIn(t, dir)
			read += len(references)
			if loop := loopIn(references); loop != nil {
				t.Errorf("%s: %s refer to each other in a circle; move what both need to a file of its own", strings.TrimPrefix(dir, "../../"), strings.Join(loop, " → "))
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	if read < 50 {
		t.Errorf("%d files refer to others: references are not found", read)
	}
}

func TestACircleOfFilesIsFound(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a.go": "package p\n\nimport \"example.com/other\"\n\ntype A struct{ other.B }\n\nfunc (a A) Up() { low(a) }\n",
		"b.go": "package p\n\nfunc low(a A) { a.Up() }\n",
		"c.go": "package p\n\nfunc top() { low(A{}) }\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"a.go", "b.go", "a.go"}, loopIn(referencesIn(t, dir))); diff != "" {
		t.Error(diff)
	}
}

// referencesIn says to which others each file of a package refers, by types, functions, methods and values; fields belong to their type.
// Imports are ignored, so that no other package needs to be compiled.
func referencesIn(t *testing.T, dir string) map[string][]string {
	t.Helper()
	fset, used := token.NewFileSet(), map[*ast.Ident]types.Object{}
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var files []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") || strings.HasPrefix(filepath.Base(name), "zz_generated") {
			continue
		}
		file, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	config := types.Config{Importer: importsNothing{}, Error: func(error) {}}
	pkg, _ := config.Check(dir, fset, files, &types.Info{Uses: used}) // imports are not resolved, which is an error here
	in := func(p token.Pos) string { return filepath.Base(fset.Position(p).Filename) }
	all := map[string][]string{}
	for ident, object := range used {
		field, _ := object.(*types.Var)
		if object.Pkg() != pkg || field != nil && field.IsField() {
			continue
		}
		if from, to := in(ident.Pos()), in(object.Pos()); from != to && !slices.Contains(all[from], to) {
			all[from] = append(all[from], to)
		}
	}
	return all
}

// loopIn finds a cycle; nil if there is none.
func loopIn(references map[string][]string) []string {
	done := map[string]bool{}
	var loop, path []string
	var visit func(file string) bool
	visit = func(file string) bool {
		if at := slices.Index(path, file); at >= 0 {
			loop = append(slices.Clone(path[at:]), file)
			return true
		}
		if done[file] {
			return false
		}
		path = append(path, file)
		slices.Sort(references[file])
		if slices.ContainsFunc(references[file], visit) {
			return true
		}
		path, done[file] = path[:len(path)-1], true
		return false
	}
	var files []string
	for file := range references {
		files = append(files, file)
	}
	slices.Sort(files)
	if slices.ContainsFunc(files, visit) {
		return loop
	}
	return nil
}

type importsNothing struct{}

func (importsNothing) Import(path string) (*types.Package, error) {
	p := types.NewPackage(path, path[strings.LastIndex(path, "/")+1:])
	p.MarkComplete()
	return p, nil
}
