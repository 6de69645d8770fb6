package bridge_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

var (
	// said matches reasons in sources: of findings, of conditions that are not True, and those with a constant.
	said = regexp.MustCompile(`(?:(?:finding\.(?:Wait|Refuse|Fail)|begin)\([\w.]+, |waiting\(|refuse\(|because\(|lacking\(d, "\w+", |\bno\([\w.]+, |\b(?:nameTaken|grantRefused|provisioning|Guest\w+|Reason\w+|ManagementUnreachable|ApprovalRefused|LookingUp|Cach\w+|Registry\w+|ImageNotFound|InvalidReleaseImage) += |failure\{|\n\t(?:Ignition|MachineConfig|MachineOS|Registry|Flavor|PauseImage|Template)(?:Invalid|NotFound|Missing|Refused|TooLarge) += |NodePoolValid\w+, dpuv1\.Condition\w+, )"([A-Z]\w+)"`)
	// well matches those of conditions that are True.
	well = regexp.MustCompile(`(?:finding\.Warn\([\w.]+, |\bimageFound = |\byes\([\w.]+, |applied\([\w.]+, )"([A-Z]\w+)"`)
	// row matches a row of the page's two tables: anchor, reason, conditions, what it means and, if it is not True, what to do.
	row = regexp.MustCompile("(?m)^\\| <a id=\"(\\w+)\"></a>`(\\w+)` \\| ([^|]+) \\| [^|]{3,} \\|(?: [^|]{3,} \\|)?$")
	// kind matches the types of conditions.
	kind = regexp.MustCompile(`\n\tCondition\w+ += "(\w+)"`)
)

// The page says of each reason what it means, of which conditions it is and, if it is not True, what to do, and has no reason that the code lacks.
func TestThePageListsEveryReason(t *testing.T) {
	g := NewWithT(t)
	const api = "../../../api/provisioning/v1alpha1/conditions.go"
	var files, bad, good []string
	for _, sources := range []string{"*.go", "../../guest/*/*.go", "../input/guest.go", "../../status/bridge.go", "../../controller/bridge*.go", "../../apply/apply.go", "../../ignition/*.go", "../../bfcfg/source.go", api} {
		found, err := filepath.Glob(sources)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(found).NotTo(BeEmpty(), sources)
		files = append(files, found...)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text := source(g, file)
		bad, good = append(bad, matches(said, text)...), append(good, matches(well, text)...)
	}
	bad = unique(append(bad, "RefNotPermitted", "ObjectTooLarge")) // these are internal/refgrant's and internal/kept's
	good = slices.DeleteFunc(unique(good), func(reason string) bool { return slices.Contains(bad, reason) })
	notTrue, isTrue, _ := strings.Cut(string(source(g, "../../../docs/reference/bridge.md")), "\n## True\n")
	g.Expect(listed(g, notTrue, 5, matches(kind, source(g, api)))).To(Equal(bad))
	g.Expect(listed(g, isTrue, 4, matches(kind, source(g, api)))).To(Equal(good))
}

// listed are the reasons of a table, each with its own anchor, in their order, with so many columns.
func listed(g Gomega, table string, columns int, kinds []string) (all []string) {
	for _, m := range row.FindAllStringSubmatch(table, -1) {
		g.Expect(m[1]).To(Equal(m[2]), "the anchor is the reason")
		g.Expect(strings.Count(m[0], "|")).To(Equal(columns), m[0])
		for condition := range strings.SplitSeq(m[3], ", ") {
			g.Expect(append(kinds, "those that mirror")).To(ContainElement(condition), m[1])
		}
		all = append(all, m[1])
	}
	return all
}

func source(g Gomega, file string) []byte {
	text, err := os.ReadFile(file)
	g.Expect(err).NotTo(HaveOccurred())
	return text
}

func matches(of *regexp.Regexp, text []byte) (all []string) {
	for _, m := range of.FindAllSubmatch(text, -1) {
		all = append(all, string(m[1]))
	}
	return all
}

func unique(all []string) []string {
	slices.Sort(all)
	return slices.Compact(all)
}
