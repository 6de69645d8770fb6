package controller

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cldmnky/oooi/internal/observe"
)

func TestOneInfrasPodsAreReplacedAtATime(t *testing.T) {
	g := NewWithT(t)
	served, now := map[string]bool{}, time.Unix(1e9, 0)
	turns := &turnstile{served: func(_ context.Context, w observe.Workload) bool { return served[w.Name] }}
	takes := func(infra, workload string) bool {
		return turns.take(t.Context(), types.NamespacedName{Name: infra}, observe.Workload{NamespacedName: types.NamespacedName{Name: workload}}, now)
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
	now = now.Add(longestTurn)
	g.Expect(takes("c", "c-dns")).To(BeTrue(), "b does not become Ready")
}
