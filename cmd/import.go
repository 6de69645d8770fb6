package cmd

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/moving"
	"github.com/cldmnky/oooi/internal/moving/bind"
	"github.com/cldmnky/oooi/internal/moving/dnsmasq"
	"github.com/cldmnky/oooi/internal/moving/draft"
	"github.com/cldmnky/oooi/internal/moving/haproxy"
	"github.com/cldmnky/oooi/internal/moving/hosts"
	"github.com/cldmnky/oooi/internal/moving/iscdhcpd"
	"github.com/cldmnky/oooi/internal/moving/kea"
	"github.com/cldmnky/oooi/internal/moving/leasefile"
	"github.com/cldmnky/oooi/internal/plan/input"
	"github.com/cldmnky/oooi/internal/render"
)

// servers are the kinds of configurations that become an Infra, by their flags, in the order in which they are read: BIND has views for networks, which others
// may say.
var servers = []struct {
	flag, of string
	read     func(site *draft.Site, files []draft.File)
}{
	{"isc-dhcpd", "configuration of ISC dhcpd", iscdhcpd.Read},
	{"kea", "configuration of Kea's DHCPv4 server", kea.Read},
	{"dnsmasq", "configuration of dnsmasq", dnsmasq.Read},
	{"bind", "configuration (named.conf) or zone file of BIND", bind.Read},
	{"haproxy", "configuration of HAProxy", haproxy.Read},
	{"hosts", "hosts file that dnsmasq answers from, e.g. /etc/hosts", hosts.Read},
}

func newImportCommand() *cobra.Command {
	var manifests []string
	files := make([][]string, len(servers))
	cmd := &cobra.Command{
		Use:   "import",
		Short: "Print an Infra for the configurations of other servers, or DPUHCPBridges for another operator's manifests",
		Long: "Reads what serves the VLAN today, each file with the flag of its kind, and prints one Infra that serves the same. Give\n" +
			"the Infra that it is to be merged into with -f, and its HostedCluster, NodePools and NetworkAttachmentDefinition if the\n" +
			"names in the files are to be compared with them; what that Infra says already stays. Every statement that has no\n" +
			"counterpart is reported on standard error as FILE:LINE, with the reason and what to do. docs/MOVING_IN.md has the steps.\n\n" +
			"Without such files, -f has DPFHCPProvisioners and the DPFHCPProvisionerConfig, and a DPUHCPBridge is printed for each\n" +
			"DPFHCPProvisioner. Secrets keep their names. docs/DPU_BRIDGE.md says how to keep a hosted cluster that exists.\n\n" +
			"Exit code: 0 if what is printed can be applied as it is, 1 if something must be changed first, 2 if files or flags\n" +
			"cannot be read.",
		Example: "  oooi import -f infra.yaml --dnsmasq /etc/dnsmasq.conf --hosts /etc/hosts > imported.yaml\n" +
			"  kubectl get dpfhcpprovisioners,dpfhcpprovisionerconfigs -A -o yaml | oooi import -f - > bridges.yaml",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return asUnusable(fmt.Errorf("%s: give each file with the flag of its kind; see oooi import --help", args[0]))
			}
			given := len(slices.Concat(files...)) > 0
			if !given && len(manifests) == 0 {
				return asUnusable(errors.New("nothing to read: give each file with the flag of its kind, e.g. --dnsmasq /etc/dnsmasq.conf, or manifests with -f"))
			}
			objects, err := readFiles(cmd, manifests)
			if err != nil {
				return asUnusable(ofLeases(manifests, err))
			}
			if given {
				return importInfra(cmd, files, objects)
			}
			return importBridges(cmd, objects)
		},
	}
	cmd.Flags().StringArrayVarP(&manifests, "filename", "f", nil, "manifest, or directory of manifests to read recursively, - for standard input; can be repeated")
	for i, s := range servers {
		cmd.Flags().StringArrayVar(&files[i], s.flag, nil, s.of+", - for standard input; can be repeated")
	}
	return cmd
}

// ofLeases is why manifests cannot be read: one of them is a lease file, or else the given error.
func ofLeases(manifests []string, err error) error {
	for _, name := range manifests {
		text, unread := render.ReadFile(name)
		if unread != nil {
			continue
		}
		for _, kind := range leasefile.Names() {
			if entries, _ := leasefile.Kinds[kind](string(text)); len(entries) > 0 {
				return fmt.Errorf("%s has leases and no manifests: give it to oooi leases import, with --from %s, and the configuration of its server to oooi import, with the flag of its kind", name, kind)
			}
		}
	}
	return err
}

// readInto reads the files of all kinds, each kind's in their order.
func readInto(site *draft.Site, stdin io.Reader, files [][]string) error {
	for i, s := range servers {
		var all []draft.File
		for _, name := range files[i] {
			file, err := readGiven(stdin, name)
			if err != nil {
				return err
			}
			all = append(all, file)
		}
		s.read(site, all)
	}
	return nil
}

// readGiven is a file, and what is below its directory, whose links lead nowhere else.
func readGiven(stdin io.Reader, name string) (file draft.File, err error) {
	read := func() ([]byte, error) { return render.ReadFile(name) }
	if name == "-" {
		read = func() ([]byte, error) { return io.ReadAll(stdin) }
	}
	raw, err := read()
	if err != nil {
		return file, err
	}
	file.Name = name
	if file.Text, err = draft.Text(name, raw); err != nil || name == "-" {
		return file, err
	}
	directory, within := filepath.Split(name)
	absolute, err := filepath.Abs(directory)
	if err != nil {
		return file, err
	}
	root, err := os.OpenRoot(absolute)
	if err != nil {
		return file, err
	}
	file.Tree, file.Within = &draft.Tree{FS: root.FS(), Name: filepath.Clean(directory), Path: absolute}, within
	return file, nil
}

// importInfra prints the Infra, reports what it does not have, and fails if something must be written first.
func importInfra(cmd *cobra.Command, files [][]string, objects render.Objects) error {
	objects, _, _ = objects.Provisioned(input.Settings{})
	base, cluster := &v1alpha1.Infra{}, draft.Cluster{}
	switch inputs := objects.Inputs(input.Settings{}); len(inputs) {
	case 0:
	case 1:
		base, cluster = inputs[0].Infra, draft.Cluster{Domain: inputs[0].Domain(), Names: inputs[0].Endpoints().Names()}
	default:
		return asUnusable(fmt.Errorf("the manifests contain %d Infras: give the one that the files are merged into", len(inputs)))
	}
	var site draft.Site
	site.VLAN, _ = netip.ParsePrefix(string(base.Spec.NetworkConfig.CIDR))
	if err := readInto(&site, cmd.InOrStdin(), files); err != nil {
		return asUnusable(err)
	}
	result := site.Infra(base, cluster)
	for _, left := range result.Left {
		fmt.Fprintln(cmd.ErrOrStderr(), left)
	}
	var failed error
	for _, missing := range result.Missing {
		failed = errors.Join(failed, errors.New(missing))
	}
	return errors.Join(render.YAML(cmd.OutOrStdout(), []runtime.ApplyConfiguration{result.Applied()}), failed)
}

// importBridges prints the bridges, reports the findings, and fails if one must be mended.
func importBridges(cmd *cobra.Command, objects render.Objects) error {
	moves := moving.All(objects)
	if len(moves) == 0 {
		return asUnusable(errors.New("the files contain no DPFHCPProvisioner and no DPFHCPProvisionerConfig (provisioning.dpu.hcp.io/v1alpha1): give one of them, or the configuration of a server " +
			"with the flag of its kind, e.g. --dnsmasq /etc/dnsmasq.conf"))
	}
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
