package cmd

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cldmnky/oooi/internal/csrcli"
)

func newCSRCommand() *cobra.Command {
	cmd := ofSubcommands(&cobra.Command{Use: "csr", Short: "Show why a DPU's certificate is approved, or not"})
	cmd.AddCommand(newCSRExplainCommand())
	return cmd
}

func newCSRExplainCommand() *cobra.Command {
	var bridge, output string
	cmd := &cobra.Command{
		Use:   "explain CSR --bridge NAME",
		Short: "Show how each rule decides about a CSR in a bridge's hosted cluster, and why",
		Long: "Reads the bridge, its HostedCluster, the kubeconfig Secret and the DPUs with your own permissions, the CSR and all else\n" +
			"from the hosted cluster with that kubeconfig, and decides with the operator's code. It approves nothing.\n\n" +
			"Exit code: 0 if it would be approved now, 1 if not (also if it is decided already, or if the operator approves\n" +
			"nothing for the bridge), 2 if something cannot be read.",
		Example: "  oooi csr explain csr-7x2kq --bridge dpu1 -n clusters",
		Args:    oneName,
	}
	cluster := bindCluster(cmd)
	cmd.Flags().StringVar(&bridge, "bridge", "", "name of the DPUHCPBridge")
	cmd.Flags().StringVarP(&output, "output", "o", "table", "table or json")
	_ = cmd.MarkFlagRequired("bridge")
	_ = cmd.RegisterFlagCompletionFunc("bridge", cluster.completes(bridgeKind))
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		write, ok := map[string]func(io.Writer, csrcli.Report) error{"table": csrcli.Table, "json": csrcli.JSON}[output]
		if !ok {
			return asUnusable(fmt.Errorf("--output %s: write table or json", output))
		}
		report, err := reportOn(cmd, cluster, bridge, args[0])
		if err != nil {
			return asUnusable(err)
		}
		if err := write(cmd.OutOrStdout(), report); err != nil || report.Approve {
			return err
		}
		return fmt.Errorf("CSR %s would not be approved", report.Name)
	}
	return cmd
}

func reportOn(cmd *cobra.Command, cluster *clusterFlags, bridge, name string) (csrcli.Report, error) {
	namespace, err := cluster.namespace()
	if err != nil {
		return csrcli.Report{}, err
	}
	api, err := cluster.client(cmd.ErrOrStderr())
	if err != nil {
		return csrcli.Report{}, err
	}
	return csrcli.Explain(cmd.Context(), api, types.NamespacedName{Namespace: namespace, Name: bridge}, name)
}
