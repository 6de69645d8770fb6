package observe

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/plan/ending"
)

// Remains reads what is left of an Infra whose DHCPServer is being deleted. Pods come from the API server itself: no others of the cluster are
// ever looked for, and none are kept.
func (o *Observer) Remains(ctx context.Context, infra *v1alpha1.Infra) (ending.Remains, error) {
	r, all := ending.Remains{Infra: infra}, &corev1.PodList{}
	of := client.MatchingLabels{names.LabelApp: names.DHCP, names.LabelInstance: names.DHCPServer(infra.Name)}
	if err := o.Live.List(ctx, all, client.InNamespace(infra.Namespace), of); err != nil {
		return r, fmt.Errorf("listing the DHCP pods of Infra %s/%s: %w", infra.Namespace, infra.Name, err)
	}
	r.Pods = all.Items
	for _, pod := range r.Pods {
		node, err := get[corev1.Node](ctx, o, types.NamespacedName{Name: pod.Spec.NodeName})
		if err != nil {
			return r, err
		}
		if node != nil {
			r.Nodes = append(r.Nodes, *node)
		}
	}
	return r, nil
}
