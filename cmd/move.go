package cmd

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cldmnky/oooi/internal/movecli"
)

func newMoveCommand() *cobra.Command {
	var to, output string
	var cutOver bool
	var patience time.Duration
	cmd := &cobra.Command{
		Use: "move INFRA --to CONTEXT", Short: "Move an Infra to another management cluster, with its addresses, MACs and leases",
		Long: "Writes what the other management cluster needs to --output: the NetworkAttachmentDefinition, the Infra with the addresses\n" +
			"that were assigned to it, paused, and its leases. Both clusters stay as they are. What is not in the files is listed.\n\n" +
			"With --cut-over it moves the Infra: it creates network and Infra there, switches the services off here, waits until the\n" +
			"last pod has ended, brings the leases as they are then, and ends the pause there. In between nobody serves the VLAN, and\n" +
			"workers keep their leases. It can be run again after an interruption. docs/MOVING_IN.md has the steps.\n\n" +
			"Exit code: 0 if the files are written and the other cluster can take them, or if the Infra has moved, 1 if not,\n" +
			"2 if flags are invalid or the Infra cannot be read.",
		Example: "  oooi move c1 -n clusters --to west\n  oooi move c1 -n clusters --to west --cut-over",
		Args:    oneName,
	}
	from := bindCluster(cmd)
	cmd.Flags().StringVar(&to, "to", "", "context of the kubeconfig for the other management cluster")
	cmd.Flags().StringVarP(&output, "output", "o", "", "directory to write to (default: move-INFRA)")
	cmd.Flags().BoolVar(&cutOver, "cut-over", false, "move the Infra, instead of writing files")
	cmd.Flags().DurationVar(&patience, "timeout", 5*time.Minute, "how long pods may take to end")
	_ = cmd.MarkFlagRequired("to")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		namespace, err := from.namespace()
		if err != nil {
			return asUnusable(err)
		}
		c, err := betweenClusters(cmd, from, to)
		if err != nil {
			return asUnusable(err)
		}
		c.Infra, c.Patience = types.NamespacedName{Namespace: namespace, Name: args[0]}, patience
		m, err := movecli.Read(cmd.Context(), c.From, c.Infra, time.Now())
		if err != nil {
			return asUnusable(err)
		}
		if cutOver {
			return c.Run(cmd.Context(), m)
		}
		return writeMove(cmd, c, m, output)
	}
	return completing(cmd, from, infraKind)
}

// betweenClusters connects to both clusters.
func betweenClusters(cmd *cobra.Command, from *clusterFlags, to string) (c movecli.CutOver, err error) {
	other := *from
	other.overrides.CurrentContext = to
	c.Tell = func(what string) { fmt.Fprintln(cmd.OutOrStdout(), what) }
	if c.From, err = from.client(cmd.ErrOrStderr()); err != nil {
		return c, err
	}
	here, err := from.rest(cmd.ErrOrStderr())
	if err != nil {
		return c, err
	}
	there, err := other.rest(cmd.ErrOrStderr())
	if err != nil {
		return c, fmt.Errorf("--to %s: %w", to, err)
	}
	if here.Host == there.Host {
		return c, fmt.Errorf("--to %s is this cluster, %s: name the context of the other one", to, here.Host)
	}
	c.To, err = other.client(cmd.ErrOrStderr())
	return c, err
}

func writeMove(cmd *cobra.Command, c movecli.CutOver, m *movecli.Move, dir string) error {
	files, err := m.Files(cmp.Or(dir, "move-"+c.Infra.Name))
	if err != nil {
		return asUnusable(err)
	}
	for _, f := range files {
		c.Tell(f)
	}
	for _, left := range m.Left {
		fmt.Fprintln(cmd.ErrOrStderr(), "not in the files:", left)
	}
	if err := c.Ready(cmd.Context(), m); err != nil {
		return errors.Join(err, errors.New("the files are written, but --cut-over would not have begun"))
	}
	return nil
}
