// Package checkcli implements `oooi check`: it reads, with the caller's own permissions, what internal/check decides about. It stores
// nothing in the cluster.
package checkcli

import (
	"context"
	"fmt"
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/internal/check"
	"github.com/cldmnky/oooi/internal/controller"
	"github.com/cldmnky/oooi/internal/dhcp/clock"
	"github.com/cldmnky/oooi/internal/step"
)

// Reader reads a cluster.
type Reader struct {
	// Namespace of the operator. Only is that of the Infras and bridges that are checked; empty: all.
	Namespace, Only string
	// Version of this binary.
	Version string
	// Manager understands the arguments of the operator's container.
	Manager func(args []string) (check.Manager, error)

	config    *rest.Config
	api       client.Client
	discovery *discovery.DiscoveryClient
	apiServer *clock.Clock // every answer has its time
}

// Connect prepares to read a cluster.
func (r *Reader) Connect(config *rest.Config) (err error) {
	r.config, r.apiServer = rest.CopyConfig(config), clock.New()
	r.config.QPS = -1 // the API server's own priority and fairness is the limit
	r.config.Wrap(r.apiServer.Listen)
	scheme := controller.Scheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		return err
	}
	if r.api, err = client.New(r.config, client.Options{Scheme: scheme}); err != nil {
		return fmt.Errorf("connecting to the cluster: %w", err)
	}
	r.discovery, err = discovery.NewDiscoveryClientForConfig(r.config)
	return err
}

// Before reads what an installation depends on.
func (r *Reader) Before(ctx context.Context) (check.Facts, error) {
	f, err := r.platform(ctx)
	if err != nil {
		return f, err
	}
	f.Refused = r.lacks(ctx, append(check.Installing(r.Namespace), check.Escalate), nil)
	if !slices.Contains(f.Refused.Is, check.Escalate.String()) {
		return f, nil
	}
	if own := r.lacks(ctx, check.Granted(r.Namespace), nil); own.Unread != "" {
		f.Refused = own
	} else if len(own.Is) == 0 { // what he has himself he may grant
		f.Refused.Is = slices.DeleteFunc(f.Refused.Is, func(right string) bool { return right == check.Escalate.String() })
	}
	return f, nil
}

// Installed reads an installation. It fails only if the API server does not answer; what the caller may not read, the facts say.
func (r *Reader) Installed(ctx context.Context) (check.Facts, error) {
	f, err := r.platform(ctx)
	if err != nil {
		return f, err
	}
	f.Infras, f.Networks, f.Bridges, f.Nodes = r.infras(ctx), r.networks(ctx), r.bridges(ctx), r.nodes(ctx)
	around := r.around(f.Infras.Is)
	f.HostedClusters, f.NodePools = r.hostedClusters(ctx, around), r.nodePools(ctx, around)
	r.operator(ctx, &f)
	return f, nil
}

// platform reads the cluster, and the CRDs.
func (r *Reader) platform(ctx context.Context) (check.Facts, error) {
	f := check.Facts{CLI: r.Version, Namespace: r.Namespace, Only: r.Only}
	is, err := r.discovery.ServerVersion()
	if err != nil {
		return f, fmt.Errorf("asking the API server for its version: %w", err)
	}
	f.Kubernetes, f.Now = is.GitVersion, r.apiServer.NowOr(time.Now())
	if f.APIs, err = r.apis(); err != nil {
		return f, err
	}
	f.Versions, f.CRDs = r.versions(ctx), r.crds(ctx)
	return f, nil
}

// read says what was read; that something, or its kind, does not exist is no failure.
func read[T any](is T, right check.Right, err error) step.Read[T] {
	return step.Read[T]{Is: is, Unread: why(right, err)}
}

func why(right check.Right, err error) string {
	switch {
	case err == nil, apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		return ""
	case apierrors.IsForbidden(err):
		return step.MayNot + right.String()
	}
	return fmt.Sprintf("%s: %v", right, err)
}
