// Command bridges measures the manager with many DPUHCPBridges, beside a real kube-apiserver, a stand-in for HyperShift, and one hosted
// kube-apiserver that serves as everybody's: how often it writes when nothing changes, and how much memory it uses; with flavors, beside a
// stand-in for the ignition servers, also how soon a changed DPUFlavor is in its template. It needs root: the manager gets an /etc/hosts of
// its own.
package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/internal/controller"
	"github.com/cldmnky/oooi/internal/testkit/envtest"
	"github.com/cldmnky/oooi/internal/testkit/ignitionserver"
	"github.com/cldmnky/oooi/test/bench/internal/audited"
	"github.com/cldmnky/oooi/test/bench/internal/objects"
	"github.com/cldmnky/oooi/test/bench/internal/table"
)

// controlPlanes is where the names of all control planes' servers lead: on hostedPort the hosted API (plan/bridge, approve), on ignitionPort
// the ignition server (endpoint.IgnitionServers).
const controlPlanes, hostedPort, ignitionPort = "198.19.43.1", "6443", "443"

func main() {
	bridges := flag.Int("bridges", 200, "how many DPUHCPBridges, each with a DPUCluster and Secrets of its own")
	flavors := flag.Int("flavors", 0, "how many DPUFlavors each bridge has a DPU and a template of")
	idle := flag.Duration("idle", 2*time.Minute, "how long to count writes after everything is Ready; a goal is stated for 10m")
	manager := flag.String("oooi", "bin/oooi", "the binary")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, bench{bridges: *bridges, flavors: *flavors}, *idle, *manager); err != nil {
		fmt.Fprintln(os.Stderr, "bridges:", err)
		os.Exit(1)
	}
}

// bench has both clusters, and an administrator's client of the management cluster.
type bench struct {
	*audited.Cluster
	hosted   *envtest.Hosted
	ignition *ignitionserver.Server
	api      client.Client

	bridges, flavors int // flavors of each bridge
}

func run(ctx context.Context, b bench, idle time.Duration, binary string) (err error) {
	if b.Cluster, err = audited.Start(); err != nil {
		return err
	}
	defer b.Stop()
	if b.hosted, err = envtest.StartHosted(b.servers("kube-apiserver")...); err != nil {
		return err
	}
	defer b.hosted.Stop() //nolint:errcheck // it ends with us
	if b.ignition, err = ignitionserver.Start(ignitionHost); err != nil {
		return err
	}
	defer b.ignition.Close()
	if b.api, err = client.New(b.Config, client.Options{Scheme: controller.Scheme()}); err != nil {
		return err
	}
	audited.Progress("creating %d bridges, each with %d flavors", b.bridges, b.flavors)
	if err := b.populate(ctx); err != nil {
		return err
	}
	if err := b.manage(ctx, binary); err != nil {
		return err
	}
	return b.measure(ctx, idle)
}

// measure waits until all is Ready, and prints what the manager does then.
func (b bench) measure(ctx context.Context, idle time.Duration) error {
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
	t.Say(fmt.Sprintf("%d bridges, each with %d flavors: all Ready, with their templates", b.bridges, b.flavors), took)
	steady.Rows(t, b.bridges, "bridge", 200)
	if b.flavors > 0 {
		audited.Progress("replacing %d flavors", edits)
		if err := b.edit(ctx, t); err != nil {
			return err
		}
	}
	return t.End()
}

func name(n int) string { return fmt.Sprintf("b%d", n) }

// servers are the names of a Service in all control planes.
func (b bench) servers(service string) (all []string) {
	for n := range b.bridges {
		all = append(all, fmt.Sprintf("%s.%s-%s.svc", service, objects.Namespace, name(n)))
	}
	return all
}

// populate creates the bridges and what they refer to.
func (b bench) populate(ctx context.Context) error {
	all := objects.Shared()
	for n := range b.bridges {
		all = append(all, objects.Bridge(n, name(n))...)
	}
	if b.flavors > 0 {
		all = append(all, b.ofDPF()...)
	}
	return objects.Create(ctx, b.api, all...)
}

// manage runs the manager; the names of all control planes lead to the one that exists.
func (b bench) manage(ctx context.Context, binary string) error {
	if err := b.IsElsewhere(); err != nil {
		return err
	}
	if err := audited.Relay(ctx, net.JoinHostPort(controlPlanes, hostedPort), b.hosted.Admin.Host); err != nil {
		return err
	}
	if err := audited.Relay(ctx, net.JoinHostPort(controlPlanes, ignitionPort), b.ignition.Address()); err != nil {
		return err
	}
	hosts := map[string]string{}
	for _, server := range slices.Concat(b.servers("kube-apiserver"), b.servers("ignition-server-proxy")) {
		hosts[server] = controlPlanes
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
	if b.flavors > 0 {
		return b.rollOut(ctx)
	}
	return nil
}

// ready says whether all bridges are Ready, approve certificates, and have their templates.
func (b bench) ready(ctx context.Context) (bool, error) {
	all := &dpuv1.DPUHCPBridgeList{}
	if err := b.api.List(ctx, all); err != nil {
		return false, err
	}
	for _, one := range all.Items {
		for _, condition := range []string{dpuv1.ConditionReady, dpuv1.ConditionCSRAutoApprovalActive, dpuv1.ConditionIgnitionConfigured} {
			if !meta.IsStatusConditionTrue(one.Status.Conditions, condition) {
				return false, nil
			}
		}
	}
	if b.flavors > 0 {
		return b.templated(ctx)
	}
	return len(all.Items) == b.bridges, nil
}
