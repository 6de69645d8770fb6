package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/cldmnky/oooi/internal/vlan"
)

// CheckForwarding is the readiness check that GuardForwarding sets.
const CheckForwarding = "forwarding"

// GuardForwarding checks every second whether the VLAN device forwards: a dual-homed pod must never route. If the attachment turns
// forwarding off (tuned), a device that forwards makes the pod unready; otherwise it is only logged, since nobody could prevent it
// (dns-proxy-rules.md#forwarding).
func GuardForwarding(ctx context.Context, device string, tuned bool, ready *Readiness, log *slog.Logger) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	reported := false
	for {
		forwards, err := vlan.Forwarding(device)
		if forwards && !reported {
			log.Warn("the VLAN device forwards packets", "device", device, "tuned", tuned)
		}
		reported = forwards
		ready.Set(CheckForwarding, forwardingProblem(device, tuned, forwards, err))
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func forwardingProblem(device string, tuned, forwards bool, err error) error {
	if err != nil {
		return err
	}
	if tuned && forwards {
		return fmt.Errorf("device %s forwards packets although its attachment switches that off: "+
			"set net.ipv4.conf.%s.forwarding to 0, or delete the pod", device, device)
	}
	return nil
}
