package status

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/names"
)

// Stage adds a stage to those of a lease's holder, on the condition that the lease is still what was read: daemons write the others.
func (w *Writer) Stage(ctx context.Context, l *v1alpha1.DHCPLease, s v1alpha1.Stage) error {
	was := l.DeepCopy()
	if len(l.Stages()) == 0 { // those that are there are another's
		l.Status = v1alpha1.DHCPLeaseStatus{Client: l.Spec.Holder(), VMUID: l.HolderVM()}
	}
	l.Status.Stages = append(l.Status.Stages, s)
	return w.Client.Status().Patch(ctx, l, client.MergeFromWithOptions(was, client.MergeFromWithOptimisticLock{}), client.FieldOwner(names.StagesFieldOwner))
}
