package leasecli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"os"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/daemon"
	"github.com/cldmnky/oooi/internal/dhcp"
	"github.com/cldmnky/oooi/internal/dhcp/lease"
	"github.com/cldmnky/oooi/internal/dhcp/leasekube"
	"github.com/cldmnky/oooi/internal/dhcp/leaselog"
	"github.com/cldmnky/oooi/internal/dhcp/pool"
)

// Pool is the leases of one DHCPServer, or of one lease file.
type Pool struct {
	// Server is the name of the DHCPServer; empty for a lease file.
	Server string
	Config pool.Config
	// Instances that have to drop a released lease; none for a lease file.
	Instances []netip.Addr
	// Read gives all leases with their past to take.
	Read func(ctx context.Context, take func(lease.Record, []lease.Past)) error
	// Open returns the store for writing, and what closes it. A lease file that a daemon has open is refused.
	Open func() (lease.Store, func() error, error)
}

// nothing is where logs go: what matters is returned.
var nothing = slog.New(slog.NewTextHandler(io.Discard, nil))

// InCluster are the pools of a namespace, or of one DHCPServer of it.
func InCluster(ctx context.Context, api client.Client, namespace, name string) ([]Pool, error) {
	servers := &v1alpha1.DHCPServerList{}
	options := []client.ListOption{client.InNamespace(namespace)}
	if name != "" {
		options = append(options, client.MatchingFields{metav1.ObjectNameField: name})
	}
	if err := api.List(ctx, servers, options...); err != nil {
		return nil, fmt.Errorf("reading DHCPServers: %w", err)
	}
	if len(servers.Items) == 0 && name != "" {
		return nil, fmt.Errorf("namespace %s has no DHCPServer %s: list them with kubectl get dhcpserver -n %s", namespace, name, namespace)
	}
	if len(servers.Items) == 0 {
		return nil, fmt.Errorf("namespace %s has no DHCPServer: give the namespace of the Infra with -n", namespace)
	}
	var pools []Pool
	for i := range servers.Items {
		pools = append(pools, ofServer(api, &servers.Items[i]))
	}
	return pools, nil
}

func ofServer(api client.Client, server *v1alpha1.DHCPServer) Pool {
	config, _ := dhcp.ConfigOf(server, 0) // the DHCPServer's own status says what is wrong with it
	store := &leasekube.Store{
		Client: api, Namespace: server.Namespace, Server: server.Name, Log: nothing,
		Labels: func() map[string]string { return leasekube.Labels(server.Name, server) },
	}
	p := Pool{Server: server.Name, Config: config, Read: store.ListPast, Open: func() (lease.Store, func() error, error) { return store, func() error { return nil }, nil }}
	for _, ip := range server.Spec.NetworkConfig.ServerIPs() {
		if a, err := netip.ParseAddr(string(ip)); err == nil {
			p.Instances = append(p.Instances, a)
		}
	}
	return p
}

// InFile is the pool of `oooi dhcp --lease-file leases --config-file config`; another program's file is refused. damaged hears of octets that could not be read.
func InFile(leases, config string, damaged func(octets int)) (Pool, error) {
	content, err := os.ReadFile(config)
	if err != nil {
		return Pool{}, err
	}
	server := &v1alpha1.DHCPServer{}
	if err := daemon.Decode(content, server); err != nil {
		return Pool{}, fmt.Errorf("%s: %w", config, err)
	}
	p := Pool{}
	if p.Config, err = dhcp.ConfigOf(server, 0); err != nil {
		return Pool{}, fmt.Errorf("%s: %w", config, err)
	}
	if err := leaselog.Ours(leases); err != nil {
		return Pool{}, err
	}
	p.Read = func(_ context.Context, take func(lease.Record, []lease.Past)) error {
		octets, err := leaselog.Read(leases, take)
		if octets > 0 {
			damaged(octets)
		}
		return err
	}
	p.Open = func() (lease.Store, func() error, error) {
		log, err := leaselog.Open(leases, nothing, func(error) {})
		if err != nil {
			return nil, nil, err
		}
		return log, log.Close, nil
	}
	return p, nil
}

// Leases reads the leases of pools, sorted.
func Leases(ctx context.Context, pools []Pool) ([]Lease, error) {
	var all []Lease
	for _, p := range pools {
		if err := p.Read(ctx, func(r lease.Record, past []lease.Past) { all = append(all, Lease{p.Server, r, past}) }); err != nil {
			return nil, err
		}
	}
	sortLeases(all)
	return all, nil
}
