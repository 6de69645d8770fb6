package guest

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cldmnky/oooi/internal/csr"
)

func TestAQueueIsBounded(t *testing.T) {
	g, q, now := NewWithT(t), newQueue(), time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for i := range mostOfHost + 10 {
		q.add(csr.Asked{Name: fmt.Sprintf("own-%d", i), Host: "dpu-1", Created: now.Add(time.Duration(i) * time.Second)}, now)
	}
	g.Expect(q.len()).To(Equal(mostOfHost))
	g.Expect(q.names).NotTo(HaveKey("own-9"), "the oldest are dropped")
	g.Expect(q.names).To(HaveKey("own-59"))
	for i := range mostWaiting {
		q.add(csr.Asked{Name: fmt.Sprintf("strange-%d", i), Host: fmt.Sprintf("stranger-%d", i)}, now)
	}
	g.Expect(q.len()).To(Equal(mostWaiting))
	q.remove("own-59")
	g.Expect(q.hosts["dpu-1"]).To(HaveLen(mostOfHost - 1))
	for name := range q.names {
		q.remove(name)
	}
	g.Expect(q.hosts).To(BeEmpty())
}
