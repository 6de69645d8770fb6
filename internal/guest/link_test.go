package guest

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/cldmnky/oooi/internal/local"
)

// Whoever owns a control plane's namespace says where the name of its Service leads.
func TestAHostedClustersNameThatLeadsHereIsNotDialled(t *testing.T) {
	for _, dial := range []Dial{NewClusters(nil, nil).Dial, NewApprovals(nil, nil, nil, nil).Dial} {
		for _, address := range []string{"localhost:6443", "127.0.0.1:6443", "169.254.169.254:6443"} {
			_, err := dial(t.Context(), "tcp", address)
			NewWithT(t).Expect(err).To(MatchError(local.ErrHere), address)
		}
	}
}

// Whoever writes a kubeconfig many times a second would have it parsed as often.
func TestAKubeconfigIsLookedAtSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithTimeout(t.Context(), 10*lookEvery-1)
		defer stop()
		looks := 0
		l := &link{seldom: lookEvery, leave: func() {}, trouble: func(string, string) { looks++ }}
		for i := 0; ctx.Err() == nil; i++ {
			l.use(ctx, &corev1.Secret{Data: map[string][]byte{KubeconfigKey: fmt.Append(nil, i)}})
			time.Sleep(time.Millisecond)
		}
		NewWithT(t).Expect(looks).To(BeNumerically("~", 10, 1))
	})
}

func TestKubeconfigsAreLookedAtInTurn(t *testing.T) {
	g := NewWithT(t)
	var looked atomic.Bool
	l := &link{leave: func() {}, trouble: func(string, string) { looked.Store(true) }}
	sanitising <- struct{}{}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		l.use(ctx, &corev1.Secret{})
		l.use(ctx, &corev1.Secret{Data: map[string][]byte{KubeconfigKey: []byte("none")}})
		close(ended)
	}()
	g.Consistently(looked.Load, 100*time.Millisecond).Should(BeFalse(), "another has the turn")
	stop()
	g.Eventually(ended).Should(BeClosed(), "who is stopped waits no longer")
	<-sanitising
}
