package cmd

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// docs/SECURITY.md names a test for each thing that it says nobody can do.
func TestWhatThePageOnSecurityNamesIsThere(t *testing.T) {
	g := NewWithT(t)
	page, err := os.ReadFile("../docs/SECURITY.md")
	g.Expect(err).NotTo(HaveOccurred())
	named := regexp.MustCompile(`\bTest[A-Z]\w+`).FindAllString(string(page), -1)
	g.Expect(len(named)).To(BeNumerically(">", 30))
	tests := sources(t)
	for _, name := range named {
		g.Expect(tests).To(ContainSubstring("\nfunc "+name+"("), name)
	}
}

// sources are those of all tests, concatenated.
func sources(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	NewWithT(t).Expect(filepath.WalkDir("..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		all.Write(text)
		return err
	})).To(Succeed())
	return all.String()
}
