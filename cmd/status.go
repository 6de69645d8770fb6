package cmd

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/dhcp/clock"
	"github.com/cldmnky/oooi/internal/picture"
	"github.com/cldmnky/oooi/internal/step"
)

func newStatusCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status INFRA",
		Short: "Draw an Infra: its services, upstreams and pool, and how far each worker is in its boot",
		Long: "Draws the VLAN with its services and their instances, what the proxy forwards to, how full the pool is, and a row for each\n" +
			"worker with a mark for each stage of its boot. oooi ui draws the same in a browser, live; oooi diagnose says what mends\n" +
			"what is broken. docs/STATUS.md explains it.\n\n" +
			"It reads with your own permissions, also in the hosted cluster. What you may not read is said, and the rest is drawn.\n\n" +
			"Exit code: 0 if a worker that boots now can join, 1 if not (yet), 2 if the Infra cannot be read.",
		Example: "  oooi status c1 -n clusters",
		Args:    oneName,
	}
	cluster := bindCluster(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		page, err := pageOf(cmd, cluster, args[0])
		if err != nil {
			return asUnusable(err)
		}
		if err := picture.Text(cmd.OutOrStdout(), page); err != nil || page.Ready == step.OK {
			return err
		}
		return fmt.Errorf("Infra %s is not ready", args[0])
	}
	return completing(cmd, cluster, infraKind)
}

func pageOf(cmd *cobra.Command, cluster *clusterFlags, name string) (page picture.Page, err error) {
	namespace, err := cluster.namespace()
	if err != nil {
		return page, err
	}
	apiServer := clock.New()
	api, err := cluster.clientListening(cmd.ErrOrStderr(), apiServer.Listen)
	if err != nil {
		return page, err
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), perInfra)
	defer cancel()
	var infra v1alpha1.Infra
	err = api.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, &infra)
	if apierrors.IsNotFound(err) {
		return page, elsewhere(namespace, name, "")
	}
	if err != nil {
		return page, err
	}
	return picture.Of(seen(cmd.Context(), apiServer, api, &infra)), nil
}
