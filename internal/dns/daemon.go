// Package dns is the DNS daemon: it turns its DNSServer and the leases of its Infra into the records that package server answers from.
package dns

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"time"

	mdns "github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/daemon"
	"github.com/cldmnky/oooi/internal/dns/server"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/stages"
	"github.com/cldmnky/oooi/internal/valid"
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
	// Flags are common to all daemons. ConfigFile selects file mode; PodIP is the address of the pod network's view.
	Flags *daemon.Flags
	// Name of the DNSServer.
	Name string
	// Instance selects the address to serve: 0 is serverIP, 1 the first of additionalServerIPs.
	Instance int
	// Kube is nil in file mode.
	Kube client.WithWatch
	// Now is the API server's time, which decides when leases end; zero while it is not known.
	Now func() time.Time
	Log *slog.Logger

	port       uint16        // 53 except in tests
	resolvConf string        // /etc/resolv.conf except in tests
	probePause time.Duration // daemon.ProbePause, and resolverPause for the resolvers, except in tests

	answers  *server.Server
	ready    *daemon.Readiness
	status   *status
	leases   *leaseBook
	health   *health
	upstream *resolvers
	stages   *stages.Book
	group    *errgroup.Group

	mu        sync.Mutex          // configuration and leases change from two goroutines
	object    *v1alpha1.DNSServer // what is served; nil before the first configuration
	following bool                // whether the leases of its Infra are followed
	device    string              // of the VLAN; empty before the first configuration
}

// Run serves until the context ends.
func (d *Daemon) Run(ctx context.Context) error {
	if err := d.Flags.MakeStateDir(); err != nil {
		return err
	}
	upstreamPause := cmp.Or(d.probePause, resolverPause)
	d.port, d.resolvConf, d.probePause = cmp.Or(d.port, dnsPort), cmp.Or(d.resolvConf, "/etc/resolv.conf"), cmp.Or(d.probePause, daemon.ProbePause)
	d.ready = daemon.NewReadiness(d.checks()...)
	d.status = newStatus(daemon.NewStatus(d.Kube, names.InstanceFieldOwner(names.DNSFieldOwner, d.Instance), d.Log), d.ready, d.Instance)
	d.leases = newLeaseBook(d.Flags.StateDir, d.Now, d.Log)
	d.answers = server.New()
	d.stages = stages.New(d.Kube, d.Flags.Namespace, d.Log)
	d.answers.Told = d.notes
	defer d.answers.Close()
	d.group, ctx = errgroup.WithContext(ctx)
	d.health = newHealth(d.group.Go, d.answers.LeaveOut, d.status.signal, d.Log)
	d.status.health = d.health.states
	d.upstream = &resolvers{turned: d.status.signal, heard: d.answers.Heard}
	d.status.upstream = d.upstream.condition
	d.group.Go(func() error { return d.Flags.Serve(ctx, d.ready, promhttp.Handler()) })
	d.group.Go(func() error { return d.status.writer.Run(ctx) })
	d.group.Go(func() error { return d.status.run(ctx) })
	d.group.Go(func() error { return d.leases.follow(ctx, d.republish) })
	d.group.Go(func() error { return d.stages.Run(ctx) })
	d.group.Go(func() error { return d.follow(ctx) })
	d.group.Go(func() error {
		return (&daemon.Prober{Metrics: probed, Pause: d.probePause, Probes: d.probes, Log: d.Log}).Run(ctx)
	})
	d.group.Go(func() error {
		return (&daemon.Prober{Metrics: resolversProbed, Pause: upstreamPause, Probes: d.upstream.probes, Log: d.Log}).Run(ctx)
	})
	return d.group.Wait()
}

func (d *Daemon) checks() []string {
	checks := []string{checkConfig, checkVLAN, daemon.CheckForwarding}
	if d.Flags.PodIP.IsValid() {
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

// judge reports whether a configuration is served, nil if it is. While none is served, this also decides readiness.
func (d *Daemon) judge(refusal error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.object == nil {
		d.ready.Set(checkConfig, refusal)
	}
	d.status.judge(refusal)
}

// configure serves an object, completely or not at all.
func (d *Daemon) configure(ctx context.Context, object *v1alpha1.DNSServer) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.status.consider(object)
	err := d.adopt(ctx, object)
	if d.object != nil { // the other instance is heard whether this spec is refused or not
		_, at := d.serves(d.object)
		d.health.hear(object.Status.Instances, at)
	}
	return err
}

// adopt builds all names anew only for another spec: with as many leases as a /16 has, that takes half a second.
func (d *Daemon) adopt(ctx context.Context, object *v1alpha1.DNSServer) error {
	if d.object != nil && equality.Semantic.DeepEqual(d.object.Spec, object.Spec) {
		d.object = object
		d.followLeases(ctx)
		return nil
	}
	addr, err := d.address(object)
	if err == nil {
		err = d.publish(object)
	}
	if err == nil && d.object == nil {
		err = d.listen(ctx, addr)
	}
	if err != nil {
		return err
	}
	d.Log.Info("configuration serves", "generation", object.Generation, "domain", object.Spec.HostedClusterDomain)
	d.object = object
	d.ready.Set(checkConfig, nil)
	d.health.check(ctx, vantage{addr, d.device}, healthChecks(object))
	d.followLeases(ctx)
	return nil
}

// address returns the address to serve on the VLAN. A running daemon cannot change it: the pod's interface has the old one.
func (d *Daemon) address(object *v1alpha1.DNSServer) (netip.Addr, error) {
	field, value := d.serves(object)
	addr, ok := valid.Address(string(value))
	switch {
	case d.Instance > 0 && value == "":
		return addr, valid.Unset(field)
	case !ok:
		return addr, fmt.Errorf("%s: %q is not an IP address such as 192.168.100.3", field, value)
	case addr == d.Flags.PodIP:
		return addr, fmt.Errorf("%s: %s is the pod's own address; each view needs one of its own", field, value)
	}
	if d.object != nil {
		if _, now := d.serves(d.object); now != value {
			return addr, fmt.Errorf("%s: this daemon serves %s until it is restarted, not %s", field, now, value)
		}
	}
	return addr, nil
}

// serves returns this instance's address in an object, and the address's field; no address if the object has no such instance.
func (d *Daemon) serves(object *v1alpha1.DNSServer) (field string, at v1alpha1.IPAddress) {
	field = "spec." + v1alpha1.ServerIPField(d.Instance)
	all := object.Spec.NetworkConfig.ServerIPs()
	if d.Instance >= len(all) {
		return field, ""
	}
	return field, all[d.Instance]
}

// publish answers from an object and the leases, beginning with the next query.
func (d *Daemon) publish(object *v1alpha1.DNSServer) error {
	intent, err := IntentOf(object, d.leases.promised())
	if err != nil {
		return err
	}
	if len(intent.Upstreams) == 0 {
		if intent.Upstreams, err = d.othersOfNode(object); err != nil {
			return err
		}
	}
	if err := d.answers.Say(intent); err != nil {
		return err
	}
	d.upstream.use(intent.Upstreams)
	return nil
}

// othersOfNode returns the node's resolvers without this server's own addresses: its instances would query each other in a loop.
func (d *Daemon) othersOfNode(object *v1alpha1.DNSServer) ([]netip.AddrPort, error) {
	isOurs := func(r netip.AddrPort) bool {
		return r.Addr() == d.Flags.PodIP || slices.Contains(object.Spec.NetworkConfig.ServerIPs(), v1alpha1.IPAddress(r.Addr().String()))
	}
	all, err := nodeResolvers(d.resolvConf)
	if err != nil {
		return nil, err
	}
	others := slices.DeleteFunc(slices.Clone(all), isOurs)
	if len(all) > 0 && len(others) == 0 {
		return nil, fmt.Errorf("the node's only resolver, %s, is this server itself: set spec.upstreamDNS, or another nameserver on the node", all[0].Addr())
	}
	return others, nil
}

// followLeases starts once the object names its Infra. A DNSServer without an Infra has no leases.
func (d *Daemon) followLeases(ctx context.Context) {
	infra := d.object.Labels[names.LabelInfra]
	if d.Kube == nil || infra == "" || d.following {
		return
	}
	d.following = true
	d.group.Go(func() error {
		d.stages.Follow(ctx, infra, d.leases)
		return nil
	})
}

// notes has it written into a worker's lease that it asked for a name of its hosted cluster.
func (d *Daemon) notes(source netip.Addr, name string) {
	d.stages.Saw(source, v1alpha1.Stage{Name: v1alpha1.StageNameAsked, FirstTime: metav1.NowMicro(), ServerName: stages.Name(name)})
}

// republish answers from what is served, after a change of leases.
func (d *Daemon) republish() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.object == nil { // a restored lease ended before the first configuration
		return nil
	}
	return d.publish(d.object)
}

// listen opens the sockets of both views, all or none, and serves them.
func (d *Daemon) listen(ctx context.Context, addr netip.Addr) error {
	onVLAN, err := server.Listen(ctx, netip.AddrPortFrom(addr, d.port))
	if err != nil {
		return err
	}
	if d.Flags.PodIP.IsValid() {
		onPods, err := server.Listen(ctx, netip.AddrPortFrom(d.Flags.PodIP, d.port))
		if err != nil {
			return errors.Join(err, onVLAN.Close())
		}
		d.serve(ctx, onPods, checkPods, d.answers.Pods())
	}
	d.device = onVLAN.Device
	d.serve(ctx, onVLAN, checkVLAN, d.answers.VLAN())
	d.group.Go(func() error { return daemon.GuardForwarding(ctx, onVLAN.Device, daemon.Tuned(), d.ready, d.Log) })
	return nil
}

// serve answers on a view's sockets, and probes the one for UDP.
func (d *Daemon) serve(ctx context.Context, l server.Listener, check string, view server.View) {
	d.Log.Info("view serves", "view", view.Name, "address", l.At, "device", l.Device)
	d.group.Go(func() error { return l.Serve(ctx, view) })
	d.group.Go(func() error {
		probe(ctx, l.At, d.domain, func(problem error) { d.ready.Set(check, problem) })
		return nil
	})
}

// domain returns a name that both views own.
func (d *Daemon) domain() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return mdns.Fqdn(string(d.object.Spec.HostedClusterDomain))
}
