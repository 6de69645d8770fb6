package webhook

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/cldmnky/oooi/internal/preflight"
)

const (
	// widest is how many bytes of a warning the API server is sure to hand on (warning.go, truncateAtRunes).
	widest = 256
	// most warnings: beyond, nobody reads.
	most = 10
)

// warningsOf findings are for a terminal: the code, the field, the sentence.
func warningsOf(findings []preflight.Finding) []string {
	var all []string
	for i, f := range findings {
		if i == most-1 && len(findings) > most {
			return append(all, fmt.Sprintf("%d more findings: oooi preflight prints all, with the YAML that puts them right", len(findings)-i))
		}
		all = append(all, warning(f))
	}
	return all
}

// warning is one line of at most so many bytes that an HTTP header can carry (net/http.go, NewWarningHeader).
func warning(f preflight.Finding) string {
	text := f.Code + ": " + f.Reason
	if f.Field != "" {
		text = f.Code + " " + f.Field + ": " + f.Reason
	}
	return line(text)
}

// line is a text as such a header can carry it.
func line(text string) string {
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
