package checkcli

import (
	"context"
	"net"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// A pod that says nothing leaves time for the next.
func TestASilentPodLeavesTimeForTheNext(t *testing.T) {
	g := NewWithT(t)
	silent, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())
	defer silent.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, err = (&Reader{config: &rest.Config{Host: "http://" + silent.Addr().String()}}).shownBy(ctx, types.NamespacedName{Namespace: "oooi-system", Name: "pod"}, 9443)
	g.Expect(err).To(MatchError(context.DeadlineExceeded))
	g.Expect(ctx.Err()).NotTo(HaveOccurred())
}

// An API server, or a kubelet behind it, that accepts and says nothing is not waited for.
func TestAForwardEndsWithItsTime(t *testing.T) {
	g := NewWithT(t)
	silent, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())
	defer silent.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, _, err := (&Reader{config: &rest.Config{Host: "http://" + silent.Addr().String()}}).forward(ctx, types.NamespacedName{Namespace: "oooi-system", Name: "pod"}, 9443)
		ended <- err
	}()
	g.Eventually(ended).WithTimeout(5 * time.Second).Should(Receive(MatchError(context.DeadlineExceeded)))
}
