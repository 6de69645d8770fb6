package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// wordsThatGo are the words of CONTRIBUTING.md's table for which code can be searched, and what to write for each.
var wordsThatGo = map[string]string{
	"held": "frozen, assigned, offered, owned: what it is", "lent": "allowed namespaces", "permit": "reference grant", "permits": "granted", "permitted": "granted",
	"plug": "attachment", "plugs": "attachments", "plugged": "attached", "unplugged": "not attached", "frames": "MTU",
	"literal": "IP endpoint, captured address", "literals": "IP endpoints", "chore": "expiry", "chores": "expiry", "happening": "event",
	"byname": "named watch", "shelf": "cache", "itself": "what it returns", "otherwise": "what it returns", "abroad": "the namespace", "lives": "exists",
}

// meant are names in which such a word is the field's own term, by folder, with the reason.
var meant = map[string]string{
	"internal/dhcp/leaselog frames": "records of the lease log are framed: length, checksum, content",
}

// packagesThatGo were named in this project's own language.
var packagesThatGo = []string{"held", "permit", "local", "byname"}

func TestWordsThatWentStayAway(t *testing.T) {
	used := map[string]bool{}
	for _, top := range []string{"internal", "cmd", "api"} {
		err := filepath.WalkDir(filepath.Join("../..", top), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.Contains(path, "applyconfiguration") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			if slices.Contains(packagesThatGo, strings.TrimSuffix(file.Name.Name, "_test")) {
				t.Errorf("%s: package %s: see the table of CONTRIBUTING.md", path, file.Name.Name)
			}
			folder := strings.TrimPrefix(filepath.ToSlash(filepath.Dir(path)), "../../")
			for _, name := range declared(file) {
				for _, word := range words(name) {
					but, goes := wordsThatGo[word]
					use := folder + " " + name
					switch {
					case goes && meant[use] != "":
						used[use] = true
					case goes:
						t.Errorf("%s: %s: not %q but %s (CONTRIBUTING.md)", path, name, word, but)
					}
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for use := range meant {
		if !used[use] {
			t.Errorf("%s is excepted, and is not there: take it out of the table", use)
		}
	}
}

// declared are the names that a file declares, without those of tests, which are sentences.
func declared(file *ast.File) (all []string) {
	add := func(ids ...*ast.Ident) {
		for _, id := range ids {
			all = append(all, id.Name)
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if !strings.HasPrefix(n.Name.Name, "Test") {
				add(n.Name)
			}
		case *ast.TypeSpec:
			add(n.Name)
		case *ast.ValueSpec:
			add(n.Names...)
		case *ast.Field:
			add(n.Names...)
		case *ast.AssignStmt:
			for _, left := range n.Lhs {
				if id, is := left.(*ast.Ident); is && n.Tok == token.DEFINE {
					add(id)
				}
			}
		case *ast.RangeStmt:
			for _, one := range []ast.Expr{n.Key, n.Value} {
				if id, is := one.(*ast.Ident); is && n.Tok == token.DEFINE {
					add(id)
				}
			}
		}
		return true
	})
	return all
}

// words are those of a name, in lower case.
func words(name string) (all []string) {
	begin := 0
	for i, r := range name {
		if i > begin && unicode.IsUpper(r) {
			all, begin = append(all, strings.ToLower(name[begin:i])), i
		}
	}
	return append(all, strings.ToLower(name[begin:]))
}
