package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/daemon"
	"github.com/cldmnky/oooi/internal/dhcp/leasekube"
	"github.com/cldmnky/oooi/internal/dhcp/leaselog"
	"github.com/cldmnky/oooi/internal/names"
	testenv "github.com/cldmnky/oooi/internal/testkit/envtest"
	"github.com/cldmnky/oooi/test/bench/internal/daemons"
	"github.com/cldmnky/oooi/test/bench/internal/segment"
)

// server is one that is measured.
type server interface {
	name() string
	// fill makes the file that the server will find, with these leases.
	fill(*segment.Segment, []leased) error
	// start returns once it serves.
	start(context.Context, *segment.Segment) (running, error)
}

// running is a server that serves.
type running struct {
	daemons.Running
	bare func(leases int) (time.Duration, error) // how long a client takes that does nothing but write leases to its API server, if it has one
}

// isKea keeps its leases in a CSV file.
type isKea struct{}

func (isKea) name() string { return "Kea" }

const keaConfig = `{"Dhcp4": {
  "interfaces-config": {"interfaces": ["` + device + `"]},
  "lease-database": {"type": "memfile", "persist": true, "name": "DIR/` + keaLeases + `"},
  "valid-lifetime": 86400, "option-data": [{"name": "domain-name-servers", "data": "` + serverIP + `"}],
  "subnet4": [{"id": 1, "subnet": "` + subnet + `", "pools": [{"pool": "` + first + ` - ` + last + `"}]}],
  "loggers": [{"name": "kea-dhcp4", "severity": "INFO", "output_options": [{"output": "stdout"}]}]
}}`

func (isKea) start(ctx context.Context, s *segment.Segment) (r running, err error) {
	config := filepath.Join(s.Dir, "kea.json")
	if err := os.WriteFile(config, []byte(strings.ReplaceAll(keaConfig, "DIR", s.Dir)), 0o600); err != nil {
		return r, err
	}
	kea := s.On(serving, "kea-dhcp4", "-c", config)
	kea.Env = append(os.Environ(), "KEA_PIDFILE_DIR="+s.Dir, "KEA_LOCKFILE_DIR="+s.Dir)
	r.Running, err = daemons.Begin(ctx, kea, filepath.Join(s.Dir, "kea.log"), func(log []byte) bool { return bytes.Contains(log, []byte("DHCP4_STARTED")) })
	return r, err
}

const keaLeases = "leases.csv"

func (isKea) fill(s *segment.Segment, all []leased) error {
	lines := []string{"address,hwaddr,client_id,valid_lifetime,expire,subnet_id,fqdn_fwd,fqdn_rev,hostname,state,user_context"}
	for _, l := range all {
		lines = append(lines, fmt.Sprintf("%s,%s,,86400,%d,1,0,0,,0,", l.ip, l.hardware, time.Now().Add(left).Unix()))
	}
	return os.WriteFile(filepath.Join(s.Dir, keaLeases), []byte(strings.Join(lines, "\n")+"\n"), 0o600)
}

// isOooi keeps its leases in a file, or as objects in an API server.
type isOooi struct{ inCluster bool }

func (o isOooi) name() string {
	if o.inCluster {
		return "oooi, leases in the API server"
	}
	return "oooi, leases in a file"
}

const dhcpServer = `apiVersion: hostedcluster.densityops.com/v1alpha1
kind: DHCPServer
metadata: {name: storm, namespace: default}
spec:
  networkConfig: {networkAttachmentDefinition: vlan, cidr: ` + subnet + `, serverIP: ` + serverIP + `, dnsServers: [` + serverIP + `]}
  leaseConfig: {rangeStart: ` + first + `, rangeEnd: ` + last + `, leaseTime: 24h}
`

func (o isOooi) start(ctx context.Context, s *segment.Segment) (r running, err error) {
	const health = serverIP + ":8081"
	flags := []string{"bin/oooi", "dhcp", "--health-address=" + health}
	cluster := running{Running: daemons.Running{Stop: func() {}}}
	if o.inCluster {
		socket := filepath.Join(s.Dir, "api.sock")
		if cluster, err = apiServer(ctx, s, socket); err != nil {
			return r, err
		}
		flags = append(flags, "--namespace=default", "--dhcp-name=storm", "--api-socket="+socket, "--state-dir="+filepath.Join(s.Dir, "state"))
	} else {
		config := filepath.Join(s.Dir, "dhcpserver.yaml")
		if err := os.WriteFile(config, []byte(dhcpServer), 0o600); err != nil {
			return r, err
		}
		flags = append(flags, "--config-file="+config, "--lease-file="+filepath.Join(s.Dir, oooiLeases))
	}
	daemon := s.On(serving, flags...)
	daemon.Env = testenv.Environ()
	served, err := daemons.Begin(ctx, daemon, filepath.Join(os.TempDir(), "storm-oooi.log"), func([]byte) bool {
		return s.On(serving, "busybox", "wget", "-qO-", "http://"+health+"/readyz").Run() == nil
	})
	if err != nil {
		cluster.Stop()
		return r, err
	}
	return running{daemons.Running{PID: served.PID, Stop: func() { served.Stop(); cluster.Stop() }}, cluster.bare}, nil
}

const oooiLeases = "leases.db"

func (isOooi) fill(s *segment.Segment, all []leased) error {
	file, err := leaselog.Open(filepath.Join(s.Dir, oooiLeases), slog.New(slog.DiscardHandler), func(error) {})
	if err != nil {
		return err
	}
	var group errgroup.Group
	group.SetLimit(256) // are synced together
	for _, l := range all {
		group.Go(func() error {
			_, err := file.Create(context.Background(), l.record())
			return err
		})
	}
	return errors.Join(group.Wait(), file.Close())
}

// apiServer has the DHCPServer, and is reached through a socket, as in a pod.
func apiServer(ctx context.Context, s *segment.Segment, socket string) (r running, err error) {
	cluster, err := testenv.Start(true)
	if err != nil {
		return r, err
	}
	ends := func() { _ = cluster.Stop() } // it ends with us
	server := &v1alpha1.DHCPServer{}
	c, err := client.New(cluster.Admin, client.Options{Scheme: daemon.Scheme()})
	if err = errors.Join(err, yaml.Unmarshal([]byte(dhcpServer), server)); err == nil {
		err = c.Create(ctx, server)
	}
	if err != nil {
		ends()
		return r, err
	}
	forwards, err := daemons.Forward(ctx, cluster.Admin, s.Dir, socket)
	if err != nil {
		ends()
		return r, err
	}
	bare := func(leases int) (time.Duration, error) { return creates(ctx, c, leases) }
	return running{daemons.Running{Stop: func() { forwards.Stop(); ends() }}, bare}, nil
}

// creates writes leases of another server, as many at once as the daemon may (internal/dhcp, lanes).
func creates(ctx context.Context, c client.Client, leases int) (time.Duration, error) {
	const atOnce = 64
	store := &leasekube.Store{Client: c, Namespace: "default", Server: "bare", Labels: func() map[string]string { return map[string]string{names.LabelServer: "bare"} }}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	start := time.Now()
	for _, l := range wholePool()[:leases] {
		group.Go(func() error {
			_, err := store.Create(ctx, l.record())
			return err
		})
	}
	err := group.Wait()
	return time.Since(start), err
}
