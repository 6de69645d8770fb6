package sysdump

import (
	"context"
	"slices"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/endpoint"
	"github.com/cldmnky/oooi/internal/nad"
	"github.com/cldmnky/oooi/internal/plan/input"
)

// around are other namespaces that what is in the dump's namespace depends on.
type around struct {
	// planes are those of control planes, with the virtual machines; clusters have HostedClusters and NodePools, networks
	// NetworkAttachmentDefinitions. Whatever else is in the latter two is somebody else's.
	planes, clusters, networks []string
}

// lookAround asks the Infras and HostedClusters of the namespace. Of those that are not read, objects tells.
func (d *Dump) lookAround(ctx context.Context) (a around) {
	if d.Namespace == "" {
		return a
	}
	add := func(to *[]string, namespace string) {
		if namespace != "" && namespace != d.Namespace && !slices.Contains(*to, namespace) {
			*to = append(*to, namespace)
		}
	}
	var infras v1alpha1.InfraList
	if d.API.List(ctx, &infras, client.InNamespace(d.Namespace)) == nil {
		for i := range infras.Items {
			refs := input.Refs(&infras.Items[i])
			add(&a.networks, refs.NAD.Namespace)
			add(&a.clusters, refs.HostedCluster.Namespace)
			if refs.HostedCluster.Name != "" {
				add(&a.planes, endpoint.ControlPlaneNamespaceOf(refs.HostedCluster))
			}
		}
	}
	var clusters hyperv1.HostedClusterList
	if d.API.List(ctx, &clusters, client.InNamespace(d.Namespace)) == nil {
		for _, c := range clusters.Items {
			add(&a.planes, endpoint.ControlPlaneNamespaceOf(types.NamespacedName{Namespace: c.Namespace, Name: c.Name}))
		}
	}
	return a
}

// places are the namespaces in which objects of a kind are collected; an empty one is all.
func (d *Dump) places(k kind) []string {
	if d.Namespace == "" || k.cluster {
		return []string{""}
	}
	all := append([]string{d.Namespace}, d.around.planes...)
	switch k.Group {
	case hyperv1.GroupVersion.Group:
		all = append(all, d.around.clusters...)
	case nad.GroupVersion.Group:
		all = append(all, d.around.networks...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// beyond says where something is, if that is not the dump's namespace.
func (d *Dump) beyond(what, namespace string) string {
	if namespace == d.Namespace || namespace == "" {
		return what
	}
	return what + " in namespace " + namespace
}
