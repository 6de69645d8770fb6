package dhcp

import (
	"cmp"
	"context"
	"errors"
	"reflect"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/boot"
	"github.com/cldmnky/oooi/internal/daemon"
	"github.com/cldmnky/oooi/internal/dhcp/pool"
	"github.com/cldmnky/oooi/internal/names"
)

// follow applies each change of the configuration.
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

// apply serves a configuration. It opens the socket first, so that a configuration that cannot be served changes nothing.
func (i *instance) apply(ctx context.Context, object *v1alpha1.DHCPServer) error {
	i.learn(object)
	config, err := ConfigOf(object, i.Number)
	if err != nil {
		return err
	}
	if i.client == nil {
		if len(object.Spec.NetworkConfig.AdditionalServerIPs) > 0 {
			return errors.New("networkConfig.additionalServerIPs needs a cluster, whose leases both instances share; remove it")
		}
		saved, err := i.disk.Clock(ctx)
		if err != nil {
			return err
		}
		config.Born, config.InFile, config.LooksUpVMs = saved.Born, true, false // without a cluster there are none to look up
	} else {
		config.Instances = i.memory.known
	}
	port, err := i.portFor(ctx, config.Server)
	if err != nil {
		return err
	}
	i.configure(config)
	i.lookUp(ctx, object)
	i.mu.Lock()
	i.object = object
	i.mu.Unlock()
	if i.client != nil {
		boot.WillCount(i.infra(), boot.PowerOnToLease, boot.DiscoverToLease)
	}
	i.start(ctx, port)
	i.ready.Set(checkConfig, nil)
	i.wake()
	return nil
}

// configure serves a configuration that has changed. Our own status writes lead here as well.
func (i *instance) configure(config pool.Config) {
	if served := i.server.config.Load(); served != nil && reflect.DeepEqual(*served, config) {
		return
	}
	if !config.Network.RoutesFit() {
		i.Log.Warn("networkConfig.routes do not fit the smallest reply, and a client that takes no larger one gets none of them (option 121): join routes, or send some clients there by the gateway",
			"routes", len(config.Network.Routes))
	}
	i.server.Configure(config)
}

// infra is whose boots are counted, as namespace/name: the Infra's or, without one, the DHCPServer's.
func (i *instance) infra() string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.Namespace + "/" + cmp.Or(i.object.Labels[names.LabelInfra], i.Name)
}

// lookUp watches the namespace in which virtual machines are looked up.
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

// gone notes that our object is deleted. A background deletion sets no deletionTimestamp before.
func (i *instance) gone() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.deleted = true
}

// leaving says whether our object is deleted or being deleted: its leases are then meant to disappear.
func (i *instance) leaving() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.deleted || i.newest != nil && !i.newest.DeletionTimestamp.IsZero()
}
