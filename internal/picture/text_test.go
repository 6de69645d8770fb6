package picture_test

import (
	"strings"
	"testing"
	"unicode"

	. "github.com/onsi/gomega"

	"github.com/cldmnky/oooi/internal/diagnose"
	"github.com/cldmnky/oooi/internal/picture"
	"github.com/cldmnky/oooi/internal/testkit/golden"
)

// scenes are drawn in golden files.
var scenes = map[string]diagnose.Facts{"healthy": healthy(3), "broken": broken(), "empty": empty(), "hostile": hostile()}

func text(t *testing.T, f diagnose.Facts) string {
	t.Helper()
	var out strings.Builder
	NewWithT(t).Expect(picture.Text(&out, picture.Of(f))).To(Succeed())
	return out.String()
}

func TestATerminalShowsTheInfra(t *testing.T) {
	for name, f := range scenes {
		t.Run(name, func(t *testing.T) { golden.Compare(t, "testdata/"+name+".txt", text(t, f)) })
	}
}

func TestATerminalGetsOnlyPrintableText(t *testing.T) {
	for _, r := range text(t, hostile()) {
		if r != '\n' && !unicode.IsPrint(r) {
			t.Errorf("%q is written to the terminal", r)
		}
	}
}

// A pool of which DHCP has not said how large it is, is not one without an address.
func TestAPoolIsNotEmptyBeforeItIsReported(t *testing.T) {
	f := healthy(3)
	f.DHCP.Is.Status.PoolSize = 0
	NewWithT(t).Expect(text(t, f)).To(ContainSubstring(": 3 addresses leased; DHCP has not reported of how many\n"))
}

func TestNobodyIsNoneBeforeHeIsRead(t *testing.T) {
	g, p := NewWithT(t), picture.Page{Unread: []string{"events: you may not list events"}}
	g.Expect(p.Counted()).To(Equal("none"))
	p.Unread = append(p.Unread, "leases: you may not list dhcpleases")
	g.Expect(p.Counted()).To(Equal("none that was read"))
}

func TestEachWorkerHasARow(t *testing.T) {
	f := healthy(500)
	f.Leases.Is[0].Spec.ExpirationTime = "2026-11-01T00:00:00Z" // it has renewed since, which wrote nothing
	g, p := NewWithT(t), picture.Of(f)
	g.Expect(p.Workers).To(HaveLen(500))
	g.Expect(p.Count).To(Equal(map[picture.State]int{picture.Joined: 500}))
	g.Expect(p.Pool.Count[picture.Leased]).To(Equal(500))
	ends := 0
	for _, s := range p.Pool.Ends {
		ends += s.Count
	}
	g.Expect(ends).To(Equal(500))
	g.Expect(strings.Count(text(t, healthy(500)), "\n")).To(BeNumerically(">", 500))
}
