package cmd

import (
	"os"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// endsInTests matches a claim that ends with the tests that show it, in parentheses.
const endsInTests = `\([^()]*\bTest[A-Z]\w+[^()]*\)\.$`

// docs/SECURITY.md names, for each thing that it says somebody cannot do, the tests that show it.
func TestWhatThePageOnSecurityNamesIsThere(t *testing.T) {
	g := NewWithT(t)
	page, err := os.ReadFile("../docs/SECURITY.md")
	g.Expect(err).NotTo(HaveOccurred())
	tests := testFiles(t)
	for _, name := range regexp.MustCompile(`\bTest[A-Z]\w+`).FindAllString(string(page), -1) {
		g.Expect(tests).To(HaveKey(name))
	}
	sections := strings.Split(string(page), "\n## ")[1:]
	g.Expect(len(sections)).To(BeNumerically(">", 10))
	for _, section := range sections {
		who, _, _ := strings.Cut(section, "\n")
		_, rest, found := strings.Cut(section, "\n**Cannot**\n\n- ")
		g.Expect(found).To(BeTrue(), "%s: a list follows **Cannot**", who)
		list, _, found := strings.Cut(rest, "\n\n**Narrowed by**\n\n- ")
		g.Expect(found).To(BeTrue(), "%s: **Narrowed by** follows that list", who)
		for claim := range strings.SplitSeq(list, "\n- ") {
			g.Expect(claim).To(MatchRegexp(endsInTests), "%s: tests in parentheses end each claim", who)
		}
	}
}
