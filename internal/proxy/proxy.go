// Package proxy is the sidecar of one Envoy: it turns its ProxyServer, and the endpoints of the Services named there, into an intent, configures
// Envoy over xDS, and reports the result.
package proxy

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"reflect"
	"sync"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/daemon"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/proxy/ads"
	"github.com/cldmnky/oooi/internal/proxy/bootstrap"
	"github.com/cldmnky/oooi/internal/proxy/endpoints"
	"github.com/cldmnky/oooi/internal/proxy/hellos"
	"github.com/cldmnky/oooi/internal/proxy/intent"
	"github.com/cldmnky/oooi/internal/proxy/translate"
	"github.com/cldmnky/oooi/internal/stages"
	"github.com/cldmnky/oooi/internal/vlan"
)

// Options of the sidecar.
type Options struct {
	daemon.Flags
	// Name of the ProxyServer.
	Name string
	// Instance selects the address to serve: 0 is serverIP, 1 the first of additionalServerIPs.
	Instance int
	// XDSSocket is where Envoy gets its configuration; its administration socket is beside it.
	XDSSocket string
	// XDSPort is a loopback port where other clients than Envoy get the same; 0: none.
	XDSPort int
	// Connections that Envoy may have.
	Connections int64
	Log         *slog.Logger
}

// Proxy is the sidecar.
type Proxy struct {
	Options
	ads     *ads.Server
	ready   *daemon.Readiness
	status  *daemon.Status
	envoy   envoy
	watch   *endpoints.Watch // nil in file mode
	stages  *stages.Book
	probes  *probes
	infra   chan string // whose leases to follow, once
	once    sync.Once
	started chan struct{} // closed when Envoy has been told its first intent
	refusal chan struct{} // signals that refused changed

	mu       sync.Mutex
	seen     *v1alpha1.ProxyServer // the newest
	server   *v1alpha1.ProxyServer // the newest that was understood
	refused  error                 // why a newer one was not
	told     intent.Intent         // what Envoy is told
	kept     intent.Intent         // what is kept for a restart
	anything bool                  // whether it was told anything yet

	rejection string // Envoy's rejection that was logged last
	said      *said  // the backends in the last status

	unmatched *unmatched
}

// Run serves until the context ends. Without a cluster (file mode) c is nil.
func Run(ctx context.Context, o Options, c client.WithWatch) error { return newProxy(o, c).run(ctx, c) }

func newProxy(o Options, c client.WithWatch) *Proxy {
	p := &Proxy{
		Options: o,
		ads:     ads.New(),
		ready:   daemon.NewReadiness(checkConfiguration, checkListeners, checkEnvoy, daemon.CheckForwarding),
		status:  daemon.NewStatus(c, names.InstanceFieldOwner(names.ProxyFieldOwner, o.Instance), o.Log),
		envoy:   newEnvoy(bootstrap.AdminSocket(o.XDSSocket)),
		started: make(chan struct{}),
		refusal: make(chan struct{}, 1),
		stages:  stages.New(c, o.Namespace, o.Log),
		probes:  newProbes(),
		said:    newSaid(),
		infra:   make(chan string, 1),

		unmatched: newUnmatched(),
	}
	if c != nil {
		p.watch = endpoints.NewWatch(c)
	}
	return p
}

func (p *Proxy) run(ctx context.Context, c client.WithWatch) error {
	if err := p.MakeStateDir(); err != nil {
		return err
	}
	p.resume(ctx)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return p.follow(ctx, c) })
	group.Go(func() error { return p.serveEnvoy(ctx) })
	group.Go(func() error { return p.ads.Advance(ctx) })
	group.Go(func() error { return p.followEndpoints(ctx) })
	group.Go(func() error { return p.followLeases(ctx) })
	group.Go(func() error { return p.stages.Run(ctx) })
	group.Go(func() error { return p.report(ctx) })
	group.Go(func() error { return p.probe(ctx) })
	group.Go(func() error { return p.guard(ctx) })
	group.Go(func() error { return p.status.Run(ctx) })
	group.Go(func() error { return p.Serve(ctx, p.ready, p.metrics()) })
	return group.Wait()
}

// resume first gives Envoy the intent that it acknowledged last: while the API server is away, the proxy serves as before.
func (p *Proxy) resume(ctx context.Context) {
	in, found, err := kept(p.StateDir)
	if err == nil && found {
		err = p.tell(ctx, in)
	}
	if err != nil {
		p.Log.Error("the last acknowledged configuration is not restored", "error", err)
	}
}

func (p *Proxy) follow(ctx context.Context, c client.WithWatch) error {
	follower := daemon.Follower[*v1alpha1.ProxyServer]{
		New:      func() *v1alpha1.ProxyServer { return &v1alpha1.ProxyServer{} },
		Apply:    p.apply,
		Rejected: p.refuse,
		Serving:  p.anything,
		Log:      p.Log,
	}
	if c == nil {
		return follower.File(ctx, p.ConfigFile)
	}
	return follower.Object(ctx, c, &v1alpha1.ProxyServerList{}, client.ObjectKey{Namespace: p.Namespace, Name: p.Name})
}

// apply configures Envoy with a ProxyServer, unless something is wrong with it.
func (p *Proxy) apply(ctx context.Context, server *v1alpha1.ProxyServer) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen = server
	p.belongs(server)
	in, err := p.understand(server)
	if err != nil {
		return err
	}
	if at, turned := p.told.ProtocolTurned(in); turned {
		return fmt.Errorf("port %s cannot turn between TCP and TLS while it is served: Envoy would drain it; remove the port first", at)
	}
	p.server = server
	if p.watch != nil {
		p.watch.Need(ctx, in.Services())
	}
	return p.tell(ctx, in)
}

func (p *Proxy) refuse(err error) {
	p.mu.Lock()
	p.refused = err
	p.mu.Unlock()
	select {
	case p.refusal <- struct{}{}:
	default: // one signal is pending already
	}
}

func (p *Proxy) understand(server *v1alpha1.ProxyServer) (intent.Intent, error) {
	here, err := look(p.PodIP, p.Instance)
	if err != nil {
		return intent.Intent{}, err
	}
	in, findings := intent.Of(server.Spec, here, p.targets)
	return in, intent.Sentence(findings)
}

// targets returns those that the watch knows; if a namespace is not read yet, those that Envoy was told before.
func (p *Proxy) targets(s intent.Service) []netip.AddrPort {
	if p.watch == nil {
		return nil
	}
	found, known, err := p.watch.Targets(s)
	if err != nil {
		p.Log.Debug("no targets", "service", s.String(), "reason", err)
	}
	if known {
		return found
	}
	for _, b := range p.told.Backends {
		if b.Service != nil && *b.Service == s {
			return b.Targets
		}
	}
	return nil
}

// tell gives Envoy an intent, if it differs from the last one.
func (p *Proxy) tell(ctx context.Context, in intent.Intent) error {
	if p.anything && reflect.DeepEqual(in, p.told) {
		return nil
	}
	if err := p.ads.Set(ctx, translate.Intent(in, p.Connections)); err != nil {
		return err
	}
	p.told = in
	if !p.anything {
		p.anything = true
		close(p.started)
	}
	return nil
}

// serveEnvoy listens once there is an intent for Envoy.
func (p *Proxy) serveEnvoy(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-p.started:
	}
	group, ctx := errgroup.WithContext(ctx)
	socket, err := ads.Listen(p.XDSSocket)
	if err != nil {
		return err
	}
	group.Go(func() error {
		return p.ads.Serve(ctx, socket, func(r grpc.ServiceRegistrar) { hellos.Register(r, p.notes) })
	})
	if p.XDSPort != 0 {
		port, err := vlan.ListenTCP(ctx, netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(p.XDSPort)))
		if err != nil {
			return err
		}
		group.Go(func() error { return p.ads.Show(ctx, port, p.looksOn) })
	}
	return group.Wait()
}

func (p *Proxy) looksOn() {
	p.Log.Info("a client of --xds-port reads the configuration; what it acknowledges or refuses counts for nothing")
}

// guard watches forwarding on the VLAN device, which is known from the first intent.
func (p *Proxy) guard(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-p.started:
		return daemon.GuardForwarding(ctx, p.vlanDevice(), daemon.Tuned(), p.ready, p.Log)
	}
}

func (p *Proxy) vlanDevice() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.told.Listeners {
		if !l.OnPods {
			return l.Device
		}
	}
	return ""
}

func (p *Proxy) followEndpoints(ctx context.Context) error {
	if p.watch == nil {
		return nil
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-p.watch.Changed():
			if err := p.refresh(ctx); err != nil {
				p.Log.Error("changed endpoints are not served", "error", err)
			}
		}
	}
}

func (p *Proxy) refresh(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.server == nil {
		return nil
	}
	in, err := p.understand(p.server)
	if err != nil {
		return err
	}
	return p.tell(ctx, in)
}
