package cmd

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/coredns/caddy/caddyfile"
	. "github.com/onsi/gomega"
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/dpf"
)

// commands say what runs a page's command: a test by name, or "FILE: WORDS" for a program of the tree that contains these words.
var commands = []struct{ page, begins, by string }{
	{"README.md", "kubectl -n oooi-system rollout status", "Makefile: rollout status deployment/oooi-controller-manager"},
	{"README.md", "kubectl", "TestTheReadmesCommands"},
	{"README.md", "bin/oooi", "TestTheReadmesCommands"},
	{"README.md", "helm", "TestARelease"},
	{"README.md", "make deploy", "test/lab/scene/scene.go: \"make\", \"deploy\""},
	{"README.md", "make undeploy", "TestUndeployTakesAllAway"},
	{"README.md", "make build", "hack/verify: copy$n\" build"},
	{"README.md", "make demo", "TestTheDemoNamesTheStepThatBroke"},
	{"README.md", "make test", ".ci/run: make test"},
	{"docs/AIRGAP.md", "oooi images", "TestThePageOnAirGapsMirrors"},
	{"docs/AIRGAP.md", "oc image mirror -f", "TestImagesAreWrittenForEachTool"},
	{"docs/AIRGAP.md", "skopeo copy", "TestSkopeoPushesTheImage"},
	{"docs/AIRGAP.md", "sha256sum", "hack/release/run: sha256sum -c SHA256SUMS"},
	{"docs/AIRGAP.md", "helm install", "TestThePageOnAirGapsInstallsFromTheMirror"},
	{"docs/AIRGAP.md", "make deploy", "test/lab/scene/scene.go: \"make\", \"deploy\""},
	{"docs/AIRGAP.md", "make bundle", "TestThePageOnAirGapsMakesABundle"},
	{"docs/AIRGAP.md", "kubectl apply -f mirrorset.yaml", "TestThePageOnAirGapsMirrors"},
	{"docs/AIRGAP.md", "kubectl patch -n clusters hostedcluster", "TestThePageOnAirGapsMirrors"},
	{"docs/APPS_INGRESS.md", "", "TestThePageOnAppsIngress"},
	{"docs/CHECK.md", "oooi check --wait", "TestTheCheckSeesAnOperatorComeAndGo"},
	{"docs/CHECK.md", "oooi check", "TestThePageOnChecksRunsWithoutAnOperator"},
	{"docs/CHECK.md", "kubectl", "TestThePageOnChecksRunsWithoutAnOperator"},
	{"docs/DIAGNOSE.md", "kubectl -n clusters get olease -o wide", "TestNothingIsFoundOfAHealthyWorker"},
	{"docs/DIAGNOSE.md", "oooi diagnose", "TestNothingIsFoundOfAHealthyWorker"},
	{"docs/DIFF.md", "", "TestADiffSaysWhatAnApplyChanges"},
	{"docs/DNS_SETUP.md", "oooi dns", "TestDigSeesTwoViews"},
	{"docs/DNS_SETUP.md", "dig", "TestDigSeesTwoViews"},
	{"docs/DPU_BRIDGE.md", "kubectl create namespace oooi-images", "TestThePageOnBridgesHasImagesCopied"},
	{"docs/DPU_BRIDGE.md", "kubectl kustomize config/components/image-cache", "TestThePageOnBridgesHasImagesCopied"},
	{"docs/DPU_BRIDGE.md", "kubectl patch -n oooi-system configmap ocp-bluefield-images", "TestThePageOnBridgesHasImagesCopied"},
	{"docs/DPU_BRIDGE.md", "oooi bridge create", "TestThePageOnBridgesLeadsToDPUs"},
	{"docs/DPU_BRIDGE.md", "kubectl patch", "TestThePageOnBridgesLeadsToDPUs"},
	{"docs/DPU_BRIDGE.md", "kubectl create", "TestThePageOnBridgesLeadsToDPUs"},
	{"docs/DPU_BRIDGE.md", "kubectl apply", "TestThePageOnBridgesLeadsToDPUs"},
	{"docs/DPU_BRIDGE.md", "kubectl annotate", "TestThePageOnBridgesLeadsToDPUs"},
	{"docs/DPU_BRIDGE.md", "oooi bridge status", "TestThePageOnBridgesLeadsToDPUs"},
	{"docs/DPU_BRIDGE.md", "oooi bridge upgrade", "TestAnUpgradeReadsItsSteps"},
	{"docs/DPU_BRIDGE.md", "oooi preflight", "TestPreflightEndsWithWhatItFound"},
	{"docs/DPU_BRIDGE.md", "kubectl get dpfhcpprovisioners", "TestImportPrintsBridgesAndSaysWhatTheyLack"},
	{"docs/STATUS.md", "oooi ui", "TestPagesAreServedToWhoHasTheAddress"},
	{"docs/STATUS.md", "oooi status", "TestTheStatusIsAnExitCodeToo"},
	{"docs/STATIC_IPAM.md", "oooi leases", "TestLeasesOfADHCPServerAreShownReleasedAndCarriedElsewhere"},
	{"docs/MOVING_IN.md", "oooi import", "TestThePageOnMovingInImportsFiles"},
	{"docs/MOVING_IN.md", "oooi move", "TestThePageOnMovingInMovesAnInfra"},
	{"docs/OPERATE.md", "kubectl -n clusters get infra,dhcpserver,dnsserver,proxyserver,dhcplease -o json | jq", "TestThePageOnOperatingBacksUp"},
	{"docs/OPERATE.md", "kubectl create -f clusters.json", "TestARestoredBackupKeepsAddressesAndLeases"},
	{"docs/OPERATE.md", "kubectl -n oooi-system scale deployment oooi-controller-manager", "TestARestoredBackupKeepsAddressesAndLeases"},
	{"docs/PROXY_SETUP.md", "oooi proxy", "TestTheExampleOfTheProxySetupServes"},
	{"docs/PROXY_SETUP.md", "envoy -c", "TestTheExampleOfTheProxySetupServes"},
	{"docs/reference/alerts.md", "kubectl label", "TestARelease"},
	{"docs/reference/alerts.md", "helm upgrade", "TestARelease"},
	{"docs/QUICKSTART_E2E.md", "make demo", "TestTheDemoNamesTheStepThatBroke"},
	{"docs/QUICKSTART_E2E.md", "make e2e", ".ci/run: make e2e"},
	{"docs/QUICKSTART_E2E.md", "make lab", "test/lab/e2e/run: ./lab up"}, // make lab does no more
	{"docs/QUICKSTART_E2E.md", `eval "$(test/lab/lab env)"`, `test/lab/e2e/run: eval "$(./lab env)"`},
	{"docs/QUICKSTART_E2E.md", "kubectl get nodes", `test/lab/scene/scene.go: "kubectl"`},
	{"docs/QUICKSTART_E2E.md", "test/lab/lab down", "TestWhatABrokenOffRunHasLeftGoesWithItsLab"},
}

// Every block of README.md and docs is run, is valid, or is marked as an illustration.
func TestEveryBlockOfAPageIsRunOrValid(t *testing.T) {
	tests, used := testFiles(t), map[string]bool{}
	for page, text := range pages(t) {
		for _, b := range blocks(text) {
			if err := b.fault(); err != nil {
				t.Errorf("%s: %v in\n%s", page, err, b.text)
			}
			for _, line := range b.commands() {
				i := slices.IndexFunc(commands, func(c struct{ page, begins, by string }) bool {
					return c.page == page && strings.HasPrefix(line, c.begins)
				})
				if i < 0 {
					t.Errorf("%s: no test runs %q: write one and list it in commands", page, line)
					continue
				}
				used[commands[i].page+commands[i].begins] = true
				if flag := unrun(line, page, tests[commands[i].by]); flag != "" {
					t.Errorf("%s: %s does not read the page, and has no %s: it does not run %q", page, commands[i].by, flag, line)
				}
			}
		}
	}
	for _, c := range commands {
		if !used[c.page+c.begins] {
			t.Errorf("%s has no command that begins with %q: take it out of the list", c.page, c.begins)
		}
		if file, words, is := strings.Cut(c.by, ": "); is {
			if text, err := os.ReadFile(filepath.Join("..", file)); err != nil || !bytes.Contains(text, []byte(words)) {
				t.Errorf("%q of %s is not run by %s: %v", c.begins, c.page, c.by, err)
			}
		} else if tests[c.by] == "" {
			t.Errorf("%q of %s is run by %s, which is no test", c.begins, c.page, c.by)
		}
	}
}

// testFiles are the texts of the files that tests are in, by the tests' names.
func testFiles(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	test := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	NewWithT(t).Expect(filepath.WalkDir("..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range test.FindAllSubmatch(text, -1) {
			all[string(m[1])] = string(text)
		}
		return err
	})).To(Succeed())
	return all
}

// unrun is the first flag of a command of oooi that a test's file lacks, which does not read the page either.
func unrun(line, page, test string) string {
	if test == "" || strings.Contains(test, page) {
		return ""
	}
	for _, words := range invocations(line) {
		for _, word := range words {
			if flag, _, _ := strings.Cut(word, "="); strings.HasPrefix(flag, "-") && !strings.Contains(test, flag) {
				return flag
			}
		}
	}
	return ""
}

func TestABlockCanBeWrong(t *testing.T) {
	const infra = "apiVersion: hostedcluster.densityops.com/v1alpha1\nkind: Infra\nspec: {hostedClusterRef: {name: c1}}\n"
	for _, c := range []struct{ kind, text, want string }{
		{"yaml", infra, ""},
		{"yaml", strings.Replace(infra, "name: c1", "nam: c1", 1), `unknown field "spec.hostedClusterRef.nam"`},
		{"yaml", infra + "\n---\n" + strings.Replace(infra, "Infra", "Infrastructure", 1), `no kind "Infrastructure"`},
		{"yaml", "resources: [../default]\n", "'Kind' is missing"},
		{"yaml", "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresource: [../default]\n", `unknown field "resource"`},
		{"sh", "oooi preflight -f infra.yaml # said", ""},
		{"sh", "oooi preflight \\\n  --file infra.yaml", "unknown flag: --file"},
		{"sh", "oooi look", `unknown command "look"`},
		{"sh", "bin/oooi move c1", `required flag(s) "to" not set`},
		{"sh", "oooi diagnose c1 c2", "give one name"},
		{"sh", "kubectl get infra && kubectl oooi check --pr", "unknown flag: --pr"},
		{"sh", "helm template oooi charts/oooi | oooi diff --manager", "flag needs an argument"},
		{"sh", "kubectl get infra -o yaml | oooi import -f - > bridges.yaml 2>&1", ""},
		{"json", "{", "unexpected end"},
		{"corefile", "c1.example.com {", "Unexpected"},
		{"console", "$ ls", "no kind of block"},
		{"", "", "no kind of block"},
	} {
		err := block{c.kind, c.text}.fault()
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s %q: %v, want %q", c.kind, c.text, err, c.want)
		}
	}
}

// Pages show the samples, which a test sends to an API server.
func TestPagesShowTheSmallestSamples(t *testing.T) {
	for page, sample := range map[string]string{"README.md": "infra.yaml", "docs/DPU_BRIDGE.md": "dpuhcpbridge.yaml"} {
		want := read[map[string]any](t, "../config/samples/"+sample)
		var shown []any
		for _, b := range blocks(pages(t)[page]) {
			var object map[string]any
			if b.kind == "yaml" && yaml.Unmarshal([]byte(b.text), &object) == nil {
				shown = append(shown, object)
			}
		}
		NewWithT(t).Expect(shown).To(ContainElement(want), page)
	}
}

// pages are README.md, CONTRIBUTING.md and all of docs, by path.
func pages(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	tree := os.DirFS("..")
	take := func(at string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(at, ".md") {
			return err
		}
		text, err := fs.ReadFile(tree, at)
		all[at] = string(text)
		return err
	}
	for _, top := range []string{"README.md", "CONTRIBUTING.md", "docs"} {
		if err := fs.WalkDir(tree, top, take); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// block is a fenced block of a page.
type block struct{ kind, text string }

func blocks(page string) (all []block) {
	inside := false
	for line := range strings.Lines(page) {
		kind, fence := strings.CutPrefix(strings.TrimSpace(line), "```")
		switch {
		case fence && !inside:
			all, inside = append(all, block{kind: kind}), true
		case fence:
			inside = false
		case inside:
			all[len(all)-1].text += line
		}
	}
	return all
}

// commands of a script, each on one line, without comments.
func (b block) commands() (all []string) {
	if b.kind != "sh" {
		return nil
	}
	for line := range strings.Lines(strings.ReplaceAll(b.text, "\\\n", "")) {
		line, _, _ = strings.Cut(line, " #")
		if line = strings.TrimSpace(line); line != "" {
			all = append(all, line)
		}
	}
	return all
}

// fault is why a reader could not use a block as it stands.
func (b block) fault() error {
	switch b.kind {
	case "sh":
		var all []error
		for _, line := range b.commands() {
			all = append(all, understood(line))
		}
		return errors.Join(all...)
	case "yaml":
		return decoded(b.text)
	case "json":
		return json.Unmarshal([]byte(b.text), new(any))
	case "corefile":
		_, err := caddyfile.Parse("Corefile", strings.NewReader(b.text), nil)
		return err
	case "text": // what programs print
		return nil
	}
	return fmt.Errorf("%q is no kind of block: write sh, yaml, json, corefile, or text for an illustration", b.kind)
}

// understood says whether oooi takes each of a line's commands as it stands: the subcommand, its flags and their values, and the arguments.
func understood(line string) error {
	var all []error
	for _, words := range invocations(line) {
		cmd, rest, err := Root().Find(words)
		if err == nil {
			err = cmd.ParseFlags(rest)
		}
		if err == nil {
			err = errors.Join(cmd.ValidateRequiredFlags(), cmd.ValidateFlagGroups(), cmd.ValidateArgs(cmd.Flags().Args()))
		}
		all = append(all, err)
	}
	return errors.Join(all...)
}

var (
	between     = regexp.MustCompile(`\s*(?:\|\|?|&&|;)\s*`)
	redirection = regexp.MustCompile(`\s(?:\d?>&\d|\d?>>?\s*\S+|&$)`)
)

// invocations are the arguments of each command of oooi on a line.
func invocations(line string) (all [][]string) {
	for _, command := range between.Split(line, -1) {
		words := strings.Fields(redirection.ReplaceAllString(command, ""))
		if len(words) > 1 && words[0] == "kubectl" && words[1] == "oooi" {
			words = words[1:]
		}
		if len(words) > 0 && filepath.Base(words[0]) == "oooi" {
			all = append(all, words[1:])
		}
	}
	return all
}

// strict knows the kinds that pages show, and refuses a field that one does not have.
var strict = func() runtime.Decoder {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientscheme.AddToScheme, v1alpha1.AddToScheme, dpuv1.AddToScheme, hyperv1.AddToScheme, dpf.AddToScheme} {
		if err := add(scheme); err != nil {
			panic(err)
		}
	}
	return serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
}()

// overlay is what a page shows of a kustomization, whose type is in no module of ours.
type overlay struct {
	APIVersion, Kind      string
	Resources, Components []string
}

// decoded says whether each document is an object of a known kind, with fields that the kind has.
func decoded(text string) error {
	for document := range strings.SplitSeq(text, "\n---\n") {
		if strings.Contains(document, "kind: Kustomization\n") {
			if err := yaml.UnmarshalStrict([]byte(document), new(overlay)); err != nil {
				return err
			}
		} else if _, _, err := strict.Decode([]byte(document), nil, nil); err != nil {
			return err
		}
	}
	return nil
}
