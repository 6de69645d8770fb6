// Package archtest keeps imports going one way: cmd → controller|dhcp|dns|proxy → observe|apply|status → plan →
// endpoint|ipam|refgrant → finding|names|api.
package archtest

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/cldmnky/oooi/"

// denial says which packages may not import which, directly or through packages of ours, and why.
type denial struct {
	from, to []string // package prefixes; ours without the module's name
	because  string
}

var (
	pure      = []string{"internal/endpoint", "internal/ipam", "internal/refgrant", "internal/plan", "internal/finding", "internal/names", "internal/nad", "internal/dpf", "internal/metallb", "internal/managedfields", "internal/kept", "internal/csr", "internal/unroutable", "internal/kubelet", "internal/valid", "internal/component", "internal/bfcfg", "internal/dpfservices", "internal/moving", "internal/check", "internal/diagnose", "internal/picture", "internal/step", "internal/change"}
	control   = []string{"internal/controller", "internal/observe", "internal/apply", "internal/status", "internal/webhook"}
	dataPlane = []string{"internal/dhcp", "internal/dns", "internal/proxy", "internal/vlan", "internal/daemon", "internal/stages"}
)

var denials = []denial{
	{dataPlane, append(slices.Clone(control), "internal/plan", "internal/endpoint", "internal/ipam"), "a daemon knows only its own CR: it must run, and be tested, without an operator"},
	{control, []string{"internal/dhcp", "internal/dns", "internal/daemon", "internal/vlan", "internal/stages"}, "the CR is the whole contract between manager and daemons: manager N works with daemons N-1"},
	{[]string{"internal/webhook"}, []string{"internal/apply", "internal/status", "internal/controller"}, "who only judges has no writer in his hands"},
	{pure, control, "planning comes before reading and writing and must not know them"},
	{pure, []string{"os", "net/http", "k8s.io/client-go/kubernetes", "sigs.k8s.io/controller-runtime"}, "a plan that can do I/O cannot be golden-tested, rendered offline, or trusted to be the same twice"},
	{[]string{"internal/dhcp"}, []string{"internal/dns", "internal/proxy"}, "daemons are told of each other by their CRs only"},
	{[]string{"internal/dns"}, []string{"internal/dhcp", "internal/proxy"}, "daemons are told of each other by their CRs only"},
	{[]string{"internal/proxy"}, []string{"internal/dhcp", "internal/dns"}, "daemons are told of each other by their CRs only"},
	{append(slices.Clone(pure), dataPlane...), []string{"internal/guest"}, "planning is told what was seen in a hosted cluster, and a daemon knows none"},
	{[]string{"internal/guest"}, []string{"k8s.io/client-go/tools/clientcmd", "k8s.io/client-go/rest", "k8s.io/client-go/transport", "sigs.k8s.io/controller-runtime/pkg/client/config", "os/exec"}, "client-go would run commands, read files and follow proxies that an untrusted kubeconfig names"},
	{[]string{"internal/guest"}, []string{"internal/controller", "internal/observe", "internal/status"}, "it is told what to look at and tells what it saw"},
	{[]string{"internal/guest/kubeconfig", "internal/guest/pace"}, []string{"internal/guest"}, "these two know nothing of hosted clusters' APIs"},
	{[]string{"internal/guest/bounded"}, []string{"internal/guest/visits", "internal/guest/appsingress", "internal/guest/approve"}, "a client knows not what it is used for"},
	{[]string{"internal/guest/visits"}, []string{"internal/guest/appsingress", "internal/guest/approve"}, "what is done on a visit is the visitor's"},
	{[]string{"internal/guest/appsingress"}, []string{"internal/guest/approve"}, "an Infra's hosted cluster has nothing of a bridge's"},
	{[]string{"internal/guest/approve"}, []string{"internal/guest/appsingress"}, "nor a bridge's anything of an Infra's"},
	{[]string{"internal/observe"}, []string{"internal/apply", "internal/status", "internal/guest/visits", "internal/guest/appsingress", "internal/guest/approve"}, "to read has no effects"},
	{[]string{"internal/endpoint", "internal/ipam", "internal/refgrant", "internal/component", "internal/bfcfg", "internal/dpfservices"}, []string{"internal/plan"}, "these are the plan's parts; a part that knows the whole cannot be read alone"},
	{append(slices.Clone(pure), dataPlane...), []string{"internal/registry", "github.com/google/go-containerregistry"}, "planning is told what a registry said, and a daemon knows none"},
	{[]string{"internal/registry"}, []string{"internal/controller", "internal/observe", "internal/status", "internal/guest/visits", "os/exec"}, "it is told what to ask, and its answer is judged elsewhere"},
	{[]string{"api"}, []string{"internal", "cmd", "sigs.k8s.io/controller-runtime"}, "others import our API types and must not get our operator with them"},
	{[]string{"internal"}, []string{"cmd"}, "cmd is wiring: nothing depends on how it is wired"},
}

func TestImportsGoOneWay(t *testing.T) {
	imports := importsOfModule(t)
	for _, d := range denials {
		for pkg := range imports {
			if !hasPrefix(pkg, d.from) {
				continue
			}
			if path := pathTo(imports, pkg, d.to); path != nil {
				t.Errorf("%s must not import %s: %s", strings.Join(path[:len(path)-1], " → "), path[len(path)-1], d.because)
			}
		}
	}
}

// pathTo finds a chain of imports from pkg to any of the denied prefixes; ours are followed, others end a chain.
func pathTo(imports map[string][]string, pkg string, denied []string) []string {
	type step struct{ path []string }
	queue, seen := []step{{[]string{pkg}}}, map[string]bool{pkg: true}
	for len(queue) > 0 {
		at := queue[0].path
		queue = queue[1:]
		for _, next := range imports[at[len(at)-1]] {
			path := append(slices.Clone(at), next)
			if hasPrefix(next, denied) && !hasPrefix(next, []string{pkg}) {
				return path
			}
			if !seen[next] {
				seen[next] = true
				queue = append(queue, step{path})
			}
		}
	}
	return nil
}

func hasPrefix(pkg string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return pkg == p || strings.HasPrefix(pkg, p+"/") })
}

// importsOfModule lists the imports of every package of ours, ours without the module's name.
func importsOfModule(t *testing.T) map[string][]string {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports", "./...")
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	imports := map[string][]string{}
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p struct {
			ImportPath string
			Imports    []string
		}
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return imports
		} else if err != nil {
			t.Fatal(err)
		}
		for i := range p.Imports {
			p.Imports[i] = strings.TrimPrefix(p.Imports[i], module)
		}
		imports[strings.TrimPrefix(p.ImportPath, module)] = p.Imports
	}
}

func TestADenialCanBite(t *testing.T) {
	imports := map[string][]string{"internal/dhcp": {"internal/daemon"}, "internal/daemon": {"internal/plan"}}
	if pathTo(imports, "internal/dhcp", []string{"internal/plan"}) == nil {
		t.Fatal("an import through another package of ours was not found")
	}
}

// A kubeconfig costs up to 50 ms of processor time, so the manager parses one at a time.
func TestTheManagerLooksAtKubeconfigsInTurn(t *testing.T) {
	files, looked := tree(t), false
	for _, at := range paths(files, "internal/") {
		if strings.HasSuffix(at, "_test.go") || hasPrefix(at, []string{"internal/guest/kubeconfig", "internal/csrcli", "internal/diagnosecli"}) {
			continue
		}
		looked = looked || strings.Contains(files[at], "kubeconfig.SanitiseInTurn(")
		if strings.Contains(files[at], "kubeconfig.Sanitise(") {
			t.Errorf("%s calls kubeconfig.Sanitise; call SanitiseInTurn", at)
		}
	}
	if !looked {
		t.Error("nobody looks at kubeconfigs: the name has changed")
	}
}
