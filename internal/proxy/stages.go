package proxy

import (
	"context"
	"net/netip"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/boot"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/proxy/hellos"
	"github.com/cldmnky/oooi/internal/proxy/intent"
	"github.com/cldmnky/oooi/internal/stages"
)

// ofBackend are the stages of a worker's boot, by the backend of an Infra's ProxyServer that each leads to.
var ofBackend = map[string]v1alpha1.StageName{
	"":                  v1alpha1.StageUnmatchedHello,
	intent.Ignition:     v1alpha1.StageIgnitionHello,
	intent.API:          v1alpha1.StageAPIHello,
	intent.Konnectivity: v1alpha1.StageKonnectivityHello,
}

// notes has it written into a worker's lease what it said to the proxy.
func (p *Proxy) notes(h hellos.Hello) {
	name, noted := ofBackend[h.Backend]
	if !noted || p.isProxy(h.Source) {
		return
	}
	s := v1alpha1.Stage{Name: name, FirstTime: metav1.NewMicroTime(h.At), ServerName: stages.Name(h.ServerName), ReceivedBytes: int64(h.Received)}
	switch {
	case h.Backend == "": // there is no target
		p.unmatched.saw(s.ServerName, h.Port, h.At)
	case h.Accepted:
		s.Result = v1alpha1.StageForwarded
	default:
		s.Result = v1alpha1.StageNoTarget
	}
	p.stages.Saw(h.Source, s)
}

// isProxy says whether an address is an instance's or captured: from there come probes, and no worker's hello.
func (p *Proxy) isProxy(source netip.Addr) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.server == nil {
		return false
	}
	network, address := p.server.Spec.NetworkConfig, v1alpha1.IPAddress(source.String())
	return slices.Contains(network.ServerIPs(), address) || slices.ContainsFunc(network.CapturedAddresses, func(c v1alpha1.CapturedAddress) bool { return c.IP == address })
}

// followLeases waits until it is known whose leases they are. A ProxyServer without an Infra has none.
func (p *Proxy) followLeases(ctx context.Context) error {
	select {
	case <-ctx.Done():
	case infra := <-p.infra:
		boot.WillCount(p.Namespace+"/"+infra, boot.LeaseToIgnition, boot.LeaseToKonnectivity)
		p.stages.Follow(ctx, infra)
	}
	return nil
}

// belongs tells followLeases, once, of which Infra a ProxyServer is.
func (p *Proxy) belongs(server *v1alpha1.ProxyServer) {
	infra := server.Labels[names.LabelInfra]
	if p.watch == nil || infra == "" {
		return
	}
	p.once.Do(func() { p.infra <- infra })
}
