package dns

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"

	mdns "github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/daemon"
	"github.com/cldmnky/oooi/internal/dns/records"
	"github.com/cldmnky/oooi/internal/names"
)

const dnsPort = 53

// Readiness checks of the daemon, beside daemon.CheckForwarding.
const (
	checkConfig = "config"
	checkVLAN   = "vlan"
	checkPods   = "pods"
)

// Daemon serves one DNSServer.
type Daemon struct {
	// Flags are the common ones; ConfigFile chooses file mode.
	Flags *daemon.Flags
	// Name of the DNSServer.
	Name string
	// PodIP is where the view of the pod network is served; the zero address serves none.
	PodIP netip.Addr
	// Kube is nil in file mode.
	Kube client.WithWatch
	Log  *slog.Logger

	port       uint16 // 53, but in tests
	resolvConf string // /etc/resolv.conf, but in tests

	newest     snapshots
	forwarding *forwarding
	ready      *daemon.Readiness
	status     *status
	leases     *leaseBook
	group      *errgroup.Group

	mu        sync.Mutex          // configuration and leases change from two goroutines
	server    *v1alpha1.DNSServer // what is served; nil before the first configuration
	mirroring bool                // the leases of its Infra
}

// Run serves until the context ends.
func (d *Daemon) Run(ctx context.Context) error {
	d.port, d.resolvConf = cmp.Or(d.port, dnsPort), cmp.Or(d.resolvConf, "/etc/resolv.conf")
	d.ready = daemon.NewReadiness(d.checks()...)
	d.status = newStatus(daemon.NewStatus(d.Kube, names.DNSFieldOwner, d.Log), d.ready)
	d.leases = newLeaseBook(d.Flags.StateDir, d.Log)
	d.forwarding = newForwarding()
	defer d.forwarding.close()
	d.group, ctx = errgroup.WithContext(ctx)
	d.group.Go(func() error { return d.Flags.Serve(ctx, d.ready, promhttp.Handler()) })
	d.group.Go(func() error { return d.status.writer.Run(ctx) })
	d.group.Go(func() error { return d.status.run(ctx) })
	d.group.Go(func() error { return d.leases.follow(ctx, d.publishLeases) })
	d.group.Go(func() error { return d.follow(ctx) })
	return d.group.Wait()
}

func (d *Daemon) checks() []string {
	checks := []string{checkConfig, checkVLAN, daemon.CheckForwarding}
	if d.PodIP.IsValid() {
		checks = append(checks, checkPods)
	}
	return checks
}

func (d *Daemon) follow(ctx context.Context) error {
	follower := daemon.Follower[*v1alpha1.DNSServer]{
		New:      func() *v1alpha1.DNSServer { return &v1alpha1.DNSServer{} },
		Apply:    d.configure,
		Rejected: d.judge,
		StateDir: d.Flags.StateDir,
		Log:      d.Log,
	}
	if d.Flags.ConfigFile != "" {
		return follower.File(ctx, d.Flags.ConfigFile)
	}
	return follower.Object(ctx, d.Kube, &v1alpha1.DNSServerList{}, client.ObjectKey{Namespace: d.Flags.Namespace, Name: d.Name})
}

// judge reports a verdict; the first configuration of all also decides readiness.
func (d *Daemon) judge(refusal error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.server == nil {
		d.ready.Set(checkConfig, refusal)
	}
	d.status.judge(refusal)
}

// configure takes an object into service, whole or not at all.
func (d *Daemon) configure(ctx context.Context, server *v1alpha1.DNSServer) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.status.consider(server)
	addr, err := d.address(server)
	if err == nil {
		err = d.publish(server)
	}
	if err == nil && d.server == nil {
		err = d.listen(ctx, addr)
	}
	if err != nil {
		return err
	}
	if d.server == nil || !equality.Semantic.DeepEqual(d.server.Spec, server.Spec) {
		d.Log.Info("configuration serves", "generation", server.Generation, "domain", server.Spec.HostedClusterDomain)
	}
	d.server = server
	d.ready.Set(checkConfig, nil)
	d.mirrorLeases(ctx)
	return nil
}

// address is the one to serve on the VLAN. It cannot change under a running daemon: the pod's network has the other one.
func (d *Daemon) address(server *v1alpha1.DNSServer) (netip.Addr, error) {
	field, value := "spec.networkConfig.serverIP", server.Spec.NetworkConfig.ServerIP
	addr, err := netip.ParseAddr(string(value))
	switch {
	case err != nil:
		return addr, fmt.Errorf("%s: %q is not an IP address such as 192.168.100.3", field, value)
	case addr == d.PodIP:
		return addr, fmt.Errorf("%s: %s is the pod's own address; each view needs one of its own", field, value)
	case d.server != nil && d.server.Spec.NetworkConfig.ServerIP != value:
		return addr, fmt.Errorf("%s: this daemon serves %s until it is restarted, not %s", field, d.server.Spec.NetworkConfig.ServerIP, value)
	}
	return addr, nil
}

// publish makes what an object and the leases say the answer to the next query.
func (d *Daemon) publish(server *v1alpha1.DNSServer) error {
	intent, err := intentOf(server, d.leases.leases())
	if err != nil {
		return err
	}
	if len(intent.Upstreams) == 0 {
		if intent.Upstreams, err = nodeResolvers(d.resolvConf); err != nil {
			return err
		}
	}
	if err := d.forwarding.use(intent.Upstreams, intent.CacheTTL); err != nil {
		return err
	}
	d.newest.Store(records.Build(intent))
	return nil
}

// mirrorLeases begins once the object says which Infra it belongs to; one that belongs to none has no leases.
func (d *Daemon) mirrorLeases(ctx context.Context) {
	infra := d.server.Labels[names.LabelInfra]
	if d.Kube == nil || infra == "" || d.mirroring {
		return
	}
	d.mirroring = true
	d.group.Go(func() error {
		d.leases.mirror(ctx, d.Kube, d.Flags.Namespace, infra)
		return nil
	})
}

func (d *Daemon) publishLeases() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.publish(d.server)
}

// listen opens the sockets of both views, all or none, and serves them.
func (d *Daemon) listen(ctx context.Context, addr netip.Addr) error {
	onVLAN, err := listen(ctx, netip.AddrPortFrom(addr, d.port))
	if err != nil {
		return err
	}
	if d.PodIP.IsValid() {
		onPods, err := listen(ctx, netip.AddrPortFrom(d.PodIP, d.port))
		if err != nil {
			return errors.Join(err, onVLAN.close())
		}
		d.serve(ctx, onPods, checkPods, podView(&d.newest))
	}
	d.serve(ctx, onVLAN, checkVLAN, vlanView(&d.newest, d.forwarding))
	d.group.Go(func() error { return daemon.GuardForwarding(ctx, onVLAN.device, daemon.Tuned(), d.ready, d.Log) })
	return nil
}

// serve answers on a view's sockets and probes them from outside.
func (d *Daemon) serve(ctx context.Context, l listener, check string, chain answers) {
	d.Log.Info("view serves", "view", chain.name, "address", l.at, "device", l.device)
	d.group.Go(func() error { return l.serve(ctx, chain) })
	d.group.Go(func() error {
		probe(ctx, l.at, d.domain, func(problem error) { d.ready.Set(check, problem) })
		return nil
	})
}

// domain is a name that both views own.
func (d *Daemon) domain() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return mdns.Fqdn(string(d.server.Spec.HostedClusterDomain))
}
