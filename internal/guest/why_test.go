package guest

import (
	"context"
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
)

func TestABoundIsToldByItsOwnWords(t *testing.T) {
	g := NewWithT(t)
	for err, says := range map[error]string{
		errSlow:    "an object of more than 64 KiB did not arrive in 30s",
		errLarge:   "an object is larger than 10 MiB",
		errPages:   "a list has more than 4000 pages",
		errShare:   "there is more than its share of the 48 MiB that are kept of all hosted clusters",
		errTooMuch: "there is more than is kept of a hosted cluster: 5000 objects of a kind, 8 MiB",
		fmt.Errorf("%w: %w", errEndless, context.DeadlineExceeded): "a list did not end in 10m0s",
	} {
		g.Expect(why(fmt.Errorf("/api/v1/nodes: %w", err), Access{})).To(Equal(says))
	}
}
