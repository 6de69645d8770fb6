package visits

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/cldmnky/oooi/internal/guest/kubeconfig"
)

// Somebody may write a kubeconfig many times a second.
func TestAKubeconfigIsLookedAtSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithTimeout(t.Context(), 10*LookEvery-1)
		defer stop()
		looks := 0
		l := &Link{Seldom: LookEvery, leave: func() {}, Trouble: func(string, string) { looks++ }}
		for i := 0; ctx.Err() == nil; i++ {
			l.use(ctx, &corev1.Secret{Data: map[string][]byte{kubeconfig.SecretKey: fmt.Append(nil, i)}})
			time.Sleep(time.Millisecond)
		}
		NewWithT(t).Expect(looks).To(BeNumerically("~", 10, 1))
	})
}
