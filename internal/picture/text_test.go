package picture_test

import (
	"cmp"
	"strings"
	"testing"
	"unicode"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"

	"github.com/cldmnky/oooi/api/v1alpha1"
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

func TestEachWorkerHasARow(t *testing.T) {
	g, p := NewWithT(t), picture.Of(healthy(500))
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

// What is printed to be pasted is an Infra's YAML. Of a name that no endpoint can have there is none.
func TestANameIsAdmittedByWhatIsPrinted(t *testing.T) {
	for _, u := range []picture.Unmatched{{Name: "registry.corp.example.com", Port: 5000}, {Name: strings.Repeat("a.", 19) + "example.com"}, {Name: "1.5"}, {Name: "true"}, {Name: "null"}} {
		g, infra := NewWithT(t), v1alpha1.Infra{}
		g.Expect(yaml.UnmarshalStrict([]byte(u.Admits()), &infra)).To(Succeed())
		g.Expect(infra.Spec.ExtraEndpoints).To(HaveLen(1))
		e := infra.Spec.ExtraEndpoints[0]
		g.Expect(e.Hostnames).To(ConsistOf(v1alpha1.DNSNameOrWildcard(u.Name)))
		g.Expect(e.Port).To(BeEquivalentTo(cmp.Or(u.Port, 443)))
		g.Expect(e.Protocol).To(Equal(v1alpha1.ProtocolTLS))
		g.Expect(e.Name).To(MatchRegexp("^[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?$"))
		g.Expect(string(e.Target.Service)).To(Equal("NAME"), "the schema refuses it until somebody says which")
	}
	for _, name := range []string{"", "_x.example.com", "*", "a: b", "a\nb", "a]"} {
		NewWithT(t).Expect(picture.Unmatched{Name: name, Port: 443}.Admits()).To(BeEmpty(), "%q", name)
	}
}
