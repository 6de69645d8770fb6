package archtest

import (
	"bytes"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// md is split off, so that this file cites no page.
const md = ".md"

// elsewhere are pages that we cite and that are not ours.
var elsewhere = []struct {
	in, page string // prefixes of a file and a page
	because  string
}{
	{"internal/nad/ovn.go", "okep-", "OVN-Kubernetes' enhancement proposals, of the version that stands there"},
	{"internal/render/networks.go", "docs/okeps/", "OVN-Kubernetes', likewise"},
	{"internal/plan/testdata/documented/", "docs/", "each example names the repository, version and page that it was taken from"},
	{"docs/reference/upstream" + md, "veps/", "KubeVirt's enhancement proposals, of the commit that stands there"},
	{"internal/render/files_test.go", "notes" + md, "the test makes it"},
	{"hack/mutants", "docs/mutants" + md, "it writes the page, once the whole table has run"},
}

var (
	citation = regexp.MustCompile(`(https?://)?([\w./-]*\w\.md)\b(?:#([\w-]+))?`)
	// pageless is a rule that is cited by its number alone.
	pageless = regexp.MustCompile(`(?i)\brules? [0-9]+[a-z]?\b`)
	heading  = regexp.MustCompile(`(?m)^#+ +(.+)$`)
	anchor   = regexp.MustCompile(`<a id="([\w-]+)"></a>`)
	unlinked = regexp.MustCompile(`[^\w -]`)
	shown    = regexp.MustCompile(`\b(?:Test|Fuzz)[A-Z]\w*`)
	function = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
)

// Every page that something in the tree cites is in the tree, with the rule.
func TestEveryPageThatIsCitedIsThere(t *testing.T) {
	files := tree(t)
	for _, fault := range faults(files) {
		t.Error(fault)
	}
	for _, e := range elsewhere {
		if !slices.ContainsFunc(paths(files, e.in), func(at string) bool { return strings.Contains(files[at], e.page) }) {
			t.Errorf("nothing in %s cites %s any more: take it out of the list", e.in, e.page)
		}
	}
}

// Every test that a page of rules names exists.
func TestWhatPagesOfRulesNameIsThere(t *testing.T) {
	files := tree(t)
	tests := map[string]bool{}
	for _, at := range paths(files, "") {
		if strings.HasSuffix(at, "_test.go") {
			for _, m := range function.FindAllStringSubmatch(files[at], -1) {
				tests[m[1]] = true
			}
		}
	}
	named := 0
	for _, at := range paths(files, "docs/reference/") {
		for _, name := range shown.FindAllString(files[at], -1) {
			if named++; !tests[name] {
				t.Errorf("%s names %s, which is no test", at, name)
			}
		}
	}
	if named < 50 {
		t.Errorf("docs/reference names %d tests: they are not found", named)
	}
}

// Every bug of the public operator has a test, or one that shows why it cannot happen.
func TestEachBugOfOthersHasATest(t *testing.T) {
	rows := 0
	for line := range strings.Lines(tree(t)["docs/reference/provisioner-bugs"+md]) {
		bug, rest, row := strings.Cut(strings.TrimPrefix(line, "| "), " | ")
		if !row || bug == "bug" || strings.HasPrefix(line, "|--") {
			continue
		}
		if rows++; !shown.MatchString(rest[strings.LastIndex(strings.TrimSuffix(rest, "|\n"), "|")+1:]) {
			t.Errorf("bug %s has no test", bug)
		}
	}
	if rows < 15 {
		t.Errorf("%d bugs are found", rows)
	}
}

func TestACitationCanBeWrong(t *testing.T) {
	page := "# DHCP: the rules\n<a id=\"lease-3\"></a>\n## On the wire\n"
	for text, wrong := range map[string]bool{
		"docs/reference/dhcp" + md:                    false,
		"dhcp" + md + "#lease-3":                      false,
		"(dhcp" + md + "#on-the-wire).":               false,
		"../../docs/reference/dhcp" + md + "#lease-3": false,
		"https://example.com/a" + md + "#b":           false,
		"five rules, 3 of them":                       false,
		"spec/dhcp" + md:                              true,
		"docs/dhcp" + md:                              true,
		"dhcp" + md + "#lease-4":                      true,
		"dhcp" + md + ", rule" + " 3":                 true,
		"(rule" + " 7)":                               true,
	} {
		found := faults(map[string]string{"internal/dhcp/a.go": text, "docs/reference/dhcp" + md: page})
		if len(found) > 0 != wrong {
			t.Errorf("%q: found %q", text, found)
		}
	}
}

// faults are citations, in text files by their paths, that lead nowhere.
func faults(files map[string]string) (all []string) {
	for _, at := range paths(files, "") {
		if !strings.Contains(files[at], md) && !strings.Contains(files[at], "ule") {
			continue // skip most files, because regular expressions are slow
		}
		for _, m := range citation.FindAllStringSubmatch(files[at], -1) {
			url, page, place := m[1], m[2], m[3]
			if url != "" || isElsewhere(at, page) {
				continue
			}
			text, found := resolve(files, at, page)
			switch {
			case !found:
				all = append(all, at+" cites "+page+", which is not in the tree")
			case place != "" && !slices.Contains(places(text), place):
				all = append(all, at+" cites "+page+"#"+place+", and that page has no such place")
			}
		}
		if strings.HasPrefix(at, "docs/reference/") {
			continue // there, a number refers to the page itself
		}
		for _, rule := range pageless.FindAllString(files[at], -1) {
			all = append(all, at+" cites "+rule+" of no page: name the page and its anchor")
		}
	}
	return all
}

func isElsewhere(at, page string) bool {
	for _, e := range elsewhere {
		if strings.HasPrefix(at, e.in) && strings.HasPrefix(page, e.page) {
			return true
		}
	}
	return false
}

// resolve finds a page: from the top, from the file that cites it, or by its name alone among the reference pages.
func resolve(files map[string]string, at, page string) (text string, found bool) {
	for _, candidate := range []string{page, path.Join(path.Dir(at), page), path.Join("docs/reference", page)} {
		if text, found = files[candidate]; found {
			return text, true
		}
	}
	return "", false
}

// places are the anchors of a page, and its headings as GitHub links them.
func places(page string) (all []string) {
	for _, m := range anchor.FindAllStringSubmatch(page, -1) {
		all = append(all, m[1])
	}
	for _, m := range heading.FindAllStringSubmatch(page, -1) {
		all = append(all, strings.ReplaceAll(unlinked.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-"))
	}
	return all
}

func paths(files map[string]string, prefix string) (all []string) {
	for at := range files {
		if strings.HasPrefix(at, prefix) {
			all = append(all, at)
		}
	}
	slices.Sort(all)
	return all
}

func tree(t *testing.T) map[string]string {
	t.Helper()
	files, err := textFiles()
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// textFiles are those of the tree, pictures as empty ones, without what .gitignore lists. We walk it instead of asking git, so that go test's cache knows when they
// change.
var textFiles = sync.OnceValues(func() (map[string]string, error) {
	const top = "../.."
	files := map[string]string{}
	return files, filepath.WalkDir(top, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		at, err := filepath.Rel(top, name)
		switch {
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains([]string{".git", "bin", "dist"}, at):
			return fs.SkipDir
		case !entry.Type().IsRegular() || strings.HasSuffix(at, ".log"):
			return nil
		}
		text, err := os.ReadFile(name)
		if bytes.ContainsRune(text, 0) {
			text = nil // a picture, which a page may show
		}
		files[filepath.ToSlash(at)] = string(text)
		return err
	})
})
