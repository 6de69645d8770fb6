// Command standin brings up the stand-in for HyperShift in the lab's cluster, and serves its parts inside it.
package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/cldmnky/oooi/test/lab/standin"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root := &cobra.Command{Use: "standin", Short: "a hosted control plane without HyperShift", SilenceUsage: true}
	root.AddCommand(applyCommand(), adoptCommand(), workerCommand(), userDataCommand(), kubeconfigCommand(), deleteCommand(), serveCommand(), waitCommand())
	if err := root.ExecuteContext(ctx); err != nil {
		stop()
		os.Exit(1)
	}
}

func clusterFlags(cmd *cobra.Command) *standin.Cluster {
	c := &standin.Cluster{}
	f := cmd.Flags()
	f.StringVar(&c.Name, "cluster", "c1", "name of the HostedCluster in namespace "+standin.HostedClusterNamespace)
	f.StringVar((*string)(&c.Strategy), "strategy", string(standin.LoadBalancer), fmt.Sprintf("how the services are published: %v", standin.Strategies()))
	f.StringVar(&c.BaseDomain, "base-domain", "hosted.example.com", "base domain of the hosted cluster")
	f.StringVar(&c.IngressDomain, "ingress-domain", "apps.mgmt.example.com", "domain of the management cluster's Routes")
	f.StringVar(&c.LBAddress, "lb-address", "203.0.113.10", "address that the load balancer gives; no one else may have it")
	f.StringVar(&c.NodeAddress, "node-address", "", "nodePort.address: a node's name or IP (default: the address of one)")
	f.StringVar(&c.IgnitionHost, "ignition-host", "", "host of the ignition Route, instead of the one made from its name")
	f.StringVar(&c.AttachedTo, "nad", "default/vlan100", "network attachment definition of the NodePool's machines, namespace/name")
	return c
}

// inLab runs do with the cluster of $KUBECONFIG, for at most ten minutes.
func inLab(cmd *cobra.Command, do func(context.Context, *standin.Lab) error) error {
	c, _, err := standin.Connect("")
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), 10*time.Minute)
	defer cancel()
	return do(ctx, standin.NewLab(c, cmd.ErrOrStderr()))
}

// stateDir is the default of --out, where files for people and virtual machines are written: the running lab's own directory, because two
// labs have clusters of the same name.
func stateDir(cmd *cobra.Command) *string {
	return cmd.Flags().String("out", filepath.Join(cmp.Or(os.Getenv("LAB_STATE"), os.TempDir()), "standin"), "directory for the file written")
}

func applyCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "apply", Short: "Bring a hosted control plane up, or to what the flags say now", Args: cobra.NoArgs}
	cluster := clusterFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return inLab(cmd, func(ctx context.Context, lab *standin.Lab) error { return lab.Apply(ctx, *cluster) })
	}
	return cmd
}

func adoptCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "adopt", Short: "Bring up the control plane of a HostedCluster that somebody else has made", Args: cobra.NoArgs}
	cluster := clusterFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return inLab(cmd, func(ctx context.Context, lab *standin.Lab) error { return lab.Adopt(ctx, *cluster) })
	}
	return cmd
}

func deleteCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "delete", Short: "Remove a hosted control plane", Args: cobra.NoArgs}
	cluster := clusterFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return inLab(cmd, func(ctx context.Context, lab *standin.Lab) error { return lab.Delete(ctx, *cluster) })
	}
	return cmd
}

func workerCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "worker", Short: "Make a virtual machine known and print the file of its user data", Args: cobra.NoArgs}
	cluster, out := clusterFlags(cmd), stateDir(cmd)
	w := standin.Worker{}
	cmd.Flags().StringVar(&w.Name, "name", "worker-1", "name of the machine, which becomes its Node's")
	cmd.Flags().StringVar(&w.MAC, "mac", "52:54:00:00:01:01", "hardware address of its only card")
	remove := cmd.Flags().Bool("remove", false, "forget the machine instead")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		w.Network = cluster.AttachedTo
		return inLab(cmd, func(ctx context.Context, lab *standin.Lab) error {
			if *remove {
				return lab.RemoveWorker(ctx, *cluster, w)
			}
			path, err := lab.AddWorker(ctx, *cluster, w, *out)
			if err == nil {
				fmt.Fprintln(cmd.OutOrStdout(), path)
			}
			return err
		})
	}
	return cmd
}

func userDataCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "user-data", Short: "Print the file that a machine of the NodePool boots with, whoever provisions it", Args: cobra.NoArgs}
	cluster, out := clusterFlags(cmd), stateDir(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return inLab(cmd, func(ctx context.Context, lab *standin.Lab) error {
			path, err := lab.UserData(ctx, *cluster, *out)
			if err == nil {
				fmt.Fprintln(cmd.OutOrStdout(), path)
			}
			return err
		})
	}
	return cmd
}

func kubeconfigCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "kubeconfig", Short: "Print the file of an administrator's kubeconfig that goes by the Service's cluster address", Args: cobra.NoArgs}
	cluster, out := clusterFlags(cmd), stateDir(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return inLab(cmd, func(ctx context.Context, lab *standin.Lab) error {
			path, err := lab.Kubeconfig(ctx, *cluster, *out)
			if err == nil {
				fmt.Fprintln(cmd.OutOrStdout(), path)
			}
			return err
		})
	}
	return cmd
}

func waitCommand() *cobra.Command {
	return &cobra.Command{Use: "wait URL", Short: "Return when the address answers 200", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return standin.WaitFor(cmd.Context(), args[0]) }}
}
