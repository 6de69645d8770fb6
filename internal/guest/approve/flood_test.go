package approve

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cldmnky/oooi/internal/csr"
)

// Whoever holds the token in a worker's Ignition floods the queue; a Node's own request, and a new DPU's, must still find room.
func TestAFloodOfTheTokensHolderCrowdsOutNoNodeAndNoDPU(t *testing.T) {
	g, q, now := NewWithT(t), newQueue(), time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	q.isDPU = func(host string) bool { return host == "dpu-1" || host == "dpu-2" }
	q.add(csr.Asked{Name: "serve", Host: "dpu-1", Kind: csr.Serving, Created: now}, now)
	for i := range mostOfHost + 10 {
		q.add(csr.Asked{Name: fmt.Sprintf("boot-%d", i), Host: "dpu-1", Kind: csr.Bootstrap, Created: now.Add(time.Second)}, now)
	}
	g.Expect(q.names).To(And(HaveKey("serve"), HaveLen(mostOfHost+1)))
	for i := range mostWaiting {
		q.add(csr.Asked{Name: fmt.Sprintf("strange-%d", i), Host: fmt.Sprintf("stranger-%d", i), Kind: csr.Bootstrap}, now)
	}
	g.Expect(q.len()).To(Equal(mostWaiting))
	q.add(csr.Asked{Name: "good", Host: "dpu-2", Kind: csr.Bootstrap}, now)
	g.Expect(q.names).To(HaveKey("good"))
}
