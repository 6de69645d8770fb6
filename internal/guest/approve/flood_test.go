package approve

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cldmnky/oooi/internal/csr"
)

// Whoever holds the token in a worker's Ignition can flood the queue; a Node's own CSR, and a new DPU's, must still find room.
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

// A dropped key may be the DPU's own, until so few CSRs are left that all can be listed again.
func TestAKeyThatIsDroppedIsKnownToBeHidden(t *testing.T) {
	g, q, now := NewWithT(t), newQueue(), time.Date(2026, 11, 25, 3, 0, 0, 0, time.UTC)
	q.isDPU = func(host string) bool { return host == "dpu-1" }
	for _, host := range []string{"dpu-1", "stranger"} {
		for i := range mostOfHost + 1 {
			g.Expect(q.hidden).To(BeEmpty())
			q.add(csr.Asked{Name: fmt.Sprintf("%s-%d", host, i), Host: host, Kind: csr.Bootstrap, Key: csr.Key{byte(i)}, Created: now.Add(time.Duration(i) * time.Second)}, now)
		}
		g.Expect(q.hidden[host]).To(Equal(host == "dpu-1"), "of what can never be let in nothing is hidden")
		clear(q.hidden)
	}
	q.hidden["dpu-1"] = true
	for i := 1; i <= mostOfHost; i++ {
		g.Expect(q.comesToLight("dpu-1")).To(Equal(mostOfHost-i+1 < fewOfHost))
		q.remove(fmt.Sprintf("dpu-1-%d", i))
	}
	g.Expect(q.comesToLight("dpu-1")).To(BeTrue())
}
