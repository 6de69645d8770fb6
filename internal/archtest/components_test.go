package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// listsOfThree are the places that may name all components one by one, and why. Anywhere else a fourth component would be missing: range
// over component.All.
var listsOfThree = map[string]string{
	"cmd/root.go Root":                              "a daemon's flags are its own",
	"internal/change/client.go notices":             "workers notice another thing of each",
	"internal/component/all.go All":                 "the description itself",
	"internal/component/all.go DHCP":                "their names",
	"internal/diagnose/facts.go Facts":              "a worker meets each of them at another stage of its boot",
	"internal/diagnosecli/see.go see":               "the facts have a field for each",
	"internal/picture/page.go services":             "the facts have a field for each",
	"internal/picture/page.go unread":               "likewise",
	"internal/names/names.go DHCP":                  "their names, which daemons have too",
	"internal/plan/check/services.go services":      "what workers miss is another thing for each",
	"internal/plan/children/children.go objects":    "a row for each, which TestEveryComponentIsMade counts",
	"internal/plan/subject/subject.go FieldCIDR":    "fields that findings are about",
	"internal/plan/workload/components.go planners": "a row for each, which TestEveryComponentIsPlanned counts",
}

// parts match the names and texts that mean one component: DHCP, DHCPServer, reportOfDHCP, "dhcpservers".
var parts = []*regexp.Regexp{
	regexp.MustCompile(`^(\w*[a-z])?(DHCP|dhcp)(Servers?|servers?)?(List|Ready|ApplyConfiguration|Command)?$`),
	regexp.MustCompile(`^(\w*[a-z])?(DNS|dns)(Servers?|servers?)?(List|Ready|ApplyConfiguration|Command)?$`),
	regexp.MustCompile(`^(\w*[a-z])?(Proxy|proxy)(Servers?|servers?)?(List|Ready|ApplyConfiguration|Command)?$`),
}

func TestNoPlaceListsTheComponents(t *testing.T) {
	files, found := tree(t), map[string]bool{}
	for _, at := range append(paths(files, "internal/"), paths(files, "cmd/")...) {
		if !strings.HasSuffix(at, ".go") || strings.HasSuffix(at, "_test.go") || strings.HasPrefix(at, "internal/testkit/") {
			continue
		}
		for _, name := range listing(t, files[at]) {
			found[at+" "+name] = true
			if listsOfThree[at+" "+name] == "" {
				t.Errorf("%s: %s names each component; range over component.All, or say in listsOfThree why a list is right", at, name)
			}
		}
	}
	for place := range listsOfThree {
		if !found[place] {
			t.Errorf("%s lists the components no more: remove it from listsOfThree", place)
		}
	}
}

func TestAListOfComponentsIsFound(t *testing.T) {
	for text, want := range map[string][]string{
		"var all = []string{names.DHCP, names.DNS, names.Proxy}":                                              {"all"},
		"func f(o any) {\n\tswitch o.(type) {\n\tcase *DHCPServer:\n\tcase *DNSServer, *ProxyServer:\n\t}\n}": {"f"},
		"func (x X) f() {\n\tx.reportOfDHCP()\n\tx.reportOfDNS()\n\tx.reportOfProxy()\n}":                     {"f"},
		"var kinds = map[string]bool{\"DHCPServer\": true, \"DNSServer\": true, \"ProxyServer\": true}":       {"kinds"},
		"func f() { f(DHCP, n.DNSServers) }\n\nfunc g() { g(Proxy) }":                                         nil,
	} {
		if got := listing(t, "package p\n\n"+text+"\n"); !slices.Equal(got, want) {
			t.Errorf("%s: want %v, got %v", text, want, got)
		}
	}
}

// listing are the declarations of a file that name every component, by their first name.
func listing(t *testing.T, text string) (all []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "", text, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if namesAll(d) {
				all = append(all, d.Name.Name)
			}
		case *ast.GenDecl:
			if d.Tok == token.CONST && namesAll(d) {
				all = append(all, firstName(d.Specs[0]))
				continue
			}
			for _, s := range d.Specs {
				if d.Tok != token.IMPORT && namesAll(s) {
					all = append(all, firstName(s))
				}
			}
		}
	}
	return all
}

func namesAll(of ast.Node) bool {
	seen := map[int]bool{}
	ast.Inspect(of, func(n ast.Node) bool {
		said := ""
		switch n := n.(type) {
		case *ast.Ident:
			said = n.Name
		case *ast.BasicLit:
			said = strings.Trim(n.Value, `"`)
		}
		for i, part := range parts {
			if said != "" && part.MatchString(said) {
				seen[i] = true
			}
		}
		return true
	})
	return len(seen) == len(parts)
}

func firstName(s ast.Spec) string {
	switch s := s.(type) {
	case *ast.ValueSpec:
		return s.Names[0].Name
	case *ast.TypeSpec:
		return s.Name.Name
	}
	return ""
}
