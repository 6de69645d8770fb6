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
