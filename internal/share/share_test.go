package share

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestOneSourceHasItsPartAndNobodyIsRemembered(t *testing.T) {
	g, p := NewWithT(t), New[string](3, 2)
	g.Expect([]bool{p.Enter("a"), p.Enter("a"), p.Enter("a")}).To(Equal([]bool{true, true, false}), "its part")
	g.Expect([]bool{p.Enter("b"), p.Enter("b")}).To(Equal([]bool{true, false}), "all that there are")
	g.Expect(p.Taken()).To(Equal(3))
	p.Leave("a")
	g.Expect(p.Enter("b")).To(BeTrue())
	for _, source := range []string{"a", "b", "b"} {
		p.Leave(source)
	}
	g.Expect(p.Taken()).To(BeZero())
	g.Expect(p.of).To(BeEmpty())
}
