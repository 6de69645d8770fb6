package table_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cldmnky/oooi/test/bench/internal/table"
)

func TestWhatIsNotAsWantedFails(t *testing.T) {
	g, good, bad := NewWithT(t), table.New(), table.New()
	good.None("writes", 0)
	table.Below(good, "memory", table.MiB(199.9), 200)
	g.Expect(good.End()).To(Succeed())
	bad.Say("calls", 3)
	bad.None("writes", 1)
	table.Below(bad, "p99", time.Second, time.Second)
	g.Expect(bad.End()).To(MatchError("not as wanted: writes; p99"))
}

func TestAPercentileIsTheLeastThatSoManyDoNotExceed(t *testing.T) {
	g := NewWithT(t)
	of := func(all ...time.Duration) []time.Duration {
		return []time.Duration{table.Percentile(all, 50), table.Percentile(all, 99), table.Percentile(all, 100)}
	}
	g.Expect(of()).To(Equal([]time.Duration{0, 0, 0}))
	g.Expect(of(7)).To(Equal([]time.Duration{7, 7, 7}))
	g.Expect(of(4, 1, 3, 2)).To(Equal([]time.Duration{2, 4, 4}))
	var many []time.Duration
	for n := range 200 {
		many = append(many, time.Duration(200-n))
	}
	g.Expect(of(many...)).To(Equal([]time.Duration{100, 198, 200}))
}
