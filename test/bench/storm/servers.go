package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
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
)

// server is one that is measured.
type server interface {
	name() string
	// fill makes the file that the server will find, with these leases.
	fill(*segment, []leased) error
	// start returns once it serves.
	start(context.Context, *segment) (running, error)
}

// running is a server that serves.
type running struct {
	pid  int
	stop func()
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

func (isKea) start(ctx context.Context, s *segment) (r running, err error) {
	config := filepath.Join(s.dir, "kea.json")
	if err := os.WriteFile(config, []byte(strings.ReplaceAll(keaConfig, "DIR", s.dir)), 0o600); err != nil {
		return r, err
	}
	kea := s.onServer("kea-dhcp4", "-c", config)
	kea.Env = append(os.Environ(), "KEA_PIDFILE_DIR="+s.dir, "KEA_LOCKFILE_DIR="+s.dir)
	return begin(ctx, kea, filepath.Join(s.dir, "kea.log"), func(log []byte) bool { return bytes.Contains(log, []byte("DHCP4_STARTED")) })
}

const keaLeases = "leases.csv"

func (isKea) fill(s *segment, all []leased) error {
	lines := []string{"address,hwaddr,client_id,valid_lifetime,expire,subnet_id,fqdn_fwd,fqdn_rev,hostname,state,user_context"}
	for _, l := range all {
		lines = append(lines, fmt.Sprintf("%s,%s,,86400,%d,1,0,0,,0,", l.ip, l.hardware, time.Now().Add(left).Unix()))
	}
	return os.WriteFile(filepath.Join(s.dir, keaLeases), []byte(strings.Join(lines, "\n")+"\n"), 0o600)
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

func (o isOooi) start(ctx context.Context, s *segment) (r running, err error) {
	const health = serverIP + ":8081"
	flags := []string{"bin/oooi", "dhcp", "--health-address=" + health}
	cluster := running{stop: func() {}}
	if o.inCluster {
		socket := filepath.Join(s.dir, "api.sock")
		if cluster, err = apiServer(ctx, s, socket); err != nil {
			return r, err
		}
		flags = append(flags, "--namespace=default", "--dhcp-name=storm", "--api-socket="+socket, "--state-dir="+filepath.Join(s.dir, "state"))
	} else {
		config := filepath.Join(s.dir, "dhcpserver.yaml")
		if err := os.WriteFile(config, []byte(dhcpServer), 0o600); err != nil {
			return r, err
		}
		flags = append(flags, "--config-file="+config, "--lease-file="+filepath.Join(s.dir, oooiLeases))
	}
	daemon := s.onServer(flags...)
	daemon.Env = testenv.Environ()
	served, err := begin(ctx, daemon, filepath.Join(os.TempDir(), "storm-oooi.log"), func([]byte) bool {
		return s.onServer("busybox", "wget", "-qO-", "http://"+health+"/readyz").Run() == nil
	})
	if err != nil {
		cluster.stop()
		return r, err
	}
	return running{served.pid, func() { served.stop(); cluster.stop() }, cluster.bare}, nil
}

const oooiLeases = "leases.db"

func (isOooi) fill(s *segment, all []leased) error {
	file, err := leaselog.Open(filepath.Join(s.dir, oooiLeases), slog.New(slog.DiscardHandler), func(error) {})
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
func apiServer(ctx context.Context, s *segment, socket string) (r running, err error) {
	cluster, err := testenv.Start(true)
	if err != nil {
		return r, err
	}
	ends := func() { _ = cluster.Stop() } // it ends with us
	kubeconfig := filepath.Join(s.dir, "kubeconfig")
	server := &v1alpha1.DHCPServer{}
	c, err := client.New(cluster.Admin, client.Options{Scheme: daemon.Scheme()})
	err = errors.Join(err, yaml.Unmarshal([]byte(dhcpServer), server))
	text, textErr := yaml.Marshal(testenv.Kubeconfig(cluster.Admin.Host, cluster.Admin.CAData, cluster.Admin))
	if err = errors.Join(err, textErr); err == nil {
		err = errors.Join(c.Create(ctx, server), os.WriteFile(kubeconfig, text, 0o600))
	}
	if err != nil {
		ends()
		return r, err
	}
	proxy := exec.Command("bin/oooi", "api-proxy", "--socket="+socket) //nolint:gosec // all of it is ours
	proxy.Env = append(testenv.Environ(), "KUBECONFIG="+kubeconfig)
	forwards, err := begin(ctx, proxy, filepath.Join(s.dir, "api-proxy.log"), func([]byte) bool {
		_, err := os.Stat(socket)
		return err == nil
	})
	if err != nil {
		ends()
		return r, err
	}
	return running{stop: func() { forwards.stop(); ends() }, bare: func(leases int) (time.Duration, error) { return creates(ctx, c, leases) }}, nil
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

// begin starts a process, and waits until it serves.
func begin(ctx context.Context, process *exec.Cmd, log string, serves func(log []byte) bool) (r running, err error) {
	out, err := os.Create(log)
	if err != nil {
		return r, err
	}
	defer out.Close()
	process.Stdout, process.Stderr = out, out
	if err := process.Start(); err != nil {
		return r, err
	}
	ended := make(chan error, 1)
	go func() { ended <- process.Wait() }()
	r = running{pid: process.Process.Pid, stop: func() {
		_ = process.Process.Kill()
		<-ended //nolint:errcheck // it was killed
	}}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		said, _ := os.ReadFile(log)
		if serves(said) {
			return r, nil
		}
		select {
		case err := <-ended:
			return r, fmt.Errorf("%s ended: %w\n%s", process.Path, err, said)
		case <-ctx.Done():
			r.stop()
			return r, context.Cause(ctx)
		case <-tick.C:
		}
	}
}
