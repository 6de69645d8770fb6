package dhcp

import (
	"context"
	"errors"
	"net/netip"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"github.com/cldmnky/oooi/internal/daemon"
	"github.com/cldmnky/oooi/internal/dhcp/link"
	"github.com/cldmnky/oooi/internal/dhcp/wire"
	"github.com/cldmnky/oooi/internal/valid"
)

// probes ask each instance at its address on the VLAN, this one included, by an INFORM: nothing is promised or written for its answer, so one
// that is cut off from the API server answers, too.
func (i *instance) probes() (all []daemon.Probe) {
	i.mu.Lock()
	object := i.object
	i.mu.Unlock()
	if object == nil {
		return nil
	}
	from := i.server.config.Load().Server
	for _, ip := range object.Spec.NetworkConfig.ServerIPs() {
		at, _ := valid.Address(string(ip)) // served, so understood
		all = append(all, daemon.Probe{Protocol: "dhcp", At: at, Ask: func(ctx context.Context) error { return informed(ctx, from, at) }})
	}
	return all
}

// informed says what is wrong with a server's answer to an INFORM.
func informed(ctx context.Context, from, server netip.Addr) error {
	conn, err := link.Ask(ctx, from, server)
	if err != nil {
		return err
	}
	defer conn.Close()
	xid, err := dhcpv4.GenerateTransactionID()
	if err != nil {
		return err
	}
	if deadline, has := ctx.Deadline(); has {
		err = conn.SetDeadline(deadline)
	}
	if err == nil {
		_, err = conn.Write(wire.ProbeOf(from, xid))
	}
	if err != nil {
		return err
	}
	for answer := make([]byte, dhcpv4.MaxMessageSize); ; {
		n, err := conn.Read(answer)
		if err != nil {
			return err
		}
		if err := wire.JudgeProbed(answer[:n], xid, server); !errors.Is(err, wire.ErrOther) {
			return err
		}
	}
}
