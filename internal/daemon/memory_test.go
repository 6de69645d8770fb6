package daemon

import (
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"testing"

	. "github.com/onsi/gomega"
)

func TestGarbageIsCollectedBelowTheContainersLimit(t *testing.T) {
	g, file := NewWithT(t), filepath.Join(t.TempDir(), "memory.max")
	t.Cleanup(func() { debug.SetMemoryLimit(math.MaxInt64) })
	for _, c := range []struct {
		written, variable string
		limit             int64
	}{
		{"268435456\n", "", 241591903}, {"max\n", "", math.MaxInt64}, {"268435456\n", "off", math.MaxInt64},
	} {
		debug.SetMemoryLimit(math.MaxInt64)
		t.Setenv("GOMEMLIMIT", c.variable)
		g.Expect(os.WriteFile(file, []byte(c.written), 0o600)).To(Succeed())
		limitMemory(file)
		g.Expect(debug.SetMemoryLimit(-1)).To(BeNumerically("~", c.limit, 100), c.written)
	}
}
