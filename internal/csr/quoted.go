package csr

import (
	"fmt"
	"strconv"
	"strings"
)

// mostText bounds a stranger's text in what we print.
const mostText = 80

// short quotes text that a stranger wrote.
func short(text string) string {
	if len(text) > mostText {
		text = text[:mostText] + "…"
	}
	return strconv.QuoteToASCII(text)
}

func list(all []string) string {
	const most = 4
	var quoted []string
	for _, text := range all[:min(len(all), most)] {
		quoted = append(quoted, short(text))
	}
	if len(all) > most {
		quoted = append(quoted, fmt.Sprintf("and %d more", len(all)-most))
	}
	if len(all) == 0 {
		return "none"
	}
	return strings.Join(quoted, ", ")
}
