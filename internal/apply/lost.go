package apply

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/internal/names"
)

// lostGrace is how many seconds the pod has to end, where its node is not lost after all or comes back.
const lostGrace = 1

// Lost has a pod that is lost replaced on another node, which the label sees to (workload, beside): its ReplicaSet makes another as soon
// as this one is to end, whether or not its node can end it.
func (w *Writer) Lost(ctx context.Context, pod types.NamespacedName, uid types.UID) error {
	o := &corev1.Pod{}
	o.Namespace, o.Name = pod.Namespace, pod.Name
	label := fmt.Appendf(nil, `{"metadata":{"uid":%q,"labels":{%q:"true"}}}`, uid, names.LabelLost) // of another pod with this name, it is refused
	err := w.Client.Patch(ctx, o, client.RawPatch(types.MergePatchType, label), client.FieldOwner(names.ManagerFieldOwner))
	if err == nil {
		err = w.Client.Delete(ctx, o, client.Preconditions{UID: &uid}, client.GracePeriodSeconds(lostGrace))
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("replacing the lost pod %s: %w", pod, err)
	}
	written(ctx, "delete", "Pod", o)
	return nil
}
