// Package cmd wires the subcommands of the one binary; it makes no decisions.
package cmd

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Root is the oooi command.
func Root() *cobra.Command {
	root := ofSubcommands(&cobra.Command{
		Use:           "oooi",
		Short:         "Joins workers on isolated networks to OpenShift hosted control planes",
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       version(),
	})
	root.SetFlagErrorFunc(misused)
	for _, service := range []*cobra.Command{newAPIProxyCommand(), newDHCPCommand(), newDNSCommand(), newManagerCommand(), newProxyCommand()} {
		root.AddCommand(untilSignalled(service))
	}
	for _, command := range []*cobra.Command{newBridgeCommand(), newCSRCommand(), untilSignalled(newCheckCommand()), newDiagnoseCommand(), newDiffCommand(), newImagesCommand(),
		newImportCommand(), newLeasesCommand(), newMoveCommand(), newPreflightCommand(), newRenderCommand(), newStatusCommand(), newSysdumpCommand(), untilSignalled(newUICommand())} {
		root.AddCommand(explaining(command))
	}
	root.InitDefaultCompletionCmd()
	for _, sub := range root.Commands() {
		if sub.Name() == "completion" { // cobra's own
			ofSubcommands(sub)
			for _, shell := range sub.Commands() {
				shell.Args = noArguments
			}
		}
	}
	if filepath.Base(os.Args[0]) == asPlugin {
		namedByKubectl(root)
	}
	return root
}

// asPlugin is the name by which kubectl finds this binary as a plugin, and runs it as `kubectl oooi`.
const asPlugin = "kubectl-oooi"

// typed is the command in an example.
var typed = regexp.MustCompile(`(^|\s)oooi `)

// namedByKubectl lets help say what the user typed.
func namedByKubectl(cmd *cobra.Command) {
	if !cmd.HasParent() {
		cmd.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl oooi"}
	}
	cmd.Example = typed.ReplaceAllString(cmd.Example, "${1}kubectl oooi ")
	for _, sub := range cmd.Commands() {
		namedByKubectl(sub)
	}
}

// ofSubcommands makes a command that does nothing itself refuse an unknown subcommand.
func ofSubcommands(cmd *cobra.Command) *cobra.Command {
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return unknown(cmd, args[0])
		}
		return nil
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	return cmd
}

func unknown(cmd *cobra.Command, subcommand string) error {
	meant := ""
	cmd.SuggestionsMinimumDistance = 2 // as cobra has it for what it finds unknown itself
	if similar := cmd.SuggestionsFor(subcommand); len(similar) > 0 {
		meant = "; did you mean " + strings.Join(similar, " or ") + "?"
	}
	return asUnusable(fmt.Errorf("unknown command %q for %q%s; see %s --help", subcommand, cmd.CommandPath(), meant, cmd.CommandPath()))
}

// misused says what is wrong with flags. Those of a subcommand that is none are not the first thing that is wrong.
func misused(cmd *cobra.Command, err error) error {
	if given := cmd.Flags().Args(); cmd.HasSubCommands() && len(given) > 0 {
		return unknown(cmd, given[0])
	}
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) && values[invalid.GetFlag().Value.Type()] != "" {
		err = fmt.Errorf("invalid argument %q for \"--%s\" flag: write %s", invalid.GetValue(), invalid.GetFlag().Name, values[invalid.GetFlag().Value.Type()])
	}
	return asUnusable(fmt.Errorf("%w; see %s --help", err, cmd.CommandPath()))
}

// values of flags by their types, where pflag would name the function of Go that did not understand one.
var values = map[string]string{
	"bool": "true or false", "boolfunc": "true or false", "duration": "a time with its unit, e.g. 90s or 5m",
	"int": "a whole number", "int32": "a whole number below 2147483648", "uint16": "a whole number from 0 to 65535",
}

// untilSignalled ends a service's context at SIGINT and SIGTERM. A command that ignores its context must not have it: the signal would then
// end nothing.
func untilSignalled(service *cobra.Command) *cobra.Command {
	run := service.RunE
	service.RunE = func(cmd *cobra.Command, args []string) error {
		ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		cmd.SetContext(ctx)
		return run(cmd, args)
	}
	return service
}

// commit is what make and the Containerfile set with -ldflags -X: the commit that was built, with .dirty if files differed from it.
var commit string

// version is the release that the manifests name with the commit, or what the Go toolchain stamped: the module's version or else the commit.
// A build without any of it (go build in a tree without git) has the release alone.
func version() string {
	released := strings.TrimPrefix(releasedImage, "oooi:")
	if commit != "" {
		return released + "+" + commit
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return released
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value
		}
	}
	return released
}
