package checkcli

import (
	"cmp"
	"context"
	"slices"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/bridgecli"
	"github.com/cldmnky/oooi/internal/check"
	"github.com/cldmnky/oooi/internal/component"
	"github.com/cldmnky/oooi/internal/nad"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/plan/input"
	"github.com/cldmnky/oooi/internal/step"
)

// list lists a kind in a namespace; in all, if empty.
func list[T any](ctx context.Context, r *Reader, group, resource, namespace string, into client.ObjectList, items func() []T, more ...client.ListOption) step.Read[[]T] {
	err := r.api.List(ctx, into, append(more, client.InNamespace(namespace))...)
	return read(items(), check.Right{Verb: "list", Group: group, Resource: resource, Namespace: namespace}, err)
}

func (r *Reader) infras(ctx context.Context) step.Read[[]v1alpha1.Infra] {
	all := &v1alpha1.InfraList{}
	return list(ctx, r, names.Group, "infras", r.Only, all, func() []v1alpha1.Infra { return all.Items })
}

// around are the namespaces whose HostedClusters and NodePools tell of some Infras: that which is checked, and those of the HostedClusters that
// they refer to; all, if all are checked.
func (r *Reader) around(infras []v1alpha1.Infra) []string {
	all := []string{r.Only}
	for i := range infras {
		if of := input.Refs(&infras[i]).HostedCluster.Namespace; r.Only != "" && of != "" && !slices.Contains(all, of) {
			all = append(all, of)
		}
	}
	return all
}

// eachOf reads in several namespaces.
func eachOf[T any](namespaces []string, read func(string) step.Read[[]T]) (all step.Read[[]T]) {
	for _, namespace := range namespaces {
		got := read(namespace)
		all.Is, all.Unread = append(all.Is, got.Is...), cmp.Or(all.Unread, got.Unread)
	}
	return all
}

func (r *Reader) hostedClusters(ctx context.Context, namespaces []string) step.Read[[]hyperv1.HostedCluster] {
	return eachOf(namespaces, func(namespace string) step.Read[[]hyperv1.HostedCluster] {
		all := &hyperv1.HostedClusterList{}
		return list(ctx, r, hyperv1.GroupVersion.Group, "hostedclusters", namespace, all, func() []hyperv1.HostedCluster { return all.Items })
	})
}

func (r *Reader) nodePools(ctx context.Context, namespaces []string) step.Read[[]hyperv1.NodePool] {
	return eachOf(namespaces, func(namespace string) step.Read[[]hyperv1.NodePool] {
		all := &hyperv1.NodePoolList{}
		return list(ctx, r, hyperv1.GroupVersion.Group, "nodepools", namespace, all, func() []hyperv1.NodePool { return all.Items })
	})
}

// networks of all namespaces: Infras use those of others.
func (r *Reader) networks(ctx context.Context) step.Read[[]nad.NetworkAttachmentDefinition] {
	all := &nad.List{}
	return list(ctx, r, nad.GroupVersion.Group, "network-attachment-definitions", "", all, func() []nad.NetworkAttachmentDefinition { return all.Items })
}

func (r *Reader) nodes(ctx context.Context) step.Read[[]corev1.Node] {
	all := &corev1.NodeList{}
	return list(ctx, r, "", "nodes", "", all, func() []corev1.Node { return all.Items })
}

func (r *Reader) bridges(ctx context.Context) step.Read[[]check.Bridge] {
	all := &dpuv1.DPUHCPBridgeList{}
	return list(ctx, r, names.BridgeGroup, "dpuhcpbridges", r.Only, all, func() (bridges []check.Bridge) {
		for _, b := range all.Items {
			bridges = append(bridges, check.Bridge{DPUHCPBridge: b, Because: bridgecli.Of(&b, bridgecli.Seen{}).Because})
		}
		return bridges
	})
}

// overrides are the images that owners of servers chose.
func (r *Reader) overrides(ctx context.Context) (images []string) {
	for _, c := range component.All {
		all := c.NewList()
		if err := r.api.List(ctx, all.(client.ObjectList), client.InNamespace(r.Only)); err != nil {
			continue
		}
		_ = meta.EachListItem(all, func(o runtime.Object) error {
			for _, image := range c.Written(o.(component.Server)).Images {
				images = append(images, image)
			}
			return nil
		})
	}
	slices.Sort(images)
	return slices.Compact(images)
}
