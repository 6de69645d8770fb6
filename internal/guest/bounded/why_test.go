package bounded

import (
	"context"
	"fmt"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cldmnky/oooi/internal/guest/kubeconfig"
)

func TestABoundIsToldByItsOwnWords(t *testing.T) {
	g := NewWithT(t)
	for err, says := range map[error]string{
		errSlow:    "an object of more than 64 KiB did not arrive in 30s",
		errLarge:   "an object is larger than 10 MiB",
		errPages:   "a list has more than 4000 pages",
		errShare:   "there is more than its share of the 48 MiB that are kept of all hosted clusters",
		ErrTooMuch: "there is more than is kept of a hosted cluster: 5000 objects of a kind, 8 MiB",
		fmt.Errorf("%w: %w", errEndless, context.DeadlineExceeded): "a list did not end in 10m0s",
	} {
		g.Expect(Why(fmt.Errorf("/api/v1/nodes: %w", err), kubeconfig.Access{})).To(Equal(says))
	}
}
