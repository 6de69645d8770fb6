package stages

import (
	"context"

	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/daemon"
	"github.com/cldmnky/oooi/internal/names"
)

// pageSize is how many leases are read at once.
const pageSize = 500

// Keeper keeps of the leases of one Infra what it needs of them. It may not change them.
type Keeper interface {
	// Learn takes in a lease as it is now, and Lose that it is gone.
	Learn(*v1alpha1.DHCPLease)
	Lose(*v1alpha1.DHCPLease)
	// KeepOnly is told the names of all leases when all have been read: there are no others.
	KeepOnly(names map[string]bool)
}

// Follow follows the leases of an Infra until the context ends, for this book and for others.
func (b *Book) Follow(ctx context.Context, infra string, others ...Keeper) {
	b.infra = b.namespace + "/" + infra
	keepers := append([]Keeper{b}, others...)
	tell := func(tell func(Keeper)) {
		for _, k := range keepers {
			tell(k)
		}
	}
	learn := func(l *v1alpha1.DHCPLease) { tell(func(k Keeper) { k.Learn(l) }) }
	own := []client.ListOption{client.InNamespace(b.namespace), client.MatchingLabels{names.LabelInfra: infra}}
	daemon.Unkept[*v1alpha1.DHCPLease]{
		List: func(ctx context.Context) (string, error) {
			listed := map[string]bool{}
			version, err := daemon.Pages(&v1alpha1.DHCPLeaseList{}, pageSize, func(page *v1alpha1.DHCPLeaseList, limits ...client.ListOption) error {
				err := b.client.List(ctx, page, append(limits, own...)...)
				for i := range page.Items {
					listed[page.Items[i].Name] = true
					learn(&page.Items[i])
				}
				return err
			})
			if err == nil {
				tell(func(k Keeper) { k.KeepOnly(listed) })
			}
			return version, err
		},
		Watch: func(ctx context.Context, o client.ListOption) (watch.Interface, error) {
			return b.client.Watch(ctx, &v1alpha1.DHCPLeaseList{}, append(own[:len(own):len(own)], o)...)
		},
		Changed: learn, Gone: func(l *v1alpha1.DHCPLease) { tell(func(k Keeper) { k.Lose(l) }) },
	}.Follow(ctx, &v1alpha1.DHCPLease{})
}
