package cmd

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// Each alert that is installed has its row, with its severity and an anchor of its name, which its annotation see names.
func TestTheReferenceListsExactlyTheAlertsThatThereAre(t *testing.T) {
	rules, err := os.ReadFile("../config/components/monitoring/alerts.yaml")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	alerts := regexp.MustCompile(`(?s)- alert: (\w+)\n.*?severity: (\w+).*?\n        see: (\S+)\n`).FindAllStringSubmatch(string(rules), -1)
	var installed []string
	for _, m := range alerts {
		installed = append(installed, m[1]+" "+m[2])
		NewWithT(t).Expect(m[3]).To(Equal("docs/reference/alerts.md#" + m[1]))
	}
	NewWithT(t).Expect(rows(t, "docs/reference/alerts.md")).To(ConsistOf(installed))
}

// Each event that is not a condition's has its row, with an anchor of its name.
func TestTheReferenceListsExactlyTheEventsThatThereAre(t *testing.T) {
	said := regexp.MustCompile(`EventType = "(\w+)"|\.Eventf\([^"]*EventType\w+, "(\w+)"|Reason(?:Bootstrap|Serving) += "(\w+)"`)
	notice := regexp.MustCompile(`(?m)^\t\w+ = "([A-Z]\w+)"`)
	var events []string
	NewWithT(t).Expect(filepath.WalkDir("../internal", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range said.FindAllStringSubmatch(string(text), -1) {
			events = append(events, m[1]+m[2]+m[3])
		}
		if strings.HasSuffix(path, "guest/approve/notice.go") {
			for _, m := range notice.FindAllStringSubmatch(string(text), -1) {
				events = append(events, m[1])
			}
		}
		return err
	})).To(Succeed())
	var listed []string
	for _, row := range rows(t, "docs/reference/events.md") {
		name, _, _ := strings.Cut(row, " ")
		listed = append(listed, name)
	}
	slices.Sort(events)
	NewWithT(t).Expect(listed).To(ConsistOf(slices.Compact(events)))
}

// reasons finds in sources the reasons of an Infra's and its children's conditions that no finding has: what internal/status says itself, and what
// daemons write.
var reasons = []struct {
	files string
	says  *regexp.Regexp
}{
	{"internal/status/*.go", regexp.MustCompile(`\b(?:yes|no|unknown)\((?:kind|v1alpha1\.Condition\w+), "([A-Z]\w+)"`)},
	{"internal/status/*.go", regexp.MustCompile(`(?m)^(?:const |\t)[a-z]\w+ += "([A-Z]\w+)"`)},
	{"internal/status/rollout.go", regexp.MustCompile(`"([A-Z]\w+)": +finding\.`)},
	{"internal/status/apps.go", regexp.MustCompile(`Reason: "([A-Z]\w+)"`)},
	{"internal/dhcp/status.go", regexp.MustCompile(`Reason: "([A-Z]\w+)"`)},
	{"internal/dns/status.go", regexp.MustCompile(`(?:Reason: |metav1\.Condition\w+, )"([A-Z]\w+)"`)},
	{"internal/proxy/report.go", regexp.MustCompile(`metav1\.Condition\w+, "([A-Z]\w+)"`)},
	{"api/v1alpha1/shared_types.go", regexp.MustCompile(`Reason\w+ += "(\w+)"`)},
	{"internal/*/*.go", regexp.MustCompile(`finding\.(?:Refuse|Warn|Fail|Wait)\(v1alpha1\.Condition\w+, "(\w+)"`)},
	{"internal/plan/*/*.go", regexp.MustCompile(`finding\.(?:Refuse|Warn|Fail|Wait)\(v1alpha1\.Condition\w+, "(\w+)"`)},
}

// Each reason has a row with an anchor of its name, and with what to do: of conditions, of events on a HostedCluster, of the proxy's probes.
func TestEveryReasonHasItsAnchorAndItsMend(t *testing.T) {
	var ofConditions []string
	for _, r := range reasons {
		found := saidIn(t, r.files, r.says, "internal/status/bridge.go")
		NewWithT(t).Expect(found).NotTo(BeEmpty(), "%s of %s", r.says, r.files)
		ofConditions = append(ofConditions, found...)
	}
	slices.Sort(ofConditions)
	NewWithT(t).Expect(mended(t, "docs/reference/findings.md")).To(ContainElements(slices.Compact(ofConditions)))

	provisioned := regexp.MustCompile(`finding\.Provisioned, "(\w+)"|\.miss\("(\w+)"|more\.Reason, .* = "(\w+)"`)
	events := []string{"ObjectTooLarge"} // internal/kept, of any object
	for _, files := range []string{"internal/plan/provision/*.go", "internal/apply/*.go", "internal/status/teller.go"} {
		events = append(events, saidIn(t, files, provisioned)...)
	}
	slices.Sort(events)
	NewWithT(t).Expect(mended(t, "docs/PROVISIONING.md")).To(ConsistOf(slices.Compact(events)))

	faults := saidIn(t, "api/v1alpha1/proxyserver_types.go", regexp.MustCompile(`FaultReason = "(\w+)"`))
	NewWithT(t).Expect(mended(t, "docs/PROXY_SETUP.md")).To(ConsistOf(faults))
}

// saidIn are the names that an expression finds in files that are no tests, without others.
func saidIn(t *testing.T, files string, says *regexp.Regexp, others ...string) (all []string) {
	t.Helper()
	paths, err := filepath.Glob("../" + files)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") || slices.Contains(others, strings.TrimPrefix(path, "../")) {
			continue
		}
		text, err := os.ReadFile(path)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		for _, m := range says.FindAllStringSubmatch(string(text), -1) {
			all = append(all, strings.Join(m[1:], ""))
		}
	}
	return all
}

// mended are the names of a page's rows that have their name as an anchor, and end with what to do.
func mended(t *testing.T, page string) (all []string) {
	t.Helper()
	for _, m := range regexp.MustCompile("(?m)^\\| <a id=\"(\\w+)\"></a>`(\\w+)` \\|.* \\| ([^|]+) \\|$").FindAllStringSubmatch(pages(t)[page], -1) {
		NewWithT(t).Expect(m[1]).To(Equal(m[2]), "an anchor of another name on "+page)
		NewWithT(t).Expect(strings.TrimSpace(m[3])).NotTo(BeEmpty(), m[1])
		all = append(all, m[1])
	}
	return all
}

// rows are the names and second columns of the rows of a page that have their name as an anchor.
func rows(t *testing.T, page string) (all []string) {
	t.Helper()
	for _, m := range regexp.MustCompile("(?m)^\\| <a id=\"(\\w+)\"></a>`(\\w+)` \\| ([^|]+) \\|").FindAllStringSubmatch(pages(t)[page], -1) {
		NewWithT(t).Expect(m[1]).To(Equal(m[2]), "an anchor of another name on "+page)
		all = append(all, m[2]+" "+m[3])
	}
	return all
}
