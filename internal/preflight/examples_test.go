package preflight_test

import (
	"bytes"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"

	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/plan/input"
	"github.com/cldmnky/oooi/internal/preflight"
	"github.com/cldmnky/oooi/internal/render"
)

const examples = "../../examples/preflight/"

// settings are those of an operator on OpenShift with its usual networks.
var settings = input.Settings{
	PodCIDRs: []netip.Prefix{netip.MustParsePrefix("10.128.0.0/14")}, ServiceCIDRs: []netip.Prefix{netip.MustParsePrefix("172.30.0.0/16")},
	NADSourceNamespaces: []string{"default"},
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func reports(t *testing.T, text []byte) []preflight.Report {
	t.Helper()
	objects, err := render.Read(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return append(preflight.All(objects, settings), preflight.Bridges(objects)...)
}

// found are all findings of a text, and those with this code.
func found(t *testing.T, text []byte, code string) (all, coded []preflight.Finding) {
	t.Helper()
	for _, r := range reports(t, text) {
		all = append(all, r.Findings...)
	}
	return all, slices.DeleteFunc(slices.Clone(all), func(f preflight.Finding) bool { return f.Code != code })
}

// done are codes about what was done in a cluster, not about what somebody wrote.
var done = []string{"InfraCreated", "InfraOrphaned"}

// later are the sources of findings about a pod that stays as it was, or about a running hosted cluster.
var later = []string{"template_update.go", "pull.go", "peer.go", "lost.go", "loadbalancer.go", "external.go"}

// codes are all that planning an Infra, or making one from a HostedCluster, may find, read from the sources.
func codes(t *testing.T) []string {
	t.Helper()
	said := regexp.MustCompile(`\b(?:Refuse|Warn|Fail|Wait|miss|refuse|wrongAt|warn|wrong|begin|crowded)\((?:[\w.]+, |"Accepted", )?"([A-Z]\w+)"`)
	ofApps := regexp.MustCompile(`\bfail\("([A-Z]\w+)"`) // package apps' notes and waits need a hosted cluster
	var all []string
	for _, pkg := range []string{"plan/permission", "plan/apps", "plan/check", "plan/workload", "plan/provision", "endpoint", "ipam", "refgrant", "kept"} {
		pattern := said
		if pkg == "plan/apps" {
			pattern = ofApps
		}
		files, err := filepath.Glob("../" + pkg + "/*.go")
		if err != nil || len(files) == 0 {
			t.Fatal("no sources of", pkg, err)
		}
		for _, file := range files {
			name := filepath.Base(file)
			if strings.HasSuffix(name, "_test.go") || slices.Contains(later, name) {
				continue
			}
			for _, m := range pattern.FindAllStringSubmatch(string(read(t, file)), -1) {
				if m[1] != "Accepted" && !slices.Contains(done, m[1]) { // Accepted is a condition
					all = append(all, m[1])
				}
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func TestEveryCodeHasAnExampleThatFailsAndOneThatPasses(t *testing.T) {
	for _, code := range codes(t) {
		t.Run(code, func(t *testing.T) {
			g := NewWithT(t)
			fails, _ := found(t, read(t, examples+code+"/fails.yaml"), code)
			g.Expect(fails).NotTo(BeEmpty(), "the failing example does not fail")
			for _, f := range fails {
				g.Expect(f.Code).To(Equal(code), "the failing example fails with another code: %s", f.Reason)
				g.Expect(f.Field).To(MatchRegexp(`^(metadata|spec|status|data)\b`), "a finding says which field it is about")
			}
			for _, r := range reports(t, read(t, examples+code+"/fails.yaml")) {
				g.Expect(r.Works).NotTo(Equal(slices.ContainsFunc(r.Findings, func(f preflight.Finding) bool { return f.Severity.Told() == "refused" })), "what is refused does not work")
			}
			all, _ := found(t, read(t, examples+code+"/passes.yaml"), code)
			g.Expect(all).To(BeEmpty(), "the passing example does not pass")
		})
	}
}

// codesOfDPUs are those of docs/DPU_BRIDGE.md, without the one that files do not raise: a bridge makes the templates.
func codesOfDPUs(t *testing.T) (all []string) {
	t.Helper()
	_, table, _ := strings.Cut(string(read(t, "../../docs/DPU_BRIDGE.md")), "| finding | what to do |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	for _, row := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\|").FindAllStringSubmatch(table, -1) {
		if row[1] != "TemplateNotFound" {
			all = append(all, row[1])
		}
	}
	return all
}

func TestEveryFindingOfDPUsHasAnExampleThatFailsAndOneThatPasses(t *testing.T) {
	NewWithT(t).Expect(codesOfDPUs(t)).To(HaveLen(5))
	for _, code := range codesOfDPUs(t) {
		t.Run(code, func(t *testing.T) {
			all, fails := found(t, read(t, examples+code+"/fails.yaml"), code)
			NewWithT(t).Expect(fails).NotTo(BeEmpty(), "the failing example does not fail")
			NewWithT(t).Expect(all).To(Equal(fails), "the failing example fails with another code")
			all, _ = found(t, read(t, examples+code+"/passes.yaml"), code)
			NewWithT(t).Expect(all).To(BeEmpty(), "the passing example does not pass")
		})
	}
}

func TestThePrintedYAMLPutsItRight(t *testing.T) {
	for _, code := range codes(t) {
		t.Run(code, func(t *testing.T) {
			fails := read(t, examples+code+"/fails.yaml")
			_, findings := found(t, fails, code)
			if findings[0].YAML == "" {
				return // docs/reference/findings.md says so, and its own test compares
			}
			objects := documents(t, string(fails))
			for _, f := range findings {
				for _, patch := range documents(t, f.YAML) {
					objects = patched(objects, patch)
				}
			}
			var mended [][]byte
			for _, o := range objects {
				text, err := yaml.Marshal(o)
				if err != nil {
					t.Fatal(err)
				}
				mended = append(mended, text)
			}
			left, _ := found(t, bytes.Join(mended, []byte("---\n")), code)
			for _, f := range left {
				NewWithT(t).Expect(f.Severity == finding.Warning && f.Code != code).To(BeTrue(), "left, or new: %s %s", f.Code, f.Reason)
			}
		})
	}
}

func documents(t *testing.T, text string) (all []map[string]any) {
	t.Helper()
	for _, doc := range strings.Split(text, "---\n") {
		object := map[string]any{}
		if err := yaml.Unmarshal([]byte(doc), &object); err != nil {
			t.Fatal(err)
		}
		all = append(all, object)
	}
	return all
}

// patched does what `kubectl patch --type merge` does, and creates an object that does not exist.
func patched(objects []map[string]any, patch map[string]any) []map[string]any {
	for i, o := range objects {
		if identity(o) == identity(patch) {
			objects[i] = merged(o, patch).(map[string]any)
			return objects
		}
	}
	return append(objects, patch)
}

func identity(o map[string]any) [4]any {
	metadata := o["metadata"].(map[string]any)
	return [4]any{o["apiVersion"], o["kind"], metadata["namespace"], metadata["name"]}
}

// merged implements RFC 7386.
func merged(target, patch any) any {
	fields, is := patch.(map[string]any)
	if !is {
		return patch
	}
	object, _ := target.(map[string]any)
	if object == nil {
		object = map[string]any{}
	}
	for name, value := range fields {
		if value == nil {
			delete(object, name)
		} else {
			object[name] = merged(object[name], value)
		}
	}
	return object
}

func TestGoodConfigurationsRaiseNothing(t *testing.T) {
	files, err := filepath.Glob(examples + "good/*.yaml")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d good configurations, want at least 20: %v", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			all, _ := found(t, read(t, file), "")
			NewWithT(t).Expect(all).To(BeEmpty())
		})
	}
}

// HyperShift refuses to change these values (its API's rules, self == oldSelf), and our API refuses another network: no finding about them
// may be printed as a patch.
func TestWhatIsImmutableIsPrintedForAnObjectMadeAnew(t *testing.T) {
	for _, code := range codes(t) {
		_, findings := found(t, read(t, examples+code+"/fails.yaml"), code)
		for _, f := range findings {
			of := strings.Contains(f.YAML, "kind: HostedCluster\n") && strings.Contains(f.YAML, "\nspec:\n") && !strings.Contains(f.YAML, "\n  configuration:\n")
			moved := strings.Contains(f.YAML, "kind: Infra\n") && strings.Contains(f.YAML, "\n    cidr: ")
			NewWithT(t).Expect(f.Anew).To(Equal(of || moved), "%s: %s", code, f.YAML)
		}
	}
}

// severity matches a finding's severity as printed.
func severity(told string) OmegaMatcher {
	return HaveField("Severity", WithTransform(finding.Severity.Told, Equal(told)))
}

// The reference has one row per code: code, severity, condition, whether YAML is printed.
func TestTheReferenceListsExactlyTheCodesThatThereAre(t *testing.T) {
	row := regexp.MustCompile("(?m)^\\| <a id=\"\\w+\"></a>`(\\w+)` \\| ([^|]+) \\| ([\\w, ]+) \\| (yes|no) \\| .+ \\| .+ \\|$")
	g := NewWithT(t)
	var listed []string
	for _, m := range row.FindAllStringSubmatch(string(read(t, "../../docs/reference/findings.md")), -1) {
		code, severities, conditions, printed := m[1], m[2], strings.Split(m[3], ", "), m[4]
		listed = append(listed, code)
		_, findings := found(t, read(t, examples+code+"/fails.yaml"), code)
		g.Expect(findings).NotTo(BeEmpty(), code)
		g.Expect(severities).To(ContainSubstring(findings[0].Severity.Told()), code)
		g.Expect(conditions[0]).To(Equal(findings[0].Condition), code)
		for _, c := range conditions {
			g.Expect(findings).To(ContainElement(HaveField("Condition", c)), code)
		}
		g.Expect(printed == "yes").To(Equal(findings[0].YAML != ""), code)
	}
	g.Expect(listed).To(Equal(codes(t)))
	dirs, err := os.ReadDir(examples)
	g.Expect(err).NotTo(HaveOccurred())
	for _, d := range dirs {
		g.Expect(append(listed, append(codesOfDPUs(t), "good")...)).To(ContainElement(d.Name()), "an example of no code")
	}
}

// A reason that only shows in a running hosted cluster has a row but no example.
func TestTheReferenceListsTheOtherReasonsOfApps(t *testing.T) {
	files, err := filepath.Glob("../plan/apps/*.go")
	if err != nil || len(files) == 0 {
		t.Fatal("no sources", err)
	}
	said := regexp.MustCompile(`\b(?:fail|wait|warn)\("(\w+)"|\bGuest\w+ = "(\w+)"`)
	var reasons []string
	before := codes(t)
	for _, file := range append(files, "../plan/input/guest.go") {
		for _, m := range said.FindAllStringSubmatch(string(read(t, file)), -1) {
			if reason := m[1] + m[2]; !slices.Contains(before, reason) {
				reasons = append(reasons, reason)
			}
		}
	}
	slices.Sort(reasons)
	_, section, _ := strings.Cut(string(read(t, "../../docs/reference/findings.md")), "\n## `*.apps`\n")
	var listed []string
	for _, m := range regexp.MustCompile("(?m)^\\| <a id=\"\\w+\"></a>`(\\w+)` \\| [^|]+ \\| [^|]+ \\|$").FindAllStringSubmatch(section, -1) {
		listed = append(listed, m[1])
	}
	NewWithT(t).Expect(listed).To(Equal(slices.Compact(reasons)))
}

// What would be refused later is known before there is a hosted cluster to look into.
func TestWhatAppsIngressCannotHaveIsToldBefore(t *testing.T) {
	const wrong = `
  appsIngress:
    enabled: true
    ports: {http: 5000}
    metallb: {ipAddressPoolRange: [192.168.101.200-192.168.101.220]}
  extraEndpoints:
  - {name: mirror, hostnames: [mirror.example.com], port: 5000, protocol: TLS, target: {service: mirror, port: 5000}}
  hostedClusterRef: {name: c1}
`
	text := bytes.Replace(read(t, examples+"good/isolated.yaml"), []byte("\n  hostedClusterRef: {name: c1}\n"), []byte(wrong), 1)
	all, _ := found(t, text, "")
	g := NewWithT(t)
	g.Expect(all).To(ConsistOf(HaveField("Code", "PoolOutsideNetwork"), HaveField("Code", "PortInUse")))
	g.Expect(all).To(HaveEach(severity("refused")))
}

func TestWhatIsDerivedIsPutRightWhereItIsDerivedFrom(t *testing.T) {
	text := bytes.ReplaceAll(read(t, examples+"good/annotated.yaml"), []byte("192.168.100."), []byte("10.128.4."))
	_, clash := found(t, text, "CIDROverlapsNetwork")
	text = bytes.Replace(read(t, examples+"good/annotated.yaml"), []byte("infra: auto"), []byte("infra: auto\n    hostedcluster.densityops.com/dhcp-range: 192.168.100.20-192.168.100.22"), 1)
	_, small := found(t, text, "PoolTooSmall")
	for yaml, findings := range map[string][]preflight.Finding{
		"    hostedcluster.densityops.com/cidr: 192.168.0.0/24\n    hostedcluster.densityops.com/gateway: 192.168.0.1\n": clash,
		"    hostedcluster.densityops.com/dhcp-range: 192.168.100.8-192.168.100.254\n":                                   small,
	} {
		g := NewWithT(t)
		g.Expect(findings).To(HaveLen(1))
		g.Expect(findings[0].Object).To(Equal("HostedCluster clusters/c1"))
		g.Expect(findings[0].Field).To(Equal("metadata.annotations[hostedcluster.densityops.com/cidr]"))
		g.Expect(findings[0].YAML).To(ContainSubstring("kind: HostedCluster\n"))
		g.Expect(findings[0].YAML).To(ContainSubstring(yaml))
	}
}
