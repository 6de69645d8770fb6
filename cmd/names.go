package cmd

import (
	"context"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/controller"
)

// The kinds whose objects a shell completes the names of.
var (
	infraKind  = v1alpha1.GroupVersion.WithKind("Infra")
	serverKind = v1alpha1.GroupVersion.WithKind("DHCPServer")
	bridgeKind = dpuv1.GroupVersion.WithKind("DPUHCPBridge")
)

// completesWithin is how long a shell waits for names. Who has pressed the tabulator key types on.
const completesWithin = 2 * time.Second

// completing has a shell complete a command's first argument to a name of an object of the namespace that its flags choose.
func completing(cmd *cobra.Command, cluster *clusterFlags, kind schema.GroupVersionKind) *cobra.Command {
	of := cluster.completes(kind)
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return of(cmd, args, begun)
	}
	return cmd
}

// completes has names, or nothing: a shell has no place for an error. A plugin of the kubeconfig that gets credentials heeds no context.
func (c *clusterFlags) completes(kind schema.GroupVersionKind) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, begun string) (names []string, _ cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), completesWithin)
		defer cancel()
		read := make(chan []string, 1)
		go func() { read <- c.names(ctx, kind, begun) }()
		select {
		case names = <-read:
		case <-ctx.Done():
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// names of a kind's objects that begin so. Which kinds the cluster serves is not asked first, which would take longer than all else.
func (c *clusterFlags) names(ctx context.Context, kind schema.GroupVersionKind, begun string) (names []string) {
	namespace, err := c.namespace()
	if err != nil {
		return nil
	}
	config, err := c.rest(io.Discard)
	if err != nil {
		return nil
	}
	served := meta.NewDefaultRESTMapper(nil)
	served.Add(kind, meta.RESTScopeNamespace)
	api, err := client.New(config, client.Options{Scheme: controller.Scheme(), Mapper: served})
	if err != nil {
		return nil
	}
	all := &metav1.PartialObjectMetadataList{}
	all.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if api.List(ctx, all, client.InNamespace(namespace)) != nil {
		return nil
	}
	for _, o := range all.Items {
		if strings.HasPrefix(o.Name, begun) {
			names = append(names, o.Name)
		}
	}
	return names
}
