package dhcp

import (
	"log/slog"
	"testing"

	. "github.com/onsi/gomega"
)

// A pod that served a second before its device was looked at would have been Ready while it routed.
func TestTheDaemonIsNotReadyBeforeItsDeviceWasSeenNotToForward(t *testing.T) {
	g := NewWithT(t)
	i := newInstance(Options{Log: slog.New(slog.DiscardHandler)}, nil)
	i.ready.Set(checkConfig, nil)
	i.ready.Set(checkLeases, nil)
	g.Expect(i.ready.Problem()).To(MatchError("forwarding: not yet checked"))
}
