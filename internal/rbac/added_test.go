package rbac_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// granted are verbs by account, namespace and resource, as lists of rights have them.
type granted map[[2]string][]string

// read adds a list of rights; a file that does not exist has none.
func (all granted) read(t *testing.T, of, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	var account, where string
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		what, verbs, isRight := strings.Cut(strings.TrimPrefix(line, "  "), ": ")
		switch {
		case isRight:
			all[[2]string{of + " " + account + " " + where, what}] = strings.Fields(verbs)
		case strings.HasPrefix(line, "in "):
			where = strings.TrimSuffix(line, ", besides")
		case !strings.HasPrefix(line, " "):
			account = line
		}
	}
}

// Each right that was added since issue 15 began has a reason that a person has read, and no removed right has one left.
func TestEveryRightThatWasAddedHasAReason(t *testing.T) {
	g, before, now := NewWithT(t), granted{}, granted{}
	lists, err := filepath.Glob("testdata/*/rights.txt")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(lists).NotTo(BeEmpty())
	for _, list := range lists {
		of := filepath.Base(filepath.Dir(list))
		now.read(t, of, list)
		before.read(t, of, "testdata/base/"+of+".txt")
	}
	var added, reasoned []string
	for at, verbs := range now {
		verbs = slices.DeleteFunc(verbs, func(verb string) bool { return slices.Contains(before[at], verb) })
		if len(verbs) > 0 {
			added = append(added, at[0]+"\t"+at[1]+": "+strings.Join(verbs, " "))
		}
	}
	text, err := os.ReadFile("testdata/added.tsv")
	g.Expect(err).NotTo(HaveOccurred())
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		cells := strings.Split(strings.TrimSpace(line), "\t")
		g.Expect(cells).To(HaveLen(3), line)
		reasoned = append(reasoned, cells[0]+"\t"+cells[1])
	}
	g.Expect(added).To(ConsistOf(reasoned))
}
