package observe

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/names"
)

// Leases of an Infra, from the API server itself: nobody keeps them in memory.
func (o *Observer) Leases(ctx context.Context, infra *v1alpha1.Infra) ([]v1alpha1.DHCPLease, error) {
	all := &v1alpha1.DHCPLeaseList{}
	ours := client.MatchingLabels{names.LabelInfra: infra.Name, names.LabelInfraNamespace: infra.Namespace}
	if err := o.Live.List(ctx, all, client.InNamespace(infra.Namespace), ours); err != nil {
		return nil, fmt.Errorf("listing the leases of Infra %s/%s: %w", infra.Namespace, infra.Name, err)
	}
	return all.Items, nil
}
