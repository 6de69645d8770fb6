package kubeconfig

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestKubeconfigsAreLookedAtInTurn(t *testing.T) {
	g := NewWithT(t)
	sanitising <- struct{}{}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, _, err := SanitiseInTurn(ctx, []byte("none"))
		ended <- err
	}()
	g.Consistently(ended, 100*time.Millisecond).ShouldNot(Receive(), "another has the turn")
	stop()
	g.Eventually(ended).Should(Receive(MatchError(context.Canceled)), "who is stopped waits no longer")
	<-sanitising
	_, refusal, err := SanitiseInTurn(t.Context(), []byte("none"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(refusal).NotTo(BeNil())
}
