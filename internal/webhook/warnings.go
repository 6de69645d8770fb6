package webhook

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/preflight"
)

const (
	// widest is how many bytes of a warning the API server is certain to pass on (warning.go, truncateAtRunes).
	widest = 256
	// most bounds the warnings: nobody reads more, and the API server drops what exceeds 4096 bytes in all.
	most = 10
)

// warningsOf formats findings for a terminal: the code, the field, the sentence.
func warningsOf(findings []preflight.Finding) []string {
	var all []string
	for i, f := range worstFirst(findings) {
		if i == most-1 && len(findings) > most {
			return append(all, fmt.Sprintf("%d more findings: oooi preflight prints all, with the YAML that puts them right", len(findings)-i))
		}
		all = append(all, warning(f))
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

// warning is one line of at most widest bytes that fits an HTTP header (net/http.go, NewWarningHeader).
func warning(f preflight.Finding) string {
	text := f.Code + ": " + f.Reason
	if f.Field != "" {
		text = f.Code + " " + f.Field + ": " + f.Reason
	}
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, ""))
	if len(text) <= widest {
		return text
	}
	const more = "…"
	cut := widest - len(more)
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + more
}
