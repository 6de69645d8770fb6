package dhcp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/boot"
	"github.com/cldmnky/oooi/internal/daemon"
	"github.com/cldmnky/oooi/internal/dhcp/clock"
	"github.com/cldmnky/oooi/internal/dhcp/leaselog"
	"github.com/cldmnky/oooi/internal/dhcp/link"
	"github.com/cldmnky/oooi/internal/dhcp/vm"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/valid"
)

// Options of the daemon.
type Options struct {
	daemon.Flags
	// Name of the DHCPServer.
	Name string
	// Number says which of the DHCPServer's addresses is served: 0 is serverIP, 1 the first of additionalServerIPs.
	Number int
	// LeaseFile holds the leases where there is no cluster.
	LeaseFile string
	Log       *slog.Logger
	// Clock tells the time; in a cluster the client's transport feeds it.
	Clock *clock.Clock
}

// Check returns an error that names the missing flags.
func (o *Options) Check() error {
	if err := valid.Instance(o.Number); err != nil {
		return err
	}
	switch {
	case o.ConfigFile != "" && o.Number > 0:
		return fmt.Errorf("--instance=%d needs a cluster: a lease file has one server; omit it", o.Number)
	case o.ConfigFile == "" && (o.Namespace == "" || o.Name == ""):
		return errors.New("name the DHCPServer: set --namespace and --dhcp-name, or --config-file and --lease-file")
	case o.ConfigFile != "" && o.LeaseFile == "":
		return fmt.Errorf("--config-file %s needs --lease-file: leases must outlive the process", o.ConfigFile)
	}
	return nil
}

// Readiness checks of the daemon, beside daemon.CheckForwarding.
const (
	checkConfig = "configuration"
	checkLeases = "leases"
)

// instance is one running daemon.
type instance struct {
	Options
	server     *Server
	client     client.WithWatch // nil without a cluster
	disk       *leaselog.Log    // the leases, or the copy of the cluster's leases; may be nil in a cluster
	fillCopy   func(context.Context)
	machines   *vm.Directory
	ready      *daemon.Readiness
	status     *daemon.Status
	kube       *refusing // nil where leases are in a file
	metrics    *metrics
	announcer  *announcer
	probePause time.Duration
	changed    chan struct{}
	news       chan struct{} // signals a change of newest
	memory     memory        // only follow uses it

	mu        sync.Mutex
	object    *v1alpha1.DHCPServer // as it is served
	newest    *v1alpha1.DHCPServer // as it was seen last
	deleted   bool                 // newest is gone from the cluster
	refused   error
	port      *link.Socket
	closePort func()
	room      watched
	following func() // ends the watches of the VM namespace
	failed    chan error
}

// newInstance is a daemon that is not ready: no check has passed yet.
func newInstance(o Options, c client.WithWatch) *instance {
	return &instance{
		Options: o, client: c, machines: vm.NewDirectory(o.Log), ready: daemon.NewReadiness(checkConfig, checkLeases, daemon.CheckForwarding),
		status:  daemon.NewStatus(c, names.InstanceFieldOwner(names.DHCPFieldOwner, o.Number), o.Log),
		changed: make(chan struct{}, 1), news: make(chan struct{}, 1), failed: make(chan error, 1),
		following: func() {}, closePort: func() {}, fillCopy: func(context.Context) {}, probePause: daemon.ProbePause,
	}
}

// Run serves until the context ends. c is nil where leases are in a file.
func Run(ctx context.Context, o Options, c client.WithWatch) error { return newInstance(o, c).run(ctx) }

func (i *instance) run(ctx context.Context) error {
	if err := i.MakeStateDir(); err != nil {
		return err
	}
	if err := i.open(ctx); err != nil {
		return err
	}
	if i.disk != nil {
		defer i.close()
	}
	i.metrics = newMetrics(i.server)
	i.server.SwitchedOn = i.machines.Started
	if i.client != nil { // a file has no Infra, nor its Prometheus rules
		i.server.Booted = func(stage string, after time.Duration) { boot.Count(i.infra(), stage, after) }
	}
	i.announcer = newAnnouncer(i.client, i.Log, i.reference)
	i.server.Happened = func(h Event) {
		i.metrics.happened.WithLabelValues(string(h.Type)).Inc()
		i.announcer.Announce(h)
	}
	serving, end := i.leaves(ctx)
	defer end()
	group, ctx := errgroup.WithContext(serving)
	for _, part := range []func(context.Context) error{
		i.follow, i.serve, i.keepLeases, i.keepClock, i.keepStatus, i.status.Run, i.announcer.Run,
		func(ctx context.Context) error { return i.Serve(ctx, i.ready, i.metrics.handler()) },
		(&daemon.Prober{Metrics: i.metrics.probed, Pause: i.probePause, Probes: i.probes, Log: i.Log}).Run,
	} {
		group.Go(func() error { return part(ctx) })
	}
	return group.Wait()
}
