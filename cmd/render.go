package cmd

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/cldmnky/oooi/internal/plan/input"
	"github.com/cldmnky/oooi/internal/render"
)

func newRenderCommand() *cobra.Command {
	var files []string
	var output string
	var openShiftDNS bool
	var settings input.Settings
	cmd := &cobra.Command{
		Use:   "render -f FILE …",
		Short: "Print the objects that the operator creates for an Infra, without a cluster",
		Long: "Plans from files as the operator plans from a cluster, with the same code. Give it the Infra (not needed if the\n" +
			"HostedCluster's annotation requests one), its HostedCluster, NodePools, NetworkAttachmentDefinition and the\n" +
			"Services, Routes, EndpointSlices and NetworkPolicies of the control-plane namespace, as `kubectl get -o yaml` prints\n" +
			"them. Objects go to standard output, findings to standard error.\n\n" +
			"Review and compare the output, but do not apply it: its owner references have no UID, because only a cluster has it\n" +
			"(uid: \"\").\n\n" +
			"Exit code: 0 if all of it would be applied, 1 if not, 2 if files or flags cannot be read.",
		Example: "  oooi render -f infra.yaml -f hostedcluster.yaml -f namespace.yaml\n" +
			"  oooi render --openshift-dns -f dnsservers.yaml -f dns-default.yaml",
		Args: filesByFlag,
		RunE: func(cmd *cobra.Command, _ []string) error {
			write, ok := map[string]func(io.Writer, []runtime.ApplyConfiguration) error{"yaml": render.YAML, "json": render.JSON}[output]
			if !ok {
				return asUnusable(fmt.Errorf("--output %s: write yaml or json", output))
			}
			if openShiftDNS {
				return renderForwarding(cmd, files, output)
			}
			objects, err := readFiles(cmd, files)
			if err != nil {
				return err
			}
			return renderTo(cmd.OutOrStdout(), cmd.ErrOrStderr(), write, objects.Render(withReleasedImages(settings)))
		},
	}
	cmd.Flags().StringArrayVarP(&files, "filename", "f", nil, "file, or directory to read recursively, - for standard input; can be repeated")
	cmd.Flags().StringVarP(&output, "output", "o", "yaml", "yaml or json")
	cmd.Flags().BoolVar(&openShiftDNS, "openshift-dns", false, "print only the patch of dns.operator.openshift.io/default that forwards the clusters' domains to the DNSServers in the files")
	bindSettings(cmd, &settings)
	_ = cmd.MarkFlagRequired("filename")
	return cmd
}

// readFiles reports on standard error what it skips or assumes.
func readFiles(cmd *cobra.Command, files []string) (render.Objects, error) {
	objects, notes, err := render.Files(cmd.InOrStdin(), files)
	for _, note := range notes {
		fmt.Fprintln(cmd.ErrOrStderr(), note)
	}
	return objects, asUnusable(err)
}

// renderForwarding only prints what the user may apply: nothing changes a cluster's DNS by itself.
func renderForwarding(cmd *cobra.Command, files []string, output string) error {
	objects, err := readFiles(cmd, files)
	if err != nil {
		return err
	}
	forwarding, err := objects.OpenShiftDNS()
	if err != nil {
		return err
	}
	for _, note := range forwarding.Notes {
		fmt.Fprintln(cmd.ErrOrStderr(), note)
	}
	patch := forwarding.Patch
	if output == "json" {
		if patch, err = yaml.YAMLToJSON(patch); err != nil {
			return err
		}
	}
	_, err = cmd.OutOrStdout().Write(patch)
	return err
}

// renderTo writes everything that is planned, reports the findings, and fails if an Infra's plan is frozen.
func renderTo(out, err io.Writer, write func(io.Writer, []runtime.ApplyConfiguration) error, renderings []render.Rendering) error {
	if len(renderings) == 0 {
		return errors.New("the files contain no Infra, and no HostedCluster that requests one")
	}
	var objects []runtime.ApplyConfiguration
	var frozen error
	for _, r := range renderings {
		objects = append(objects, r.Objects...)
		for _, f := range r.Findings {
			fmt.Fprintf(err, "infra %s/%s: %s %s: %s\n", r.Infra.Namespace, r.Infra.Name, f.Condition, f.Reason, f.Message)
		}
		if r.Frozen {
			frozen = errors.Join(frozen, fmt.Errorf("infra %s/%s is rejected: nothing of it would be applied", r.Infra.Namespace, r.Infra.Name))
		}
	}
	return errors.Join(write(out, objects), frozen)
}
