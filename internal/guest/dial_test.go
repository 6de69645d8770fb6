package guest_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cldmnky/oooi/internal/guest/approve"
	"github.com/cldmnky/oooi/internal/guest/appsingress"
	"github.com/cldmnky/oooi/internal/guest/bounded"
	"github.com/cldmnky/oooi/internal/unroutable"
)

// Whoever owns a control-plane namespace decides what the name of its Service resolves to.
func TestAHostedClustersNameThatLeadsHereIsNotDialled(t *testing.T) {
	for _, dial := range []bounded.Dial{appsingress.NewClusters(nil, nil).Dial, approve.NewApprovals(nil, nil, nil, nil).Dial} {
		for _, address := range []string{"localhost:6443", "127.0.0.1:6443", "169.254.169.254:6443"} {
			_, err := dial(t.Context(), "tcp", address)
			NewWithT(t).Expect(err).To(MatchError(unroutable.ErrUnroutable), address)
		}
	}
}
