package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/cldmnky/oooi/internal/check"
	"github.com/cldmnky/oooi/internal/checkcli"
	"github.com/cldmnky/oooi/internal/plan/input"
	"github.com/cldmnky/oooi/internal/step"
)

// unchecked is the exit code if nothing failed, but not all could be read.
const unchecked = 3

// checkPace asks seldom enough that a cluster does not notice.
var checkPace = checkcli.Pace{Between: 3 * time.Second, Remind: 15 * time.Second}

// checkFlags are the flags of `oooi check`.
type checkFlags struct {
	reader checkcli.Reader
	before bool
	wait   time.Duration
	output string
}

func newCheckCommand() *cobra.Command {
	f := checkFlags{reader: checkcli.Reader{Version: version(), Manager: managerOf}}
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Check that oooi works on this cluster, or with --pre that it can be installed",
		Long: "Looks at the cluster (what it serves of HyperShift, Multus, KubeVirt, MetalLB, DPF), the operator (CRDs, pods, rights,\n" +
			"leader, webhook, versions) and each Infra and DPUHCPBridge, with your own permissions, and changes nothing. Each line\n" +
			"begins with ok, warn, fail, unread (you may not read it) or skip (it does not apply, or depends on what failed), and\n" +
			"says what to do. docs/CHECK.md explains each.\n\n" +
			"Exit code: 0 if nothing fails (there may be warnings), 1 if something does, 2 if flags are invalid or the cluster does\n" +
			"not answer, 3 if nothing fails, but something could not be read.",
		Example: "  oooi check --wait=10m && oooi check -o json",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return asUnusable(fmt.Errorf("%s: check has no arguments; a time to wait is written --wait=%s", args[0], args[0]))
			}
			return nil
		},
	}
	cluster := bindCluster(cmd)
	flags := cmd.Flags()
	flags.Lookup("namespace").Usage = "namespace of the Infras and bridges to check (default: all)"
	flags.StringVar(&f.reader.Namespace, "operator-namespace", "oooi-system", "namespace of the operator")
	flags.BoolVar(&f.before, "pre", false, "check whether oooi can be installed, and by you")
	flags.DurationVar(&f.wait, "wait", 0, "wait until nothing fails, as long as this")
	flags.Lookup("wait").NoOptDefVal = "5m"
	flags.StringVarP(&f.output, "output", "o", "table", "table or json")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return f.run(cmd, cluster) }
	return cmd
}

func (f *checkFlags) run(cmd *cobra.Command, cluster *clusterFlags) error {
	write, ok := map[string]func(io.Writer, []step.Step) error{"table": step.Lines, "json": step.JSON}[f.output]
	if !ok {
		return asUnusable(fmt.Errorf("--output %s: write table or json", f.output))
	}
	if f.wait < 0 {
		return asUnusable(fmt.Errorf("--wait %s: write a time to come, e.g. --wait=5m", f.wait))
	}
	config, err := cluster.rest(cmd.ErrOrStderr())
	if err == nil {
		f.reader.Only = cluster.overrides.Context.Namespace
		err = f.reader.Connect(config)
	}
	if err != nil {
		return asUnusable(err)
	}
	steps, err := f.steps(cmd.Context(), cmd.ErrOrStderr())
	if steps == nil {
		return asUnusable(err)
	}
	return errors.Join(write(cmd.OutOrStdout(), steps), cmp.Or(verdict(steps), err))
}

// steps are nil if the cluster did not answer.
func (f *checkFlags) steps(ctx context.Context, progress io.Writer) ([]step.Step, error) {
	ask := func(ctx context.Context) ([]step.Step, error) {
		read, judge := f.reader.Installed, check.Installed
		if f.before {
			read, judge = f.reader.Before, check.Before
		}
		facts, err := read(ctx)
		if err != nil {
			return nil, err
		}
		return judge(facts), nil
	}
	if f.wait == 0 {
		return ask(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, f.wait)
	defer cancel()
	return checkcli.Until(ctx, checkPace, progress, ask)
}

// verdict is the error of steps, with its exit code; nil if all is well.
func verdict(steps []step.Step) error {
	switch step.Worst(steps) {
	case step.Fail:
		return errors.New("something fails: see the lines that begin with fail")
	case step.Unread:
		return exit{errors.New("nothing fails, but not all could be read: see the lines that begin with unread"), unchecked}
	}
	return nil
}

// managerOf reads the arguments of the operator's container as the operator does. A newer one may have flags that this one lacks.
func managerOf(args []string) (check.Manager, error) {
	var flags managerFlags
	var settings input.Settings
	cmd := &cobra.Command{FParseErrWhitelist: cobra.FParseErrWhitelist{UnknownFlags: true}}
	flags.bind(cmd)
	bindSettings(cmd, &settings)
	if err := cmd.ParseFlags(args); err != nil {
		return check.Manager{}, fmt.Errorf("reading the operator's arguments: %w", err)
	}
	for flag, value := range map[string]*string{"image": &settings.Image, "envoy-image": &settings.EnvoyImage} {
		if !cmd.Flags().Changed(flag) { // its default is of this process' environment
			*value = ""
		}
	}
	return check.Manager{
		VLAN: flags.vlanServices, Bridges: flags.dpuBridge, Elects: flags.elect, Webhook: flags.webhookAddress != "0", OwnCertificate: flags.webhookCerts == "",
		Image: settings.Image, Envoy: settings.EnvoyImage, Overrides: settings.AllowImageOverride, Lenders: settings.NADSourceNamespaces,
	}, nil
}
