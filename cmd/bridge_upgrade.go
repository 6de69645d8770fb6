package cmd

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/internal/bridgecli"
	"github.com/cldmnky/oooi/internal/valid"
)

// bridgeUpgrade is what the flags say about an upgrade.
type bridgeUpgrade struct {
	to     string
	images types.NamespacedName
	plan   bool
}

func newBridgeUpgradeCommand() *cobra.Command {
	var u bridgeUpgrade
	cmd := &cobra.Command{
		Use:   "upgrade NAME --to RELEASE-IMAGE [--plan]",
		Short: "Upgrade the hosted cluster of a DPUHCPBridge, or show what comes before and after",
		Long: "Prints, in their order, all that is upgraded for the DPUs of a bridge to get to a release: oooi, the management cluster,\n" +
			"MCE, the hosted cluster, DPF, the DPUs. Each step is done, next, underway, blocked, later, or for you to look at, and says why.\n" +
			"Without --plan, sets ocpReleaseImage of the bridge if that is what comes next; all other steps are yours.\n\n" +
			"Exit code: 0 if nothing is blocked, 1 if a precondition does not hold or the cluster refuses the release, 2 if flags are\n" +
			"invalid or the bridge cannot be read.",
		Example: "  oooi bridge upgrade dpu1 -n clusters --to quay.io/openshift-release-dev/ocp-release:4.20.5-multi --plan",
		Args:    oneName,
	}
	cluster := bindCluster(cmd)
	cmd.Flags().StringVar(&u.to, "to", "", "release image of OpenShift, multi-arch or arm64")
	cmd.Flags().BoolVar(&u.plan, "plan", false, "print the steps, and change nothing")
	cmd.Flags().StringVar(&u.images.Namespace, "operator-namespace", "oooi-system", "namespace of the operator")
	cmd.Flags().StringVar(&u.images.Name, "bluefield-images", blueFieldImages, "ConfigMap in the operator's namespace that maps releases to images, as the manager's flag of this name says")
	_ = cmd.MarkFlagRequired("to")
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return u.run(cmd, cluster, args[0]) }
	return completing(cmd, cluster, bridgeKind)
}

func (u *bridgeUpgrade) run(cmd *cobra.Command, cluster *clusterFlags, name string) error {
	if !valid.Image(u.to) {
		return asUnusable(fmt.Errorf("--to %q is no release image: write its registry, and its tag or digest, e.g. quay.io/openshift-release-dev/ocp-release:4.20.5-multi", u.to))
	}
	namespace, err := cluster.namespace()
	if err != nil {
		return asUnusable(err)
	}
	api, err := cluster.client(cmd.ErrOrStderr())
	if err != nil {
		return asUnusable(err)
	}
	key := types.NamespacedName{Namespace: namespace, Name: name}
	seen, err := bridgecli.ReadPlatform(cmd.Context(), api, key, u.images)
	if err != nil {
		return asUnusable(err)
	}
	if seen.Asked, err = bridgecli.LookUp(cmd.Context(), api, seen, u.to); err != nil {
		return asUnusable(err)
	}
	steps := seen.Upgrade(u.to)
	if err := bridgecli.StepsTable(cmd.OutOrStdout(), steps); err != nil {
		return err
	}
	for _, s := range steps {
		if s.State == bridgecli.Blocked {
			return fmt.Errorf("%s: %s", s.Name, s.Because)
		}
	}
	if u.plan {
		return nil
	}
	if !bridgecli.MayStart(steps) {
		return errors.New("the hosted cluster's release is not what comes next: see the steps above")
	}
	return u.start(cmd, api, seen.Bridge)
}

// start gives the bridge the release, unless somebody else has changed it since it was read.
func (u *bridgeUpgrade) start(cmd *cobra.Command, api client.Client, b *dpuv1.DPUHCPBridge) error {
	changed := b.DeepCopy()
	changed.Spec.OCPReleaseImage = dpuv1.ReleaseImage(u.to)
	if err := api.Patch(cmd.Context(), changed, client.MergeFromWithOptions(b, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("setting ocpReleaseImage of DPUHCPBridge %s/%s: %w", b.Namespace, b.Name, err)
	}
	_, err := io.WriteString(cmd.OutOrStdout(), "ocpReleaseImage is set; follow it with: oooi bridge status "+b.Name+" -n "+b.Namespace+"\n")
	return err
}
