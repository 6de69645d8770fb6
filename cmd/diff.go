package cmd

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/cldmnky/oooi/internal/dhcp/clock"
	"github.com/cldmnky/oooi/internal/diffcli"
)

// differs is the exit code if something changes, as of kubectl diff.
const differs = 1

type diffFlags struct {
	files     []string
	manager   string
	namespace string // of the operator
	output    string
}

func newDiffCommand() *cobra.Command {
	f := diffFlags{}
	cmd := &cobra.Command{
		Use:   "diff {-f FILE... | --manager FILE}",
		Short: "Say what applying files, or another operator, would change: objects, pods, services, streams and leases",
		Long: "Reads the cluster with your own permissions, and plans each Infra as it is and as it would be once the files are applied.\n" +
			"The API server is asked for each object of the files what it would become, as by kubectl diff; nothing is stored.\n" +
			"docs/DIFF.md explains the output.\n\n" +
			"Exit code, as for kubectl diff: 0 if nothing changes, 1 if something does, 2 if that could not be found out.",
		Example: "  oooi diff -f infra.yaml\n  helm template oooi charts/oooi --namespace oooi-system | oooi diff --manager -",
		Args:    filesByFlag,
	}
	cluster := bindCluster(cmd)
	flags := cmd.Flags()
	flags.Lookup("namespace").Usage = "namespace of objects whose file names none (default: the context's)"
	flags.StringArrayVarP(&f.files, "filename", "f", nil, "file, directory, or - for standard input; can be repeated")
	flags.StringVar(&f.manager, "manager", "", "manifests of another operator, with its Deployment, or - for standard input: say what it would change")
	flags.StringVar(&f.namespace, "operator-namespace", "oooi-system", "namespace of the operator, whose flags are read")
	flags.StringVarP(&f.output, "output", "o", "table", "table or json")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return f.run(cmd, cluster) }
	return cmd
}

func (f *diffFlags) run(cmd *cobra.Command, cluster *clusterFlags) error {
	write, ok := map[string]func(io.Writer, diffcli.Report) error{"table": diffcli.Table, "json": diffcli.JSON}[f.output]
	switch {
	case !ok:
		return asUnusable(fmt.Errorf("--output %s: write table or json", f.output))
	case (len(f.files) == 0) == (f.manager == ""):
		return asUnusable(errors.New("say what you want to apply, with -f FILE, or which operator you want to run, with --manager FILE"))
	}
	report, err := f.report(cmd, cluster)
	if err == nil {
		err = write(cmd.OutOrStdout(), report)
	}
	if err != nil {
		return asUnusable(err)
	}
	switch {
	case len(report.Unread) > 0:
		return asUnusable(errors.New("not all of the files could be compared with the cluster: see Not read"))
	case report.None():
		return nil
	}
	return exit{errors.New("something changes"), differs}
}

func (f *diffFlags) report(cmd *cobra.Command, cluster *clusterFlags) (diffcli.Report, error) {
	namespace, err := cluster.namespace()
	if err != nil {
		return diffcli.Report{}, err
	}
	files := f.files
	if f.manager != "" {
		files = []string{f.manager}
	}
	manifests, err := diffcli.Manifests(cmd.InOrStdin(), files)
	if err != nil {
		return diffcli.Report{}, err
	}
	apiServer := clock.New() // every answer has the API server's time
	api, err := cluster.clientListening(cmd.ErrOrStderr(), apiServer.Listen)
	if err != nil {
		return diffcli.Report{}, err
	}
	settings, err := diffcli.SettingsOf(cmd.Context(), api, f.namespace, settingsOf)
	if err != nil {
		return diffcli.Report{}, err
	}
	config, err := cluster.rest(cmd.ErrOrStderr())
	if err != nil {
		return diffcli.Report{}, err
	}
	if settings.Metrics, err = diffcli.ThroughAPI(config); err != nil {
		return diffcli.Report{}, err
	}
	settings.Now = func() time.Time { return apiServer.NowOr(time.Now()) }
	if f.manager != "" {
		next, err := diffcli.NewManager(manifests, settingsOf)
		if err != nil {
			return diffcli.Report{}, err
		}
		next.Now = settings.Now
		return diffcli.OfManager(cmd.Context(), api, settings, next)
	}
	return diffcli.Of(cmd.Context(), api, settings, manifests, namespace)
}
