// Command bridges measures the manager with many DPUHCPBridges against a real kube-apiserver, a stand-in for HyperShift, and one hosted
// kube-apiserver that all of them look into: how often it writes when nothing changes, and how much memory it holds. It wants root: the
// manager gets an /etc/hosts of its own.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/controller"
	"github.com/cldmnky/oooi/internal/dpf"
	"github.com/cldmnky/oooi/internal/plan/bridge"
	"github.com/cldmnky/oooi/internal/testkit/envtest"
	"github.com/cldmnky/oooi/internal/testkit/hypershift"
	"github.com/cldmnky/oooi/test/bench/internal/audited"
	"github.com/cldmnky/oooi/test/bench/internal/table"
)

const (
	namespace = "clusters"
	release   = "quay.io/openshift-release-dev/ocp-release:4.20.4-multi"
	// hostedAPI is where the names of all hosted APIs lead, with the port that they have (plan/bridge, approve).
	hostedAPI, hostedPort = "127.64.43.1", "6443"
)

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

// bench is both clusters, and the management cluster's API as an administrator.
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

func at(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: namespace, Name: name} }

// apis are the names by which hosted APIs are dialled.
func apis(bridges int) (all []string) {
	for n := range bridges {
		all = append(all, fmt.Sprintf("kube-apiserver.%s-%s.svc", namespace, name(n)))
	}
	return all
}

// populate makes the bridges and what they refer to.
func (b bench) populate(ctx context.Context) error {
	all := []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "metallb-system"}},
		&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fast", Annotations: map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}}, Provisioner: "example.com/fast"},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "ocp-bluefield-images"}, Data: map[string]string{"4.20.4": "quay.io/example/bluefield:4.20.4"}},
	}
	for n := range b.bridges {
		all = append(all,
			&corev1.Secret{ObjectMeta: at(name(n) + "-ssh"), Data: map[string][]byte{bridge.SSHKeyKey: []byte("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f")}},
			&corev1.Secret{ObjectMeta: at(name(n) + "-pull"), Data: map[string][]byte{bridge.PullSecretKey: []byte(`{"auths": {"quay.io": {"auth": "dTpw"}}}`)}},
			&dpf.DPUCluster{ObjectMeta: at(name(n)), Spec: dpf.DPUClusterSpec{Type: "example.com/hosted"}},
			&dpuv1.DPUHCPBridge{ObjectMeta: at(name(n)), Spec: dpuv1.DPUHCPBridgeSpec{
				DPUClusterRef: dpuv1.DPUClusterReference{Name: v1alpha1.ObjectName(name(n))}, BaseDomain: "example.com", OCPReleaseImage: release,
				SSHKey: dpuv1.SecretName(name(n) + "-ssh"), PullSecret: dpuv1.SecretName(name(n) + "-pull"),
				ExposeThroughLoadBalancer: true, MetalLBVirtualIP: v1alpha1.IPAddress(fmt.Sprintf("198.18.%d.%d", n/250, 1+n%250)),
			}})
	}
	for _, o := range all {
		if err := b.api.Create(ctx, o); err != nil {
			return fmt.Errorf("creating %T %s: %w", o, o.GetName(), err)
		}
	}
	return nil
}

// manage runs the manager where the names of hosted APIs lead to the one that there is.
func (b bench) manage(ctx context.Context, binary string) error {
	listener, err := net.Listen("tcp", net.JoinHostPort(hostedAPI, hostedPort))
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, func() { _ = listener.Close() })
	go relay(listener, strings.Trim(strings.TrimPrefix(b.hosted.Admin.Host, "https:"), "/"))
	hosts := filepath.Join(os.TempDir(), "oooi-bridges-hosts")
	if err := os.WriteFile(hosts, []byte("127.0.0.1 localhost\n"+hostedAPI+" "+strings.Join(apis(b.bridges), "\n"+hostedAPI+" ")+"\n"), 0o600); err != nil {
		return err
	}
	manager := exec.CommandContext(ctx, "sh", "-c", `mount --bind "$0" /etc/hosts && exec "$@"`, hosts, //nolint:gosec // both are ours
		binary, "manager", "--metrics-bind-address=0", "--bridge-virtual-ips=198.18.0.0/16", "--health-probe-bind-address=0", "--image=e2e.local/oooi:dev", "--envoy-image=e2e.local/envoy:lab")
	manager.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	return b.Manage(manager)
}

// relay connections to an address.
func relay(from net.Listener, to string) {
	for {
		here, err := from.Accept()
		if err != nil {
			return // it is closed
		}
		go func() {
			defer here.Close()
			there, err := net.Dial("tcp", to)
			if err != nil {
				return
			}
			defer there.Close()
			go io.Copy(there, here) //nolint:errcheck // whichever way ends first, both are closed
			_, _ = io.Copy(here, there)
		}()
	}
}

// hyperShift serves each HostedCluster as soon as it is asked for.
func (b bench) hyperShift(ctx context.Context) error {
	kubeconfig, err := b.hosted.Kubeconfig()
	if err != nil {
		return err
	}
	for n := range b.bridges {
		hc, pool := &hyperv1.HostedCluster{}, &hyperv1.NodePool{}
		for _, o := range []client.Object{hc, pool} {
			if err := b.Until(ctx, func() (bool, error) {
				err := b.api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name(n)}, o)
				return err == nil, client.IgnoreNotFound(err)
			}); err != nil {
				return err
			}
		}
		if err := hypershift.Serve(ctx, b.api, hc, pool, kubeconfig); err != nil {
			return fmt.Errorf("serving HostedCluster %s: %w", hc.Name, err)
		}
	}
	return nil
}

// ready says whether all bridges are, and approve certificates.
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
