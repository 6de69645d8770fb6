package dhcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"path/filepath"
	"reflect"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/api/v1alpha1"
	ac "github.com/cldmnky/oooi/api/v1alpha1/applyconfiguration/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/daemon"
	"github.com/cldmnky/oooi/internal/dhcp/clock"
	"github.com/cldmnky/oooi/internal/dhcp/leasekube"
	"github.com/cldmnky/oooi/internal/dhcp/leaselog"
	"github.com/cldmnky/oooi/internal/dhcp/link"
	"github.com/cldmnky/oooi/internal/dhcp/pool"
	"github.com/cldmnky/oooi/internal/dhcp/vm"
	"github.com/cldmnky/oooi/internal/names"
)

// Options of the daemon.
type Options struct {
	daemon.Flags
	// Name of the DHCPServer.
	Name string
	// LeaseFile holds the leases where there is no cluster.
	LeaseFile string
	Log       *slog.Logger
	// Clock tells the time; in a cluster the client's transport feeds it.
	Clock *clock.Clock
}

// Readiness checks.
const (
	checkConfig = "configuration"
	checkLeases = "leases"
)

// instance is one running daemon.
type instance struct {
	Options
	server    *Server
	client    client.WithWatch // nil without a cluster
	disk      *leaselog.Log    // the leases themselves, or the copy of the cluster's; may be nil in a cluster
	machines  *vm.Directory
	ready     *daemon.Readiness
	status    *daemon.Status
	metrics   *metrics
	announcer *announcer
	changed   chan struct{}

	mu        sync.Mutex
	object    *v1alpha1.DHCPServer // as it is served
	newest    *v1alpha1.DHCPServer // as it was seen last
	deleted   bool                 // newest is gone from the cluster
	refused   error
	port      *link.Socket
	closePort func()
	following func() // ends the watches of the VM namespace
	failed    chan error
}

// Run serves until the context ends. c is nil where leases are in a file.
func Run(ctx context.Context, o Options, c client.WithWatch) error {
	i := &instance{
		Options: o, client: c, machines: vm.NewDirectory(o.Log), ready: daemon.NewReadiness(checkConfig, checkLeases),
		status: daemon.NewStatus(c, names.DHCPFieldOwner, o.Log), changed: make(chan struct{}, 1), failed: make(chan error, 1),
		following: func() {}, closePort: func() {},
	}
	if err := i.open(ctx); err != nil {
		return err
	}
	if i.disk != nil {
		defer i.close()
	}
	i.metrics = newMetrics(i.server)
	i.announcer = newAnnouncer(c, o.Log, i.reference)
	i.server.Happened = func(h Happening) {
		i.metrics.happened.WithLabelValues(string(h.Type)).Inc()
		i.announcer.Announce(h)
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, part := range []func(context.Context) error{
		i.follow, i.serve, i.keepLeases, i.keepClock, i.keepStatus, i.status.Run, i.announcer.Run,
		func(ctx context.Context) error { return o.Serve(ctx, i.ready, i.metrics.handler()) },
	} {
		group.Go(func() error { return part(ctx) })
	}
	return group.Wait()
}

// open finds the store: the cluster's leases with a copy on disk, or the file alone.
func (i *instance) open(ctx context.Context) error {
	path := i.LeaseFile
	if i.client != nil && i.StateDir != "" {
		path = filepath.Join(i.StateDir, "leases.db")
	}
	if path != "" {
		var err error
		if i.disk, err = leaselog.Open(path, i.Log, i.diskHealth); err != nil {
			return err
		}
	}
	table := pool.NewTable(i.machines)
	if i.client == nil {
		i.server = NewServer(table, i.disk, i.Clock, i.Log)
		return i.startAlone(ctx)
	}
	kube := &leasekube.Store{Client: i.client, Namespace: i.Namespace, Server: i.Name, Labels: i.labels}
	i.server = NewServer(table, kube, i.Clock, i.Log)
	if i.disk == nil {
		return nil
	}
	i.server.Store = copied{kube, i.disk, i.Log}
	return i.startFromCopy(ctx)
}

// startAlone tells the time from the file, and notes when the server was born.
func (i *instance) startAlone(ctx context.Context) error {
	saved, err := i.disk.Clock(ctx)
	if err != nil {
		return err
	}
	i.Clock.Alone(saved, time.Now())
	if !saved.Born.IsZero() {
		return nil
	}
	now, _ := i.Clock.Save()
	now.Born = now.Latest
	if err := i.disk.SetClock(ctx, now); err != nil { // no reason not to start: the disk reports itself and is tried again
		i.Log.Warn("the clock is not kept", "error", err)
	}
	return nil
}

// startFromCopy knows, before the API server answers, who may be renewed (rule 2).
func (i *instance) startFromCopy(ctx context.Context) error {
	saved, err := i.disk.Clock(ctx)
	if err != nil {
		return err
	}
	i.Clock.Restore(saved)
	records, err := i.disk.List(ctx)
	for _, r := range records {
		i.server.Table.Learn(r)
	}
	return err
}

func (i *instance) close() {
	if err := i.disk.Close(); err != nil {
		i.Log.Warn("closing the lease file", "error", err)
	}
}

func (i *instance) diskHealth(problem error) {
	if i.client == nil { // a copy that fails costs nothing while the API server answers
		i.ready.Set(checkLeases, problem)
	}
}

// follow keeps the configuration.
func (i *instance) follow(ctx context.Context) error {
	f := &daemon.Follower[*v1alpha1.DHCPServer]{
		New: func() *v1alpha1.DHCPServer { return &v1alpha1.DHCPServer{} }, StateDir: i.StateDir, Log: i.Log,
		Apply: i.apply, Rejected: i.rejected, Deleted: i.gone,
	}
	if i.client == nil {
		return f.File(ctx, i.ConfigFile)
	}
	return f.Object(ctx, i.client, &v1alpha1.DHCPServerList{}, client.ObjectKey{Namespace: i.Namespace, Name: i.Name})
}

// apply serves a configuration: the socket is opened first, so that one that cannot be served changes nothing.
func (i *instance) apply(ctx context.Context, object *v1alpha1.DHCPServer) error {
	i.mu.Lock()
	i.newest, i.deleted = object, false
	i.mu.Unlock()
	config, err := ConfigOf(object)
	if err != nil {
		return err
	}
	if i.client == nil {
		saved, err := i.disk.Clock(ctx)
		if err != nil {
			return err
		}
		config.Born, config.LooksUpVMs = saved.Born, false // there is nobody to look them up with
	}
	port, err := i.portFor(ctx, config.Server)
	if err != nil {
		return err
	}
	i.server.Configure(config)
	i.lookUp(ctx, object)
	i.mu.Lock()
	i.object = object
	i.mu.Unlock()
	i.start(ctx, port)
	i.ready.Set(checkConfig, nil)
	i.wake()
	return nil
}

// portFor opens a socket for a server address that is not served yet; nil when it is.
func (i *instance) portFor(ctx context.Context, server netip.Addr) (*link.Socket, error) {
	if served := i.server.config.Load(); served != nil && served.Server == server {
		return nil, nil
	}
	return link.Listen(ctx, server)
}

// start answers on a new socket in place of the old one.
func (i *instance) start(ctx context.Context, port *link.Socket) {
	if port == nil {
		return
	}
	guarded, stop := context.WithCancel(ctx)
	i.mu.Lock()
	i.closePort()
	i.port, i.closePort = port, func() { stop(); _ = port.Close() }
	i.mu.Unlock()
	go func() {
		if err := i.server.Serve(ctx, port); i.serves(port) {
			i.failed <- err
		}
	}()
	go i.overhear(guarded, port.Address())
	go func() { _ = daemon.GuardForwarding(guarded, port.Device(), daemon.Tuned(), i.ready, i.Log) }()
	i.Log.Info("serving", "device", port.Device(), "server", i.server.config.Load().Server)
}

// overhear listens for servers that are none of ours; one that cannot costs a warning, not the service.
func (i *instance) overhear(ctx context.Context, server netip.Addr) {
	port, err := link.Overhear(ctx, server)
	if err != nil {
		i.Log.Warn("other DHCP servers would not be noticed", "error", err)
		return
	}
	defer context.AfterFunc(ctx, func() { _ = port.Close() })()
	_ = i.server.Overhear(port) // ends with its socket
}

func (i *instance) serves(port *link.Socket) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.port == port
}

// serve ends the daemon when its socket does, and the socket when the daemon ends.
func (i *instance) serve(ctx context.Context) error {
	select {
	case err := <-i.failed:
		if ctx.Err() == nil {
			return err
		}
	case <-ctx.Done():
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.closePort()
	return nil
}

// lookUp follows the namespace whose machines are looked up.
func (i *instance) lookUp(ctx context.Context, object *v1alpha1.DHCPServer) {
	namespace := string(object.Spec.VMNamespace)
	if i.client == nil || i.object != nil && string(i.object.Spec.VMNamespace) == namespace {
		return
	}
	i.following()
	watching, stop := context.WithCancel(ctx)
	i.following = stop
	if namespace == "" {
		i.machines.Unfollow()
		return
	}
	i.machines.Follow(watching, i.client, namespace)
}

func (i *instance) rejected(err error) {
	i.mu.Lock()
	i.refused = err
	i.mu.Unlock()
	if err != nil && i.server.config.Load() == nil {
		i.ready.Set(checkConfig, err)
	}
	i.wake()
}

// keepLeases reads all leases first, then watches them, and does the chores.
func (i *instance) keepLeases(ctx context.Context) error {
	if err := i.sync(ctx); err != nil {
		return nil // the context ended
	}
	if i.client != nil {
		go i.watchLeases(ctx)
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			if i.client == nil {
				_ = i.disk.Heal(ctx) // reports through diskHealth
			}
			if !i.leaving() {
				i.server.Chores(ctx)
			}
		}
	}
}

func (i *instance) sync(ctx context.Context) error {
	for pause := time.Second; ; pause = min(2*pause, 10*time.Second) {
		err := i.server.Sync(ctx)
		i.ready.Set(checkLeases, err)
		if err == nil {
			return nil
		}
		i.Log.Warn("leases not read; only known holders are renewed", "error", err, "again in", pause)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}

func (i *instance) watchLeases(ctx context.Context) {
	store := &leasekube.Store{Namespace: i.Namespace, Server: i.Name, Labels: i.labels}
	learn := func(o any) {
		r, err := store.Record(o.(*v1alpha1.DHCPLease))
		if err != nil {
			i.Log.Warn("lease not understood", "error", err)
			return
		}
		if i.server.Table.Learn(r) && i.disk != nil {
			copied{copy: i.disk, log: i.Log}.keep(ctx, r)
		}
	}
	daemon.Watch(ctx, i.client, &v1alpha1.DHCPLease{}, &v1alpha1.DHCPLeaseList{}, store.Selected(), cache.ResourceEventHandlerFuncs{
		AddFunc: learn, UpdateFunc: func(_, o any) { learn(o) },
		DeleteFunc: func(o any) {
			if gone, ok := o.(cache.DeletedFinalStateUnknown); ok {
				o = gone.Obj
			}
			if r, err := store.Record(o.(*v1alpha1.DHCPLease)); err == nil {
				i.server.Table.Lost(r)
			}
		},
	})
}

// gone hears that our object is deleted. A deletion in the background gives it no time before.
func (i *instance) gone() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.deleted = true
}

// leaving says whether our object is deleted or about to be: then leases that go are meant to go.
func (i *instance) leaving() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.deleted || i.newest != nil && !i.newest.DeletionTimestamp.IsZero()
}

// keepClock saves how to tell the time: as soon as it is known, then every minute.
func (i *instance) keepClock(ctx context.Context) error {
	if i.disk == nil {
		return nil
	}
	for pause := time.Second; ; {
		if now, ok := i.Clock.Save(); ok {
			pause = time.Minute
			i.saveClock(ctx, now)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

func (i *instance) saveClock(ctx context.Context, now clock.Saved) {
	saved, err := i.disk.Clock(ctx)
	now.Born = saved.Born
	if err = errors.Join(err, i.disk.SetClock(ctx, now)); err != nil && ctx.Err() == nil {
		i.Log.Warn("the clock is not kept", "error", err)
	}
}

// keepStatus reports: conditions at once, counts once a minute.
func (i *instance) keepStatus(ctx context.Context) error {
	var said reported
	var last *ac.DHCPServerApplyConfiguration
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		if now := i.report(); now.server != nil {
			if next := said.next(now); !reflect.DeepEqual(next, last) { // each Set is tried at once
				last = next
				i.status.Set(next)
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-i.changed:
		case <-i.ready.Changed():
		case <-tick.C:
		}
	}
}

func (i *instance) report() report {
	i.mu.Lock()
	defer i.mu.Unlock()
	r := report{at: time.Now(), server: i.object, serves: i.object != nil, refused: i.refused, ready: i.ready.Problem()}
	if i.object == nil && i.refused != nil {
		r.server = i.newest
	}
	if i.newest != nil {
		r.newest = i.newest.Generation
	}
	_, r.steady = i.Clock.Now()
	r.counts = i.server.counts()
	return r
}

func (i *instance) wake() {
	select {
	case i.changed <- struct{}{}:
	default:
	}
}

// labels of every lease: those of the Infra that the planner put on our object, and ours.
func (i *instance) labels() map[string]string {
	i.mu.Lock()
	defer i.mu.Unlock()
	labels := map[string]string{names.LabelServer: i.Name}
	for _, key := range []string{names.LabelInfra, names.LabelInfraNamespace, names.LabelOwnerUID} {
		if i.object != nil && i.object.Labels[key] != "" {
			labels[key] = i.object.Labels[key]
		}
	}
	return labels
}

func (i *instance) reference() *corev1.ObjectReference {
	i.mu.Lock()
	defer i.mu.Unlock()
	return referenceTo(cmp.Or(i.object, &v1alpha1.DHCPServer{}))
}

// Check says what the flags lack.
func (o *Options) Check() error {
	switch {
	case o.ConfigFile == "" && (o.Namespace == "" || o.Name == ""):
		return errors.New("say which DHCPServer: --namespace and --dhcp-name, or --config-file and --lease-file")
	case o.ConfigFile != "" && o.LeaseFile == "":
		return fmt.Errorf("--config-file %s needs --lease-file: leases must outlive the process", o.ConfigFile)
	}
	return nil
}
