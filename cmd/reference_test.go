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

// rows are the names and second columns of the rows of a page that have their name as an anchor.
func rows(t *testing.T, page string) (all []string) {
	t.Helper()
	for _, m := range regexp.MustCompile("(?m)^\\| <a id=\"(\\w+)\"></a>`(\\w+)` \\| ([^|]+) \\|").FindAllStringSubmatch(pages(t)[page], -1) {
		NewWithT(t).Expect(m[1]).To(Equal(m[2]), "an anchor of another name on "+page)
		all = append(all, m[2]+" "+m[3])
	}
	return all
}
