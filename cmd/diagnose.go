package cmd

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/dhcp/clock"
	"github.com/cldmnky/oooi/internal/diagnose"
	"github.com/cldmnky/oooi/internal/diagnosecli"
	"github.com/cldmnky/oooi/internal/step"
)

func newDiagnoseCommand() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "diagnose INFRA|VM",
		Short: "Show how far a worker came on its way to a Node, and what stops it",
		Long: "Walks the boot path of a worker: machine and network card, lease, host name, names, proxy and its backends, Ignition,\n" +
			"certificate, Node, konnectivity. It stops at the first break, and says what mends it; docs/DIAGNOSE.md explains each\n" +
			"cause. Of an Infra it shows what all workers need, then each worker; one that has joined has one line.\n\n" +
			"It reads with your own permissions, also in the hosted cluster, with that cluster's kubeconfig. What you may not read\n" +
			"is said, and the rest is looked at.\n\n" +
			"Exit code: 0 if nothing is broken, 1 if something is, 2 if the Infra or worker cannot be found.",
		Example: "  oooi diagnose c1 -n clusters\n  oooi diagnose c1-workers-x7k2p -n clusters -o json",
		Args:    oneName,
	}
	cluster := bindCluster(cmd)
	cmd.Flags().StringVarP(&output, "output", "o", "text", "text or json")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		write, is := map[string]func(io.Writer, []step.Step) error{"text": step.Lines, "json": step.JSON}[output]
		if !is {
			return asUnusable(fmt.Errorf("--output %s: write text or json", output))
		}
		steps, err := diagnosed(cmd, cluster, args[0])
		if err != nil {
			return asUnusable(err)
		}
		if err := write(cmd.OutOrStdout(), steps); err != nil || step.Worst(steps) != step.Fail {
			return err
		}
		return fmt.Errorf("something is broken on the way of %s", args[0])
	}
	return completing(cmd, cluster, infraKind)
}

// diagnosed finds what a name means, reads it and judges it.
func diagnosed(cmd *cobra.Command, cluster *clusterFlags, name string) ([]step.Step, error) {
	ctx, cancel := context.WithTimeout(cmd.Context(), perInfra)
	defer cancel()
	namespace, err := cluster.namespace()
	if err != nil {
		return nil, err
	}
	apiServer := clock.New() // every answer has the API server's time
	api, err := cluster.clientListening(cmd.ErrOrStderr(), apiServer.Listen)
	if err != nil {
		return nil, err
	}
	all, meant, err := diagnosecli.Infras(ctx, api, types.NamespacedName{Namespace: namespace, Name: name})
	if err != nil {
		return nil, err
	}
	unread := map[string]bool{}
	for i := range meant {
		facts := seen(cmd.Context(), apiServer, api, &meant[i])
		facts.Others = all
		if meant[i].Name == name {
			return diagnose.Infra(facts), nil
		}
		if steps, is := diagnose.Worker(facts, name); is {
			return steps, nil
		}
		unread["virtual machines: "+facts.Machines.Unread] = facts.Machines.Unread != ""
		unread["leases: "+facts.Leases.Unread] = facts.Leases.Unread != ""
	}
	return nil, nobody(namespace, name, unread)
}

// perInfra is the time to read one Infra's surroundings.
const perInfra = 9 * time.Second

func seen(ctx context.Context, apiServer *clock.Clock, api client.Client, infra *v1alpha1.Infra) diagnose.Facts {
	ctx, cancel := context.WithTimeout(ctx, perInfra)
	defer cancel()
	return diagnosecli.See(ctx, api, infra, apiServer.NowOr(time.Now()))
}

// nobody has a name, unless something that was not read has it.
func nobody(namespace, name string, unread map[string]bool) error {
	maps.DeleteFunc(unread, func(_ string, is bool) bool { return !is })
	if len(unread) > 0 {
		return fmt.Errorf("no Infra in namespace %s is called %s, and no worker that was read; not read were %s", namespace, name, strings.Join(slices.Sorted(maps.Keys(unread)), "; "))
	}
	return elsewhere(namespace, name, ", and no worker of one")
}

// elsewhere says that no Infra of the namespace has a name, and what to do.
func elsewhere(namespace, name, nor string) error {
	return fmt.Errorf("no Infra in namespace %s is called %s%s: choose the Infra's namespace with -n", namespace, name, nor)
}
