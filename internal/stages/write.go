package stages

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/boot"
	"github.com/cldmnky/oooi/internal/names"
)

// errNoStages: the CRD in the cluster is of a release before leases had a status.
var errNoStages = errors.New("the CRD of DHCPLeases has no status: install the CRDs of this release")

// write reads the lease, and writes its status on the condition that it is still what was read. A lease that is gone, or somebody else's by now,
// is left alone. Only the subresource is written, so the spec, and its generation, stay DHCP's (dhcp-rules.md#lease-1).
func (b *Book) write(ctx context.Context, w worker) (err error) {
	for range attempts {
		var lease *v1alpha1.DHCPLease
		if lease, err = b.read(ctx, w.lease); err != nil {
			return client.IgnoreNotFound(err)
		}
		status, news := merged(lease, w.saw)
		if lease.Spec.State != v1alpha1.LeaseBound || lease.Spec.Holder() != w.client || !news {
			return nil
		}
		times := counted(lease, w.saw)
		if err = b.patch(ctx, lease, status); err == nil {
			for stage, after := range times {
				boot.Count(b.infra, stage, after)
			}
		}
		if !apierrors.IsConflict(err) {
			break
		}
	}
	if apierrors.IsNotFound(err) {
		if _, gone := b.read(ctx, w.lease); gone != nil {
			return client.IgnoreNotFound(gone)
		}
		return errNoStages
	}
	return err
}

func (b *Book) read(ctx context.Context, name string) (*v1alpha1.DHCPLease, error) {
	ctx, cancel := context.WithTimeout(ctx, writeTime)
	defer cancel()
	lease := &v1alpha1.DHCPLease{}
	return lease, b.client.Get(ctx, client.ObjectKey{Namespace: b.namespace, Name: name}, lease)
}

func (b *Book) patch(ctx context.Context, lease *v1alpha1.DHCPLease, status v1alpha1.DHCPLeaseStatus) error {
	ctx, cancel := context.WithTimeout(ctx, writeTime)
	defer cancel()
	was := lease.DeepCopy()
	lease.Status = status
	err := b.client.Status().Patch(ctx, lease, client.MergeFromWithOptions(was, client.MergeFromWithOptimisticLock{}), client.FieldOwner(names.StagesFieldOwner))
	if err == nil {
		written.Inc()
	}
	return err
}
