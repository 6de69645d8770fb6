package cmd

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/cldmnky/oooi/internal/moving"
	"github.com/cldmnky/oooi/internal/render"
)

func newImportCommand() *cobra.Command {
	var files []string
	cmd := &cobra.Command{
		Use:   "import -f FILE …",
		Short: "Print DPUHCPBridges for manifests of the DPF HCP provisioner operator",
		Long: "Reads DPFHCPProvisioners and the DPFHCPProvisionerConfig, as `kubectl get -o yaml` prints them, and prints a\n" +
			"DPUHCPBridge for each DPFHCPProvisioner. Secrets keep their names. What has no counterpart is reported on standard\n" +
			"error, with the field and what to do. docs/DPU_BRIDGE.md says how to keep a hosted cluster that exists.\n\n" +
			"Exit code: 0 if the bridges can be applied as they are, 1 if something must be changed first, 2 if files or flags\n" +
			"cannot be read.",
		Example: "  kubectl get dpfhcpprovisioners,dpfhcpprovisionerconfigs -A -o yaml | oooi import -f - > bridges.yaml",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 || len(files) == 0 {
				return asUnusable(errors.New("give each file with -f, or - for standard input"))
			}
			objects, err := readFiles(cmd, files)
			if err != nil {
				return asUnusable(err)
			}
			moves := moving.All(objects)
			if len(moves) == 0 {
				return asUnusable(errors.New("the files contain no DPFHCPProvisioner and no DPFHCPProvisionerConfig (provisioning.dpu.hcp.io/v1alpha1)"))
			}
			return tellMoves(cmd, moves)
		},
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return asUnusable(err) })
	cmd.Flags().StringArrayVarP(&files, "filename", "f", nil, "file, or directory to read recursively, - for standard input; can be repeated")
	return cmd
}

// tellMoves prints the bridges, reports the findings, and fails if one must be mended.
func tellMoves(cmd *cobra.Command, moves []moving.Move) error {
	var bridges []runtime.ApplyConfiguration
	var failed error
	for _, m := range moves {
		for _, f := range m.Findings {
			fmt.Fprintf(cmd.ErrOrStderr(), "%s: %s: %s %s\n", f.Of, f.Reason, f.Field, f.Message)
		}
		if m.MustMend() {
			failed = errors.Join(failed, fmt.Errorf("%s needs a change before its bridge can be applied", m.From))
		}
		if m.Bridge != nil {
			bridges = append(bridges, m.Bridge)
		}
	}
	return errors.Join(render.YAML(cmd.OutOrStdout(), bridges), failed)
}
