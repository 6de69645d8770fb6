package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/cldmnky/oooi/internal/check"
	"github.com/cldmnky/oooi/internal/controller"
	"github.com/cldmnky/oooi/internal/live"
	"github.com/cldmnky/oooi/internal/observe"
	"github.com/cldmnky/oooi/internal/plan/bridge"
	"github.com/cldmnky/oooi/internal/plan/input"
	"github.com/cldmnky/oooi/internal/webhook"
)

// garbagePercent is Go's GOGC: a fifth of its default, for a manager of 500 Infras. A memory limit (SetMemoryLimit) below the live heap
// would make it do little but collect.
const garbagePercent = 20

// blueFieldImages is the default name of the ConfigMap that maps releases to BlueField container images.
const blueFieldImages = "ocp-bluefield-images"

// managerFlags are the flags besides those that planning depends on.
type managerFlags struct {
	metricsAddress, probeAddress string
	metricsSecure, elect         bool
	namespace, logLevel          string
	webhookAddress, webhookCerts string
	uiAddress                    string
	vlanServices, dpuBridge      bool
	bridges                      bridge.Settings
}

func newManagerCommand() *cobra.Command {
	var flags managerFlags
	var settings input.Settings
	cmd := &cobra.Command{
		Use:   "manager",
		Short: "Run the operator's controllers",
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runManager(cmd.Context(), flags, settings)
		},
	}
	flags.bind(cmd)
	bindSettings(cmd, &settings)
	return cmd
}

func (flags *managerFlags) bind(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&flags.metricsAddress, "metrics-bind-address", "0", "ip:port of /metrics; 0 disables it")
	f.BoolVar(&flags.metricsSecure, "metrics-secure", true, "serve metrics over HTTPS, only to clients that the API server authorises")
	f.StringVar(&flags.probeAddress, "health-probe-bind-address", ":8081", "ip:port of /healthz and /readyz; 0 disables them")
	f.BoolVar(&flags.elect, "leader-elect", false, "elect a leader among several managers; only the leader reconciles")
	f.StringVar(&flags.namespace, "leader-election-namespace", "", "namespace of the leader election Lease and of the webhook's Secret (default: the pod's)")
	f.StringVar(&flags.webhookAddress, "webhook-bind-address", "0", "ip:port of the admission webhook; 0 disables it")
	f.StringVar(&flags.webhookCerts, "webhook-cert-dir", "", "directory with tls.crt and tls.key of the webhook, which e.g. cert-manager renews (default: the manager creates and renews them in a Secret)")
	f.StringVar(&flags.uiAddress, "ui-bind-address", "0", "ip:port at which the pages of oooi ui are served over HTTPS; the API server decides who is a user and what each may read; 0 disables them")
	f.BoolVar(&flags.vlanServices, "vlan-services", true, "reconcile Infras and their children")
	f.BoolVar(&flags.dpuBridge, "dpu-bridge", true, "reconcile DPUHCPBridges")
	f.StringVar(&flags.bridges.MetalLBNamespace, "metallb-namespace", "metallb-system", "namespace of MetalLB and its IPAddressPools")
	f.Var((*prefixes)(&flags.bridges.VirtualIPs), "bridge-virtual-ips", "networks from which bridges may let MetalLB announce metalLBVirtualIP; do not list networks of nodes, pods or Services (default none)")
	f.StringVar(&flags.bridges.Images.Name, "bluefield-images", blueFieldImages, "ConfigMap in the manager's namespace that maps OpenShift releases to BlueField container images")
	f.StringVar(&flags.logLevel, "log-level", "info", "debug, info, warn or error")
}

func runManager(ctx context.Context, flags managerFlags, settings input.Settings) error {
	if err := requireImages(settings); flags.vlanServices && err != nil {
		return err
	}
	if _, err := logger(flags.logLevel); err != nil {
		return err
	}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(clientcmd.NewDefaultClientConfigLoadingRules(), nil).ClientConfig()
	if err != nil {
		return fmt.Errorf("finding the cluster (set KUBECONFIG or run in a pod): %w", err)
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbagePercent)
	}
	config.QPS = -1 // the API server's own priority and fairness is the limit
	admission := flags.webhook()
	manager, err := newManager(config, flags, admission)
	if err != nil {
		return err
	}
	if settings, err = observe.Cluster(settings); err != nil {
		return err
	}
	if err := controller.Setup(manager, settings, flags.groups(), answering(manager, admission)); err != nil {
		return err
	}
	if err := metrics.Registry.Register(controller.Conditions(manager.GetClient(), flags.groups())); err != nil {
		return err
	}
	if err := flags.serveUI(ctx, manager, admission); err != nil {
		return err
	}
	return manager.Start(ctx)
}

// serveUI adds the pages, served with the webhook's certificate, as metrics are.
func (flags managerFlags) serveUI(ctx context.Context, manager ctrl.Manager, admission webhook.Options) error {
	if flags.uiAddress == "0" {
		return nil
	}
	config, connections := manager.GetConfig(), manager.GetHTTPClient()
	api, err := client.New(config, client.Options{Scheme: manager.GetScheme(), Mapper: manager.GetRESTMapper(), HTTPClient: connections})
	if err != nil {
		return err
	}
	reviews, err := kubernetes.NewForConfigAndClient(config, connections)
	if err != nil {
		return err
	}
	pages := live.New(ctx, live.NewReviews(api, reviews, time.Now).Who)
	options := server.Options{BindAddress: flags.uiAddress, SecureServing: true, ExtraHandlers: map[string]http.Handler{"/": pages}}
	admission.ServeBy(&options)
	// controller-runtime's server of metrics renews certificates; its filter puts the pages in place of the metrics, too.
	options.FilterProvider = func(*rest.Config, *http.Client) (server.Filter, error) {
		return func(logr.Logger, http.Handler) (http.Handler, error) { return pages, nil }, nil
	}
	serving, err := server.NewServer(options, config, connections)
	if err != nil {
		return fmt.Errorf("--ui-bind-address %q: %w", flags.uiAddress, err)
	}
	return manager.Add(serving)
}

// groups that are enabled.
func (flags managerFlags) groups() controller.Groups {
	groups := controller.Groups{VLAN: flags.vlanServices}
	if flags.dpuBridge {
		flags.bridges.Images.Namespace = cmp.Or(flags.namespace, podNamespace(), "default")
		groups.Bridges = &flags.bridges
	}
	return groups
}

func (flags managerFlags) webhook() webhook.Options {
	return webhook.Options{
		Address: flags.webhookAddress, CertDir: flags.webhookCerts, Namespace: cmp.Or(flags.namespace, podNamespace()), Bridges: flags.groups().Bridges, Now: time.Now,
		Certificate: &webhook.Certificate{},
	}
}

// answering sets up the webhook, which judges by what the controllers see.
func answering(manager ctrl.Manager, o webhook.Options) func(*observe.Observer, *controller.Hosted) error {
	return func(seen *observe.Observer, _ *controller.Hosted) error {
		if o.Address == "0" {
			return nil
		}
		return webhook.Setup(manager, seen, o)
	}
}

// podNamespace is empty outside a pod.
func podNamespace() string {
	text, err := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// metrics are served to those whom the API server allows, with the webhook's certificate.
func (flags managerFlags) metrics(admission webhook.Options) server.Options {
	metrics := server.Options{BindAddress: flags.metricsAddress, SecureServing: flags.metricsSecure}
	if flags.metricsSecure {
		metrics.FilterProvider = controller.Authorized
		admission.ServeBy(&metrics)
	}
	return metrics
}

func newManager(config *rest.Config, flags managerFlags, admission webhook.Options) (ctrl.Manager, error) {
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: controller.Scheme(), Cache: controller.CacheOptions(), Client: controller.ClientOptions(), Metrics: flags.metrics(admission), HealthProbeBindAddress: flags.probeAddress,
		LeaderElection: flags.elect, LeaderElectionID: check.LeaseName, LeaderElectionNamespace: flags.namespace,
		LeaderElectionReleaseOnCancel: true, LeaderElectionLabels: map[string]string{check.LabelVersion: check.Version(version())},
	})
	if err != nil {
		return nil, fmt.Errorf("preparing the manager: %w", err)
	}
	if err := errors.Join(manager.AddHealthzCheck("alive", healthz.Ping), manager.AddReadyzCheck("alive", healthz.Ping)); err != nil {
		return nil, err
	}
	return manager, nil
}
