package diffcli_test

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"
	"unicode/utf16"

	. "github.com/onsi/gomega"

	"github.com/cldmnky/oooi/internal/diffcli"
)

// To the end of a script, nothing that changes and nothing that was read look the same.
func TestNothingToApplyIsNotThatNothingChanges(t *testing.T) {
	for _, nothing := range []string{"", "# a comment\n---\n\n---\n# another\n", "apiVersion: v1\nkind: List\nitems: []\n"} {
		_, err := diffcli.Manifests(strings.NewReader(nothing), []string{"-"})
		NewWithT(t).Expect(err).To(MatchError("-: there is no object in it: it is empty, or has comments alone"), nothing)
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
