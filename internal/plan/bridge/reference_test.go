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
	said = regexp.MustCompile(`(?:(?:finding\.(?:Wait|Refuse|Fail)|begin)\([\w.]+, |waiting\(|refuse\(|because\(|lacking\(d, "\w+", |\bno\([\w.]+, |\b(?:nameTaken|provisioning|Guest\w+|Reason(?:Cleanup|Templates)\w+|ManagementUnreachable|ApprovalRefused|LookingUp|Cach\w+|Registry\w+|ImageNotFound|InvalidReleaseImage) += |failure\{|\n\t(?:Ignition|MachineConfig|MachineOS|Registry|Flavor|PauseImage|Template)(?:Invalid|NotFound|Missing|Refused|TooLarge) += |NodePoolValid\w+, dpuv1\.Condition\w+, )"([A-Z]\w+)"`)
	// well matches those of conditions that are True.
	well = regexp.MustCompile(`(?:finding\.Warn\([\w.]+, |\bimageFound = |\byes\([\w.]+, |applied\([\w.]+, )"([A-Z]\w+)"`)
	// row matches a row of the page's table, with its reasons.
	row = regexp.MustCompile("(?m)^\\| (?:`\\w+`)? ?\\| ((?:`\\w+`(?:, )?)+) \\| .+ \\|$")
)

// The page for the DPU path says what to do about each reason, and has no reason that the code lacks.
func TestThePageListsEveryReason(t *testing.T) {
	g := NewWithT(t)
	var files, bad, good []string
	for _, sources := range []string{"*.go", "../../guest/*/*.go", "../input/guest.go", "../../status/bridge.go", "../../controller/bridge*.go", "../../apply/apply.go", "../../ignition/*.go", "../../bfcfg/source.go", "../../../api/provisioning/v1alpha1/conditions.go"} {
		found, err := filepath.Glob(sources)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(found).NotTo(BeEmpty(), sources)
		files = append(files, found...)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		g.Expect(err).NotTo(HaveOccurred())
		bad, good = append(bad, matches(said, text)...), append(good, matches(well, text)...)
	}
	page, err := os.ReadFile("../../../docs/DPU_BRIDGE.md")
	g.Expect(err).NotTo(HaveOccurred())
	var listed []string
	for _, reasons := range matches(row, page) {
		listed = append(listed, strings.Split(strings.ReplaceAll(reasons, "`", ""), ", ")...)
	}
	g.Expect(unique(listed)).To(Equal(unique(append(bad, "RefNotPermitted", "ObjectTooLarge")))) // these are internal/refgrant's and internal/kept's
	_, sentence, _ := strings.Cut(string(page), "Reasons of True conditions: ")
	sentence, _, _ = strings.Cut(sentence, ".")
	g.Expect(unique(strings.FieldsFunc(sentence, func(r rune) bool { return strings.ContainsRune(", \n", r) }))).To(Equal(unique(good)))
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
