package diffcli

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/change"
)

// ending is said of what is being deleted: no plan is made of it, but a change may decide what its deletion waits for.
const ending = "it is being deleted; what follows is not foretold"

func (d *differ) endingInfra(ctx context.Context, key types.NamespacedName) (i Infra, err error) {
	was, is := &v1alpha1.Infra{}, &v1alpha1.Infra{}
	if err := d.after.Reader.Get(ctx, key, is); err != nil || is.DeletionTimestamp == nil {
		return i, client.IgnoreNotFound(err)
	}
	if err := d.before.Reader.Get(ctx, key, was); err != nil {
		return i, client.IgnoreNotFound(err)
	}
	i.Change = change.Change{Namespace: key.Namespace, Name: key.Name, Stopped: ending, Objects: change.Written("Infra", was, is)}
	return i, nil
}

func (d *differ) endingBridge(ctx context.Context, key types.NamespacedName) (c change.BridgeChange, notes []string, err error) {
	if c, err = d.asWritten(ctx, key); !c.None() {
		notes = []string{fmt.Sprintf("DPUHCPBridge %s: %s", key, ending)}
	}
	return c, notes, err
}
