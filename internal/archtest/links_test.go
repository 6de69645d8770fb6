package archtest

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	link = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	// pinned is a row of the README with a version and a file.
	pinned = regexp.MustCompile(`(?m)^\| [^|]+ \| ([\w.-]+) \| \[[^]]+\]\(([^)]+)\) \|$`)
)

// Links are resolved as on GitHub, from the page's own directory.
func TestEveryLinkOfAPageLeadsSomewhere(t *testing.T) {
	files := tree(t)
	for _, fault := range broken(files) {
		t.Error(fault)
	}
}

func TestALinkCanBeBroken(t *testing.T) {
	files := map[string]string{"docs/b" + md: "# A place\n", "docs/reference/c" + md: "", "config/a.yaml": ""}
	for to, wrong := range map[string]bool{
		"https://example.com/a":    false,
		"#here":                    false,
		"docs/b" + md:              false,
		"docs/b" + md + "#a-place": false,
		"config":                   false,
		"#there":                   true,
		"c" + md:                   true,
		"docs":                     false,
		"doc":                      true,
		"docs/b" + md + "#place":   true,
	} {
		files["README"+md] = "# Here\n[x](" + to + ")\n"
		if found := broken(files); len(found) > 0 != wrong {
			t.Errorf("%s: found %q", to, found)
		}
	}
}

func TestTheIndexLeadsToEveryPage(t *testing.T) {
	const index = "docs/README" + md
	files := tree(t)
	var listed []string
	for _, m := range link.FindAllStringSubmatch(files[index], -1) {
		page, _, _ := strings.Cut(m[1], "#")
		listed = append(listed, path.Join("docs", page))
	}
	for _, page := range paths(files, "docs/") {
		if strings.HasSuffix(page, md) && page != index && !slices.Contains(listed, page) {
			t.Errorf("%s does not lead to %s", index, page)
		}
	}
}

// Each version in the README is pinned in the file that its row names.
func TestTheReadmesVersionsArePinned(t *testing.T) {
	files := tree(t)
	rows := pinned.FindAllStringSubmatch(files["README"+md], -1)
	if len(rows) < 5 {
		t.Errorf("the README has %d versions: they are not found", len(rows))
	}
	for _, row := range rows {
		if !strings.Contains(files[row[2]], row[1]) {
			t.Errorf("%s does not have the README's version %s: %s", row[2], row[1], row[0])
		}
	}
}

// broken are the links to pages or places that do not exist.
func broken(files map[string]string) (all []string) {
	for _, page := range paths(files, "") {
		if !strings.HasSuffix(page, md) {
			continue
		}
		for _, m := range link.FindAllStringSubmatch(files[page], -1) {
			to, place, _ := strings.Cut(m[1], "#")
			if strings.Contains(to, "://") {
				continue
			}
			at := page
			if to != "" {
				at = path.Join(path.Dir(page), to)
			}
			text, found := files[at]
			if !found && len(paths(files, at+"/")) == 0 {
				all = append(all, page+" links to "+m[1]+", which is not there")
			} else if place != "" && !slices.Contains(places(text), place) {
				all = append(all, page+" links to "+m[1]+", and that page has no such place")
			}
		}
	}
	return all
}
