package observe

import (
	"context"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/endpoint"
	"github.com/cldmnky/oooi/internal/nad"
	"github.com/cldmnky/oooi/internal/plan/input"
	"github.com/cldmnky/oooi/internal/plan/provision"
)

// IndexCluster finds NodePools by the HostedCluster that they name.
const IndexCluster = "clusterName"

// ClusterOf is the name of a NodePool's HostedCluster, which is in the same namespace.
func ClusterOf(o client.Object) []string { return []string{o.(*hyperv1.NodePool).Spec.ClusterName} }

// Provisioning is one HostedCluster as it is, and what may be made from it.
type Provisioning struct {
	provision.Input
	// Pause says why writes are stopped; empty if they are not.
	Pause Pause
}

// Gone says that there is no such HostedCluster (any more).
func (p Provisioning) Gone() bool { return p.HostedCluster == nil }

// Provisioning reads a HostedCluster, its NodePools, the Infra of the same name, and what is on the workers' VLAN.
func (o *Observer) Provisioning(ctx context.Context, key types.NamespacedName) (Provisioning, error) {
	seen := Provisioning{}
	var err error
	if seen.HostedCluster, err = get[hyperv1.HostedCluster](ctx, o, key); err != nil || seen.Gone() {
		return seen, err
	}
	if seen.NodePools, err = o.nodePools(ctx, key); err != nil {
		return seen, err
	}
	if seen.Infra, err = get[v1alpha1.Infra](ctx, o, key); err != nil {
		return seen, err
	}
	if err := o.vlanOf(ctx, &seen); err != nil {
		return seen, err
	}
	annotations := map[string]string{}
	if seen.Infra != nil {
		annotations = seen.Infra.Annotations
	}
	seen.Pause = o.pause(annotations, seen.HostedCluster)
	return seen, nil
}

func (o *Observer) vlanOf(ctx context.Context, seen *Provisioning) (err error) {
	if seen.AllowedNamespaces = o.Settings.NADSourceNamespaces; !provision.AwaitsSubnet(seen.HostedCluster) {
		return nil
	}
	if seen.NAD, err = get[nad.NetworkAttachmentDefinition](ctx, o, seen.Attachment()); err != nil {
		return err
	}
	if seen.ControlPlane, err = o.controlPlaneOf(ctx, seen.HostedCluster); err != nil {
		return err
	}
	nads, err := o.leadingTo(ctx, seen.NAD)
	if err != nil {
		return err
	}
	seen.OnVLAN, err = o.attachedTo(ctx, nads)
	return err
}

// controlPlaneOf is the namespace into which HyperShift has put a HostedCluster's control plane; empty while there is none: networks in a
// namespace of that name may be somebody else's.
func (o *Observer) controlPlaneOf(ctx context.Context, hc *hyperv1.HostedCluster) (string, error) {
	namespace, of := endpoint.ControlPlaneNamespace(hc), client.ObjectKeyFromObject(hc)
	made, err := o.hostedControlPlane(ctx, namespace, of)
	if err != nil || made == nil {
		return "", err
	}
	if theirs, named := input.ClusterOf(made); named && theirs != of {
		return "", nil
	}
	return namespace, nil
}

// nodePools of a HostedCluster. They are shared with the cache: a plan does not change its input.
func (o *Observer) nodePools(ctx context.Context, hc types.NamespacedName) ([]hyperv1.NodePool, error) {
	all, err := list[hyperv1.NodePoolList](ctx, o, hc.Namespace, client.MatchingFields{IndexCluster: hc.Name}, client.UnsafeDisableDeepCopy)
	if err != nil || all == nil {
		return nil, err
	}
	return byName(all.Items), nil
}
