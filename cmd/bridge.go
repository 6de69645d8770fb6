package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/internal/bridgecli"
	"github.com/cldmnky/oooi/internal/render"
)

func newBridgeCommand() *cobra.Command {
	cmd := ofSubcommands(&cobra.Command{Use: "bridge", Short: "Create a hosted cluster for the DPUs of a DPUCluster, show its state, and upgrade it"})
	cmd.AddCommand(newBridgeCreateCommand(), newBridgeStatusCommand(), newBridgeUpgradeCommand())
	return cmd
}

// oneName checks that there is one argument, and that all required flags are given.
func oneName(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) > 1: // one may be of a flag that takes its value only after =, as in --flannel-enabled false
		return asUnusable(fmt.Errorf("give one name, not %d (%s): %s", len(args), strings.Join(args, ", "), cmd.UseLine()))
	case len(args) == 0 || args[0] == "":
		return asUnusable(fmt.Errorf("give one name: %s", cmd.UseLine()))
	}
	return asUnusable(cmd.ValidateRequiredFlags())
}

// bridgeOrder is what the flags say about a bridge to create.
type bridgeOrder struct {
	bridgecli.Order
	sshKeyFile, pullSecretFile string
	nodeSelector               map[string]string
	output                     string
	dryRun                     bool
}

func newBridgeCreateCommand() *cobra.Command {
	var order bridgeOrder
	cmd := &cobra.Command{
		Use:   "create NAME --dpu-cluster NAMESPACE/NAME --base-domain DOMAIN --ssh-key FILE --pull-secret FILE --release-image IMAGE",
		Short: "Create a DPUHCPBridge and, from files, its Secrets",
		Long: "Applies Secrets NAME-ssh-key and NAME-pull-secret with the content of the files, and DPUHCPBridge NAME. If you run it\n" +
			"again with other files or another release image, it changes them. The other flags set the fields of the same name\n" +
			"(kubectl explain dpuhcp.spec). -o yaml prints it all, for Git; with --dry-run only what the cluster would take.\n\n" +
			"Exit code: 0 if everything was applied, 1 if the cluster refused something, 2 if flags or files are invalid.",
		Example: "  oooi bridge create dpu1 -n clusters --dpu-cluster dpf-operator-system/dpu1 --base-domain example.com \\\n" +
			"    --ssh-key ~/.ssh/id_ed25519.pub --pull-secret pull-secret.json \\\n" +
			"    --release-image quay.io/openshift-release-dev/ocp-release:4.20.4-multi",
		Args: oneName,
	}
	cluster := bindCluster(cmd)
	order.bind(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		order.Name = args[0]
		return order.run(cmd, cluster)
	}
	return cmd
}

func (o *bridgeOrder) bind(cmd *cobra.Command) {
	flags, spec := cmd.Flags(), &o.Spec
	flags.StringVar(&o.DPUCluster, "dpu-cluster", "", "DPUCluster, as namespace/name, or a name in the bridge's namespace")
	flags.StringVar((*string)(&spec.BaseDomain), "base-domain", "", "base domain of the hosted cluster, e.g. example.com")
	flags.StringVar(&o.sshKeyFile, "ssh-key", "", "file with public SSH keys")
	flags.StringVar(&o.pullSecretFile, "pull-secret", "", "file with the pull secret")
	flags.StringVar((*string)(&spec.OCPReleaseImage), "release-image", "", "release image of OpenShift, multi-arch or arm64")
	for _, required := range []string{"dpu-cluster", "base-domain", "ssh-key", "pull-secret", "release-image"} {
		_ = cmd.MarkFlagRequired(required)
	}
	flags.StringVar(&o.DPUDeployment, "dpu-deployment", "", "DPUDeployment, as namespace/name, or a name in the bridge's namespace: the first DPU is installed from its BFB and DPUFlavor")
	flags.BoolVar(&spec.ManageDPUServiceTemplates, "manage-dpu-service-templates", false, "make the DPUServiceTemplates of the DPUDeployment, as far as they are known for the version of DPF")
	flags.StringVarP(&o.output, "output", "o", "", "yaml: print what would be applied, including Secrets; without --dry-run no cluster is asked")
	flags.BoolVar(&o.dryRun, "dry-run", false, "let the cluster validate everything, but store nothing")
	o.bindHostedCluster(cmd)
}

// bindHostedCluster binds what a hosted cluster is created with, and can seldom change.
func (o *bridgeOrder) bindHostedCluster(cmd *cobra.Command) {
	flags, spec := cmd.Flags(), &o.Spec
	flags.StringVar((*string)(&spec.EtcdStorageClass), "etcd-storage-class", "", "StorageClass of etcd's volumes (default: the default StorageClass)")
	flags.StringVar((*string)(&spec.ControlPlaneAvailabilityPolicy), "control-plane-availability-policy", "", "SingleReplica or HighlyAvailable")
	flags.StringVar((*string)(&spec.InfrastructureAvailabilityPolicy), "infrastructure-availability-policy", "", "SingleReplica or HighlyAvailable")
	flags.BoolVar(&spec.ExposeThroughLoadBalancer, "expose-through-load-balancer", false, "publish the API through a load balancer")
	flags.StringVar((*string)(&spec.MetalLBVirtualIP), "metallb-virtual-ip", "", "address that MetalLB assigns to the API; with --expose-through-load-balancer")
	flags.StringVar(&spec.ClusterType, "cluster-type", "", "type of the DPUCluster")
	flags.StringVar((*string)(&spec.DPUClusterDeletionPolicy), "dpu-cluster-deletion-policy", "", "Retain or Delete")
	flags.StringVar((*string)(&spec.MachineOSImage), "machine-os-image", "", "OS image of the DPUs")
	flags.StringVar((*string)(&spec.Rebootstrap), "rebootstrap", "", "Allow or Never: whether a DPU whose Node exists may join again (default: Allow)")
	flags.BoolFunc("flannel-enabled", "give each Node a part of the pods' network, for DPF's flannel; false for another network plugin (default: true)", func(text string) error {
		enabled, err := strconv.ParseBool(text)
		spec.FlannelEnabled = &enabled
		return err
	})
	flags.StringVar(&o.Networks.Cluster, "cluster-network", "", "network of pods (default: 10.132.0.0/14)")
	flags.Int32Var(&o.Networks.HostPrefix, "host-prefix", 0, "prefix length of each DPU's part of --cluster-network")
	flags.StringVar(&o.Networks.Service, "service-network", "", "network of Services (default: 172.31.0.0/16)")
	flags.StringVar(&o.Networks.Machine, "machine-network", "", "network of the DPUs' own addresses")
	flags.StringToStringVar(&o.nodeSelector, "node-selector", nil, "labels of the Nodes on which the control plane may run, e.g. node-role.kubernetes.io/control-plane=")
}

func (o *bridgeOrder) run(cmd *cobra.Command, cluster *clusterFlags) error {
	if o.output != "" && o.output != "yaml" {
		return asUnusable(fmt.Errorf("--output %s: use yaml, or omit it", o.output))
	}
	var errs [3]error
	o.Namespace, errs[0] = cluster.namespace()
	o.SSHKey, errs[1] = contentOf(o.sshKeyFile)
	o.PullSecret, errs[2] = contentOf(o.pullSecretFile)
	if err := errors.Join(errs[:]...); err != nil {
		return asUnusable(err)
	}
	for label, value := range o.nodeSelector {
		if o.Spec.NodeSelector == nil {
			o.Spec.NodeSelector = map[string]dpuv1.NodeLabelValue{}
		}
		o.Spec.NodeSelector[label] = dpuv1.NodeLabelValue(value)
	}
	objects, err := o.Objects() // files and flags are judged before any cluster is asked
	if err != nil {
		return asUnusable(err)
	}
	if o.dryRun || o.output == "" {
		if err := o.apply(cmd, cluster); err != nil || o.output == "" {
			return err
		}
	}
	return render.YAML(cmd.OutOrStdout(), objects)
}

// apply reports on standard error what -o yaml prints on standard output.
func (o *bridgeOrder) apply(cmd *cobra.Command, cluster *clusterFlags) error {
	api, err := cluster.client(cmd.ErrOrStderr())
	if err != nil {
		return asUnusable(err)
	}
	quiet, err := cluster.client(io.Discard)
	if err != nil {
		return asUnusable(err)
	}
	done, options := "applied", []client.ApplyOption(nil)
	if o.dryRun {
		done, options = "would be applied", append(options, client.DryRunAll)
	}
	to := cmd.OutOrStdout()
	if o.output != "" {
		to = cmd.ErrOrStderr()
	}
	told := func(what string) { fmt.Fprintln(to, what, done) }
	return o.Apply(cmd.Context(), api, quiet, told, options...)
}

// contentOf a file for a Secret, which can have at most 1 MiB (k8s.io/api/core/v1.MaxSecretSize).
func contentOf(name string) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, corev1.MaxSecretSize+1))
	if len(text) > corev1.MaxSecretSize {
		return nil, fmt.Errorf("%s has more than %d bytes, the limit of a Secret: is it the right file?", name, corev1.MaxSecretSize)
	}
	return text, err
}

func newBridgeStatusCommand() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "status NAME",
		Short: "Show the state of a DPUHCPBridge",
		Long: "Prints the conditions of a DPUHCPBridge, a row for each of its DPUs, and what will keep them from being installed.\n" +
			"docs/reference/bridge.md says what to do about each condition, docs/DPU_BRIDGE.md about the rest. What you may not read is left out, and said.\n\n" +
			"Exit code: 0 if DPUs can join, 1 if they cannot (yet), 2 if the bridge cannot be read.",
		Args: oneName,
	}
	cluster := bindCluster(cmd)
	cmd.Flags().StringVarP(&output, "output", "o", "table", "table or json")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		write, ok := map[string]func(io.Writer, bridgecli.Standing, time.Time) error{"table": bridgecli.Table, "json": bridgecli.JSON}[output]
		if !ok {
			return asUnusable(fmt.Errorf("--output %s: write table or json", output))
		}
		standing, err := standingOf(cmd.Context(), cluster, cmd.ErrOrStderr(), args[0])
		if err != nil {
			return asUnusable(err)
		}
		if err := write(cmd.OutOrStdout(), standing, time.Now()); err != nil || standing.Ready {
			return err
		}
		return fmt.Errorf("bridge %s/%s is not ready", standing.Namespace, standing.Name)
	}
	return completing(cmd, cluster, bridgeKind)
}

func standingOf(ctx context.Context, cluster *clusterFlags, warnings io.Writer, name string) (bridgecli.Standing, error) {
	namespace, err := cluster.namespace()
	if err != nil {
		return bridgecli.Standing{}, err
	}
	api, err := cluster.client(warnings)
	if err != nil {
		return bridgecli.Standing{}, err
	}
	b := &dpuv1.DPUHCPBridge{}
	if err := api.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, b); err != nil {
		return bridgecli.Standing{}, fmt.Errorf("reading DPUHCPBridge %s/%s: %w", namespace, name, err)
	}
	seen, err := bridgecli.See(ctx, api, b)
	if err == nil {
		seen, err = bridgecli.SeeAhead(ctx, api, b, seen)
	}
	return bridgecli.Of(b, seen), err
}
