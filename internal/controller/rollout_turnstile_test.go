package controller

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cldmnky/oooi/internal/observe"
)

func TestOneInfrasPodsAreReplacedAtATime(t *testing.T) {
	g := NewWithT(t)
	served := map[string]bool{}
	turns := &turnstile{served: func(_ context.Context, w observe.Workload) bool { return served[w.Name] }}
	takes := func(infra, workload string) bool {
		return turns.take(t.Context(), types.NamespacedName{Name: infra}, observe.Workload{NamespacedName: types.NamespacedName{Name: workload}})
	}
	g.Expect(takes("a", "a-dns")).To(BeTrue(), "nobody's are")
	g.Expect(takes("a", "a-proxy")).To(BeTrue(), "it is this Infra's turn")
	served["a-dns"], served["a-proxy"] = true, true
	g.Expect(takes("b", "b-dns")).To(BeFalse(), "nothing is written yet: what serves is from before")
	turns.applied()
	turns.applied()
	served["a-proxy"] = false
	g.Expect(takes("b", "b-dns")).To(BeFalse(), "one of a's does not serve")
	served["a-proxy"] = true
	g.Expect(takes("b", "b-dns")).To(BeTrue())
	turns.applied()
	g.Expect(takes("c", "c-dns")).To(BeFalse(), "b's pods do not come back")
	turns.passes(types.NamespacedName{Name: "a"})
	g.Expect(takes("c", "c-dns")).To(BeFalse(), "a is not waited for")
	turns.passes(types.NamespacedName{Name: "b"})
	g.Expect(takes("c", "c-dns")).To(BeTrue(), "b is paused")
}
