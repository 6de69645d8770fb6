package diffcli_test

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"
	"unicode/utf16"

	. "github.com/onsi/gomega"

	"github.com/cldmnky/oooi/internal/diffcli"
	"github.com/cldmnky/oooi/internal/render"
)

// To the end of a script, nothing that changes and nothing that was read look the same.
func TestNothingToApplyIsNotThatNothingChanges(t *testing.T) {
	for _, nothing := range []string{"", "# a comment\n---\n\n---\n# another\n", "apiVersion: v1\nkind: List\nitems: []\n"} {
		_, err := diffcli.Manifests(strings.NewReader(nothing), []string{"-"})
		NewWithT(t).Expect(err).To(MatchError("-: there is no object in it: it is empty, or has comments alone"), nothing)
	}
}

// A parser's error names Go's types, and nothing that a user can look for.
func TestWhatIsNoYAMLIsToldInPlainWords(t *testing.T) {
	for text, says := range map[string]string{
		"kind: A\nname: {{ .Values.name }}\n": "document 1: it is no YAML: line 2 has {{: if this is a template, render it first, e.g. with helm template (a name of a field is an object, and has to be text)",
		"{{- if .Values.a }}\nkind: A\n":      "document 1: it is no YAML: line 1 has {{: if this is a template, render it first, e.g. with helm template (did not find expected node content)",
		"? {a: b}\n: c\n":                     "document 1: it is no YAML: a name of a field is an object, and has to be text",
		"# one\n---\na: {{ b }}\n":            "document 2: it is no YAML: line 3 has {{: if this is a template, render it first, e.g. with helm template (a name of a field is an object, and has to be text)",
		"# one\n---\na:\n\t- b\n":             "document 2: it is no YAML: line 4: found character that cannot start any token",
		"kind: A\nkind: B\n":                  `document 1: it is no YAML: line 2: key "kind" is there already`,
		"# a\n---\nb: 1\nc:\n\t- {{ x }}\n":   "document 2: it is no YAML: line 5 has {{: if this is a template, render it first, e.g. with helm template (line 5: found character that cannot start any token)",
		"a: \x1b[1m\n":                        "document 1: it has a control character, as one that colours a terminal is, and YAML allows none: remove it",
		"\x7fELF\x00":                         "document 1: it is no text",
		"- a\n":                               "document 1 is no Kubernetes object: it must start with apiVersion and kind",
		"a\n":                                 "document 1 is no Kubernetes object: it must start with apiVersion and kind",
	} {
		_, err := diffcli.Manifests(strings.NewReader(text), []string{"-"})
		NewWithT(t).Expect(err).To(MatchError("-: "+says), text)
		if (strings.Contains(says, "it is ") || strings.Contains(says, "it has ")) && !strings.Contains(text, "kind: B") { // a key that is there twice is the API server's to refuse
			_, _, err = render.Files(strings.NewReader(text), []string{"-"})
			NewWithT(t).Expect(err).To(MatchError("-: "+says), text)
		}
	}
}

// PowerShell redirects in UTF-16, which kubectl apply reads.
func TestAllDocumentsOfUTF16AreRead(t *testing.T) {
	var utf []byte
	for _, unit := range utf16.Encode([]rune("\ufeffapiVersion: v1\nkind: Service\nmetadata: {name: a}\n---\napiVersion: v1\nkind: Service\nmetadata: {name: b}\n")) {
		utf = binary.LittleEndian.AppendUint16(utf, unit)
	}
	all, err := diffcli.Manifests(bytes.NewReader(utf), []string{"-"})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(all).To(HaveLen(2))
}
