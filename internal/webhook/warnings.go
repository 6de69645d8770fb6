package webhook

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/preflight"
)

const (
	// widest is to how many characters the API server cuts each warning once all of an answer, those of others too, have more than 4096
	// (apiserver, pkg/endpoints/filters/warning.go, AddWarning).
	widest = 256
	// together is how many bytes ours have at most while they are whole: others' have the rest.
	together = 3072
	// most bounds the warnings: nobody reads more.
	most = 10
)

const (
	ofInfras  = "docs/reference/findings.md"
	ofBridges = "docs/reference/bridge.md"
)

// warningsOf formats findings for a terminal: the code, the field, the sentence, which ends with what to do. If they are too long together, each
// that the API server could cut ends where a sentence does, and says where the rest is; page has an anchor for each code.
func warningsOf(findings []preflight.Finding, page string) []string {
	var all, short []string
	for i, f := range worstFirst(findings) {
		text := warning(f)
		if i == most-1 && len(findings) > most {
			text = fmt.Sprintf("%d more findings: oooi preflight prints all, with the YAML that puts them right", len(findings)-i)
		} else if i == most {
			break
		}
		all, short = append(all, text), append(short, shortened(text, rest(f, page)))
	}
	if len(strings.Join(all, "")) > together {
		return short
	}
	return all
}

// worstFirst sorts by severity; within one, findings that repeat a code come last, since what comes last may be left out.
func worstFirst(findings []preflight.Finding) []preflight.Finding {
	var first, again []preflight.Finding
	for _, f := range findings {
		if slices.ContainsFunc(first, func(o preflight.Finding) bool { return o.Code == f.Code && o.Severity == f.Severity }) {
			again = append(again, f)
		} else {
			first = append(first, f)
		}
	}
	worst := []string{finding.Refused.Told(), finding.Waiting.Told(), finding.Warning.Told()}
	return slices.SortedStableFunc(slices.Values(append(first, again...)), func(a, b preflight.Finding) int {
		return cmp.Compare(slices.Index(worst, a.Severity.Told()), slices.Index(worst, b.Severity.Told()))
	})
}

// warning is one line that fits an HTTP header (net/http.go, NewWarningHeader).
func warning(f preflight.Finding) string {
	text := f.Code + ": " + f.Reason
	if f.Field != "" {
		text = f.Code + " " + f.Field + ": " + f.Reason
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, ""))
}

// rest says where the whole of a finding is.
func rest(f preflight.Finding, page string) string {
	if f.Code == interrupts {
		return "whole: oooi diff"
	}
	return fmt.Sprintf("whole: condition %s; what to do: %s#%s", f.Condition, page, f.Code)
}

// shortened is a text of at most widest bytes that ends where a sentence, or else a word, of it does.
func shortened(text, rest string) string {
	if len(text) <= widest {
		return text
	}
	rest = "… (" + rest + ")"
	text = strings.ToValidUTF8(text[:max(0, widest-len(rest))], "")
	end := max(strings.LastIndex(text, "; "), strings.LastIndex(text, ". "), strings.LastIndex(text, ": "))
	if end < len(text)/2 {
		end = strings.LastIndex(text, " ")
	}
	if end < len(text)/2 {
		end = len(text) // one long word
	}
	return text[:end] + rest
}
