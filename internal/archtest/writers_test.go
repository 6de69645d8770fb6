package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	// writing are the writing methods of controller-runtime's and client-go's clients, which all take a context first.
	writing = []string{"Create", "Update", "UpdateStatus", "UpdateApproval", "Patch", "Apply", "ApplyStatus", "Delete", "DeleteAllOf", "DeleteCollection", "EvictV1"}
	// writingVerbs are those of a plain HTTP client.
	writingVerbs = []string{"MethodPost", "MethodPut", "MethodPatch", "MethodDelete"}
	listed       = regexp.MustCompile(`(?m)^  - (internal/[\w/]+): `)
)

// writesElsewhere have calls that look the same and write to no API server.
var writesElsewhere = map[string]string{
	"internal/daemon/follow.go": "Apply is the daemon's own, of its configuration",
	"internal/dhcp/copied.go":   "its Store is leasekube or a file",
	"internal/dhcp/metrics.go":  "likewise",
	"internal/dhcp/refusal.go":  "likewise",
	"internal/dhcp/server.go":   "likewise",
}

// Package apply's comment names every package that writes to an API server, and none that does not.
func TestTheWritersAreNamed(t *testing.T) {
	files := tree(t)
	var found []string
	for _, at := range paths(files, "internal/") {
		if !strings.HasSuffix(at, ".go") || strings.HasSuffix(at, "_test.go") || strings.HasPrefix(at, "internal/testkit/") || writesElsewhere[at] != "" {
			continue
		}
		if writes(t, files[at]) && !slices.Contains(found, path.Dir(at)) {
			found = append(found, path.Dir(at))
		}
	}
	apply, err := parser.ParseFile(token.NewFileSet(), "", files["internal/apply/apply.go"], parser.PackageClauseOnly|parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	var named []string
	for _, m := range listed.FindAllStringSubmatch(apply.Doc.Text(), -1) {
		named = append(named, m[1])
	}
	for _, pkg := range found {
		if !slices.Contains(named, pkg) {
			t.Errorf("%s writes, and the comment of package internal/apply does not say so: does it have to?", pkg)
		}
	}
	for _, pkg := range named {
		if !slices.Contains(found, pkg) {
			t.Errorf("%s does not write, though the comment of package internal/apply says so", pkg)
		}
	}
}

// writes says whether a file calls a writing method of a client, or sends a writing request.
func writes(t *testing.T, source string) (is bool) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "", source, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			method, called := n.Fun.(*ast.SelectorExpr)
			is = is || called && len(n.Args) > 1 && slices.Contains(writing, method.Sel.Name) && isContext(n.Args[0])
		case *ast.SelectorExpr:
			from, named := n.X.(*ast.Ident)
			is = is || named && from.Name == "http" && slices.Contains(writingVerbs, n.Sel.Name)
		}
		return true
	})
	return is
}

func isContext(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name == "ctx"
	case *ast.CallExpr:
		method, called := e.Fun.(*ast.SelectorExpr)
		return called && (method.Sel.Name == "Context" || isContextPackage(method.X))
	}
	return false
}

func isContextPackage(e ast.Expr) bool {
	x, is := e.(*ast.Ident)
	return is && x.Name == "context"
}

func TestAWriterCanBeFound(t *testing.T) {
	for body, want := range map[string]bool{
		`c.Get(ctx, key, o)`:                   false,
		`all.Delete(key)`:                      false,
		`c.Status().Apply(ctx, want, c.owner)`: true,
		`c.Delete(context.Background(), o)`:    true,
		`c.Create(r.Context(), o)`:             true,
		`send(request{verb: http.MethodPut})`:  true,
		`send(request{verb: http.MethodGet})`:  false,
		`c.Client.Patch(ctx, o, p)`:            true,
	} {
		if writes(t, "package p\nfunc f() any { "+body+"; return nil }") != want {
			t.Errorf("%s: want %t", body, want)
		}
	}
}
