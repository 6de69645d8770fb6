package diagnosecli

import (
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/step"
)

const (
	// leasesAtOnce is how many are in memory at a time with their history, which takes up to 32 KiB each.
	leasesAtOnce = 500
	// mostGlanced is how many leases are read again and again, at most: a pool may have 65,536, and a guest can invent clients that take them.
	mostGlanced = 4000
)

// leases are the Infra's, without their history.
func (r reader) leases() (all step.Read[[]v1alpha1.DHCPLease]) {
	mine := client.MatchingLabels{names.LabelInfra: r.infra.Name}
	for next := ""; ; {
		list, unread := read[v1alpha1.DHCPLeaseList](r, r.infra.Namespace, "dhcpleases.hostedcluster.densityops.com", mine, client.Limit(leasesAtOnce), client.Continue(next))
		if unread != "" {
			return step.Read[[]v1alpha1.DHCPLease]{Unread: unread}
		}
		for _, l := range list.Items {
			l.ManagedFields, l.Spec.History = nil, nil
			all.Is = append(all.Is, l)
		}
		if !r.kubelets && len(all.Is) > mostGlanced {
			return step.Read[[]v1alpha1.DHCPLease]{Unread: fmt.Sprintf("there are more than %d; see oooi diagnose and oooi leases list", mostGlanced)}
		}
		if next = list.Continue; next == "" {
			return all
		}
	}
}
