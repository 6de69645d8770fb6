package observe

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/endpoint"
	"github.com/cldmnky/oooi/internal/nad"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/plan/input"
	"github.com/cldmnky/oooi/internal/plan/permission"
)

// The cache's indexes for finding neighbours: without them every Infra would be compared with every other.
const (
	// IndexLayer2 finds NetworkAttachmentDefinitions by layer2.
	IndexLayer2 = "layer2"
	// IndexNAD finds Infras by attachedNAD.
	IndexNAD = "networkAttachmentDefinition"
	// IndexControlPlane finds Infras by controlPlanes, and HostedClusters by ControlPlane.
	IndexControlPlane = "controlPlane"
)

// layer2 is the segment that a NetworkAttachmentDefinition leads to; none where its configuration does not tell.
func layer2(o client.Object) []string {
	if segment := o.(*nad.NetworkAttachmentDefinition).Layer2(); segment != "" {
		return []string{segment}
	}
	return nil
}

// attachedNAD is the NetworkAttachmentDefinition that an Infra's workers use.
func attachedNAD(o client.Object) []string {
	return []string{input.Refs(o.(*v1alpha1.Infra)).NAD.String()}
}

// controlPlanes are the control-plane namespaces that an Infra refers to: the one that it names, and the one of its HostedCluster.
func controlPlanes(o client.Object) (all []string) {
	refs := input.Refs(o.(*v1alpha1.Infra))
	if refs.ControlPlaneNamespace != "" {
		all = append(all, refs.ControlPlaneNamespace)
	}
	if made := endpoint.ControlPlaneNamespaceOf(refs.HostedCluster); refs.HostedCluster.Name != "" && made != refs.ControlPlaneNamespace {
		all = append(all, made)
	}
	return all
}

// ControlPlane is the namespace into which HyperShift puts the control plane of a HostedCluster.
func ControlPlane(o client.Object) []string {
	return []string{endpoint.ControlPlaneNamespace(o.(*hyperv1.HostedCluster))}
}

// neighbours reads the other Infras on the same layer 2, and the networks, except ours, that lead there.
func (o *Observer) neighbours(ctx context.Context, seen *Infra) error {
	nads, err := o.leadingTo(ctx, seen.NAD)
	if err != nil {
		return err
	}
	for _, n := range nads {
		if n.Labels[names.LabelManagedBy] != names.ManagedBy {
			seen.Attachable = append(seen.Attachable, n)
		}
	}
	all, err := o.attachedTo(ctx, nads)
	if err != nil {
		return err
	}
	for _, n := range all {
		if n.Infra.UID == seen.Input.Infra.UID || n.Infra.DeletionTimestamp != nil {
			continue
		}
		if n.Children, err = o.children(ctx, n.Infra, client.UnsafeDisableDeepCopy); err != nil {
			return err
		}
		if n.OnOwnNetwork, err = o.onOwnNetwork(ctx, n); err != nil {
			return err
		}
		seen.Neighbours = append(seen.Neighbours, n)
	}
	return nil
}

// onOwnNetwork reads a neighbour's references where they, and no annotation, may decide that it is on its own network.
func (o *Observer) onOwnNetwork(ctx context.Context, n input.Neighbour) (bool, error) {
	refs := input.Refs(n.Infra)
	if n.NAD.Namespace != cmp.Or(refs.ControlPlaneNamespace, endpoint.ControlPlaneNamespaceOf(refs.HostedCluster)) {
		return false, nil
	}
	theirs := Infra{Input: input.Input{Infra: n.Infra}}
	if err := o.references(ctx, &theirs); err != nil {
		return false, err
	}
	err := o.whose(ctx, &theirs, n.NAD.Namespace)
	return err == nil && permission.OnOwnNetwork(theirs.Input), err
}

// leadingTo finds the NetworkAttachmentDefinitions that lead to the layer 2 of one, itself among them. These, the Infras that use them and
// their children are shared with the cache: a plan does not change its input.
func (o *Observer) leadingTo(ctx context.Context, n *nad.NetworkAttachmentDefinition) ([]nad.NetworkAttachmentDefinition, error) {
	if n == nil || len(layer2(n)) == 0 {
		return nil, nil
	}
	nads := &nad.List{}
	if err := o.Reader.List(ctx, nads, client.MatchingFields{IndexLayer2: layer2(n)[0]}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the NetworkAttachmentDefinitions of layer 2 %s: %w", layer2(n)[0], err)
	}
	return nads.Items, nil
}

// attachedTo finds the Infras whose workers use any of these networks, sorted by namespace and name.
func (o *Observer) attachedTo(ctx context.Context, nads []nad.NetworkAttachmentDefinition) ([]input.Neighbour, error) {
	var all []input.Neighbour
	for i := range nads {
		key := client.ObjectKeyFromObject(&nads[i])
		infras := &v1alpha1.InfraList{}
		if err := o.Reader.List(ctx, infras, client.MatchingFields{IndexNAD: key.String()}, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("listing the Infras of NetworkAttachmentDefinition %s: %w", key, err)
		}
		for j := range infras.Items {
			all = append(all, input.Neighbour{Infra: &infras.Items[j], NAD: &nads[i]})
		}
	}
	slices.SortFunc(all, func(a, b input.Neighbour) int {
		return slices.Compare([]string{a.Infra.Namespace, a.Infra.Name}, []string{b.Infra.Namespace, b.Infra.Name})
	})
	return all, nil
}

// OnSameLayer2 names the other Infras that a change of an Infra may concern.
func (o *Observer) OnSameLayer2(ctx context.Context, infra *v1alpha1.Infra) ([]types.NamespacedName, error) {
	ours, err := get[nad.NetworkAttachmentDefinition](ctx, o, input.Refs(infra).NAD)
	if err != nil {
		return nil, err
	}
	all, err := o.OnLayer2Of(ctx, ours)
	return slices.DeleteFunc(all, func(key types.NamespacedName) bool { return key == client.ObjectKeyFromObject(infra) }), err
}

// OnLayer2Of names the Infras on the layer 2 that a NetworkAttachmentDefinition leads to.
func (o *Observer) OnLayer2Of(ctx context.Context, n *nad.NetworkAttachmentDefinition) ([]types.NamespacedName, error) {
	nads, err := o.leadingTo(ctx, n)
	if err != nil {
		return nil, err
	}
	all, err := o.attachedTo(ctx, nads)
	var keys []types.NamespacedName
	for _, n := range all {
		keys = append(keys, client.ObjectKeyFromObject(n.Infra))
	}
	return keys, err
}
