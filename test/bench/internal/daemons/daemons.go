// Package daemons starts the processes that a benchmark measures.
package daemons

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	testenv "github.com/cldmnky/oooi/internal/testkit/envtest"
)

// Running is a process that serves.
type Running struct {
	PID  int
	Stop func()
}

// Forward requests from a socket to an API server, as a pod's api-proxy does, with files in a directory.
func Forward(ctx context.Context, cluster *rest.Config, dir, socket string) (r Running, err error) {
	kubeconfig := filepath.Join(dir, "kubeconfig")
	text, err := yaml.Marshal(testenv.Kubeconfig(cluster.Host, cluster.CAData, cluster))
	if err != nil {
		return r, err
	}
	if err := os.WriteFile(kubeconfig, text, 0o600); err != nil {
		return r, err
	}
	proxy := exec.Command("bin/oooi", "api-proxy", "--socket="+socket) //nolint:gosec // all of it is ours
	proxy.Env = append(testenv.Environ(), "KUBECONFIG="+kubeconfig)
	return Begin(ctx, proxy, filepath.Join(dir, "api-proxy.log"), func([]byte) bool {
		_, err := os.Stat(socket)
		return err == nil
	})
}

// Begin starts a process, and waits until it serves.
func Begin(ctx context.Context, process *exec.Cmd, log string, serves func(log []byte) bool) (r Running, err error) {
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
	r = Running{process.Process.Pid, func() {
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
			r.Stop()
			return r, context.Cause(ctx)
		case <-tick.C:
		}
	}
}
