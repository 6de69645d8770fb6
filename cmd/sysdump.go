package cmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/internal/sysdump"
)

func newSysdumpCommand() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "sysdump",
		Short: "Collect objects, events and logs, without secrets, in one archive",
		Long: "Writes one archive (tar, gzip) for somebody who helps from afar: Infras and bridges with what they made, HostedClusters,\n" +
			"networks, virtual machines, DPUs and events of the cluster, and the logs of the operator and its pods. No Secret and no\n" +
			"ConfigMap is read, and what looks like a secret is taken out of all else; nobody can know every one: look through it\n" +
			"before you send it. It has the names and addresses of all tenants. What you may not read is left out, and listed in\n" +
			"not-read.txt. With -n it has that namespace, and of others only what its Infras depend on: their control\n" +
			"planes, HostedClusters and networks; not the operator's log.\n\n" +
			"Exit code: 0 if the archive is written, 1 if it is not, 2 if flags are invalid or the cluster\n" +
			"cannot be reached or has no such namespace.",
		Example: "  oooi sysdump\n  oooi sysdump -o site-a.tar.gz",
		Args:    noArguments,
	}
	cluster := bindCluster(cmd)
	cmd.Flags().Lookup("namespace").Usage = "namespace of the Infras and bridges to collect (default: all)"
	cmd.Flags().StringVarP(&output, "output", "o", "", "file to write (default: oooi-sysdump-TIME.tar.gz)")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		now := time.Now()
		if output == "" {
			output = "oooi-sysdump-" + now.UTC().Format("20060102-150405") + ".tar.gz"
		}
		return collect(cmd, cluster, output, now)
	}
	return cmd
}

func collect(cmd *cobra.Command, cluster *clusterFlags, output string, now time.Time) (err error) {
	config, err := cluster.rest(cmd.ErrOrStderr())
	if err != nil {
		return asUnusable(err)
	}
	api, err := clientOf(config)
	if err != nil {
		return asUnusable(err)
	}
	pods, err := typedcore.NewForConfig(config)
	if err != nil {
		return asUnusable(err)
	}
	served, err := pods.RESTClient().Get().AbsPath("/version").Timeout(tellsKindsWithin).DoRaw(cmd.Context())
	if err != nil {
		return asUnusable(fmt.Errorf("reaching the cluster: %w", err))
	}
	if err := loggedIn(api); err != nil {
		return asUnusable(err)
	}
	only := cluster.overrides.Context.Namespace
	if err := isThere(cmd.Context(), api, only); err != nil {
		return asUnusable(err)
	}
	file, err := os.OpenFile(output, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	dump := &sysdump.Dump{
		API: api, Logs: pods, Namespace: only, Version: "oooi " + version() + "\nthe cluster " + string(served),
		Tell: func(what string) { fmt.Fprintln(cmd.ErrOrStderr(), "reading", what) },
	}
	notRead, err := dump.Write(cmd.Context(), file, now)
	if err != nil {
		return errors.Join(fmt.Errorf("writing %s: %w", output, err), os.Remove(output))
	}
	for _, what := range notRead {
		fmt.Fprintln(cmd.ErrOrStderr(), "not read:", what)
	}
	fmt.Fprintln(cmd.OutOrStdout(), output)
	return nil
}

// isThere refuses a namespace that does not exist: an archive of it would be empty. Who may not read that has it collected.
func isThere(ctx context.Context, api client.Reader, namespace string) error {
	if namespace == "" {
		return nil
	}
	if err := api.Get(ctx, client.ObjectKey{Name: namespace}, &corev1.Namespace{}); apierrors.IsNotFound(err) {
		return fmt.Errorf("there is no namespace %s: name that of the Infras with -n, or none for all", namespace)
	}
	return nil
}
