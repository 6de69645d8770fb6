package cmd

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/cldmnky/oooi/internal/plan/input"
	"github.com/cldmnky/oooi/internal/preflight"
)

// unusable is the exit code for input that could not be read.
const unusable = 2

func newPreflightCommand() *cobra.Command {
	var files []string
	var output string
	var settings input.Settings
	cmd := &cobra.Command{
		Use:   "preflight -f FILE …",
		Short: "Check whether a HostedCluster can work on a VLAN, and DPUs can join one, before anything is created",
		Long: "Checks files as the operator checks a cluster, with the same code and the same messages. Give it the Infra (not needed\n" +
			"if the HostedCluster's annotation requests one), its HostedCluster, NodePools and NetworkAttachmentDefinition, and what\n" +
			"else `oooi render` reads; or the directory that `oc adm must-gather` wrote.\n" +
			"If nothing requests an Infra, each HostedCluster is checked as if it did. Of a DPUHCPBridge it also reads the DPUCluster,\n" +
			"DPUs, DPUNodes, DPUFlavors, DPUDeployments, the DPFOperatorConfig and the ConfigMaps with bf.cfg templates;\n" +
			"docs/DPU_BRIDGE.md lists those findings.\n" +
			"Changes are printed as YAML. docs/reference/findings.md lists the codes. Rules of the schema are not checked; use\n" +
			"kubectl apply --dry-run=server.\n\n" +
			"Exit code: 0 if everything would work (there may be warnings), 1 if something would not, 2 if files or\n" +
			"flags cannot be read.",
		Example: "  oooi preflight -f infra.yaml -f hostedcluster.yaml -f nodepool.yaml -f nad.yaml -o json",
		Args:    filesByFlag,
		RunE: func(cmd *cobra.Command, _ []string) error {
			write, ok := map[string]func(io.Writer, []preflight.Report) error{"table": preflight.Table, "json": preflight.JSON}[output]
			if !ok {
				return asUnusable(fmt.Errorf("--output %s: write table or json", output))
			}
			reports, err := preflights(cmd, files, settings)
			if err != nil {
				return asUnusable(err)
			}
			return tell(cmd.OutOrStdout(), write, reports)
		},
	}
	cmd.Flags().StringArrayVarP(&files, "filename", "f", nil, "file, or directory to read recursively, - for standard input; can be repeated")
	cmd.Flags().StringVarP(&output, "output", "o", "table", "table or json")
	bindSettings(cmd, &settings)
	return cmd
}

// filesByFlag refuses a file without -f, as of -f *.yaml once the shell has expanded it.
func filesByFlag(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return asUnusable(fmt.Errorf("%s: give each file with -f", args[0]))
	}
	return asUnusable(cmd.ValidateRequiredFlags())
}

func asUnusable(err error) error {
	if err == nil {
		return nil
	}
	return exit{err, unusable}
}

func preflights(cmd *cobra.Command, files []string, settings input.Settings) ([]preflight.Report, error) {
	if len(files) == 0 {
		return nil, errors.New("nothing to read: give files with -f, or - for standard input")
	}
	objects, err := readFiles(cmd, files)
	if err != nil {
		return nil, err
	}
	bridges := preflight.Bridges(objects)
	reports := preflight.All(objects, settings)
	if len(reports)+len(bridges) == 0 {
		return nil, errors.New("the files contain no Infra, no HostedCluster and no DPUHCPBridge, or only ones that are being deleted")
	}
	reports = append(reports, bridges...)
	return reports, nil
}

// tell writes the reports, and fails if an Infra would not work.
func tell(out io.Writer, write func(io.Writer, []preflight.Report) error, reports []preflight.Report) error {
	var failed error
	for _, r := range reports {
		if !r.Works {
			failed = errors.Join(failed, fmt.Errorf("%s %s/%s would not work", r.Kind(), r.Namespace, r.Name))
		}
	}
	return errors.Join(write(out, reports), failed)
}
