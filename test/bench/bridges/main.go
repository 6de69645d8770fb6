// Command bridges measures the manager with many DPUHCPBridges, beside a real kube-apiserver, a stand-in for HyperShift, and one hosted
// kube-apiserver that serves as everybody's: how often it writes when nothing changes, and how much memory it uses. It needs root: the
// manager gets an /etc/hosts of its own.
package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/internal/controller"
	"github.com/cldmnky/oooi/internal/testkit/envtest"
	"github.com/cldmnky/oooi/test/bench/internal/audited"
	"github.com/cldmnky/oooi/test/bench/internal/objects"
	"github.com/cldmnky/oooi/test/bench/internal/table"
)

// hostedAPI and hostedPort are where the names of all hosted APIs lead (plan/bridge, approve).
const hostedAPI, hostedPort = "198.19.43.1", "6443"

func main() {
	bridges := flag.Int("bridges", 200, "how many DPUHCPBridges, each with a DPUCluster and Secrets of its own")
	idle := flag.Duration("idle", 10*time.Minute, "how long to count writes after everything is Ready")
	manager := flag.String("oooi", "bin/oooi", "the binary")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *bridges, *idle, *manager); err != nil {
		fmt.Fprintln(os.Stderr, "bridges:", err)
		os.Exit(1)
	}
}

// bench has both clusters, and an administrator's client of the management cluster.
type bench struct {
	*audited.Cluster
	hosted  *envtest.Hosted
	api     client.Client
	bridges int
}

func run(ctx context.Context, bridges int, idle time.Duration, binary string) error {
	management, err := audited.Start()
	if err != nil {
		return err
	}
	defer management.Stop()
	hosted, err := envtest.StartHosted(apis(bridges)...)
	if err != nil {
		return err
	}
	defer hosted.Stop() //nolint:errcheck // it ends with us
	b := bench{Cluster: management, hosted: hosted, bridges: bridges}
	if b.api, err = client.New(b.Config, client.Options{Scheme: controller.Scheme()}); err != nil {
		return err
	}
	audited.Progress("creating %d bridges", bridges)
	if err := b.populate(ctx); err != nil {
		return err
	}
	if err := b.manage(ctx, binary); err != nil {
		return err
	}
	begin := time.Now()
	if err := b.hyperShift(ctx); err != nil {
		return err
	}
	audited.Progress("every HostedCluster is served; waiting for all to be Ready")
	if err := b.Until(ctx, func() (bool, error) { return b.ready(ctx) }); err != nil {
		return err
	}
	took := time.Since(begin).Round(100 * time.Millisecond)
	steady, err := b.Idle(ctx, idle)
	if err != nil {
		return err
	}
	if ready, err := b.ready(ctx); err != nil || !ready {
		return fmt.Errorf("not every bridge is Ready any more: %w", err)
	}
	t := table.New()
	t.Say(fmt.Sprintf("%d bridges: all Ready", bridges), took)
	steady.Rows(t, bridges, "bridge", 200)
	return t.End()
}

func name(n int) string { return fmt.Sprintf("b%d", n) }

// apis are the names of the hosted APIs.
func apis(bridges int) (all []string) {
	for n := range bridges {
		all = append(all, fmt.Sprintf("kube-apiserver.%s-%s.svc", objects.Namespace, name(n)))
	}
	return all
}

// populate creates the bridges and what they refer to.
func (b bench) populate(ctx context.Context) error {
	all := objects.Shared()
	for n := range b.bridges {
		all = append(all, objects.Bridge(n, name(n))...)
	}
	return objects.Create(ctx, b.api, all...)
}

// manage runs the manager; the names of all hosted APIs lead to the one that exists.
func (b bench) manage(ctx context.Context, binary string) error {
	if err := b.IsElsewhere(); err != nil {
		return err
	}
	if err := audited.Relay(ctx, net.JoinHostPort(hostedAPI, hostedPort), b.hosted.Admin.Host); err != nil {
		return err
	}
	hosts := map[string]string{}
	for _, api := range apis(b.bridges) {
		hosts[api] = hostedAPI
	}
	return b.ManageWith(ctx, hosts, binary, "manager", "--metrics-bind-address=0", "--bridge-virtual-ips=198.18.0.0/16", "--health-probe-bind-address=0", "--image=e2e.local/oooi:dev", "--envoy-image=e2e.local/envoy:lab")
}

// hyperShift serves each HostedCluster as soon as it is requested.
func (b bench) hyperShift(ctx context.Context) error {
	kubeconfig, err := b.hosted.Kubeconfig()
	if err != nil {
		return err
	}
	for n := range b.bridges {
		if err := objects.Serve(ctx, b.Cluster, b.api, name(n), kubeconfig); err != nil {
			return err
		}
	}
	return nil
}

// ready says whether all bridges are Ready and approve certificates.
func (b bench) ready(ctx context.Context) (bool, error) {
	all := &dpuv1.DPUHCPBridgeList{}
	if err := b.api.List(ctx, all); err != nil {
		return false, err
	}
	for _, one := range all.Items {
		for _, condition := range []string{dpuv1.ConditionReady, dpuv1.ConditionCSRAutoApprovalActive} {
			if !meta.IsStatusConditionTrue(one.Status.Conditions, condition) {
				return false, nil
			}
		}
	}
	return len(all.Items) == b.bridges, nil
}
