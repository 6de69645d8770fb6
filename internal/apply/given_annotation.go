package apply

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/names"
)

// Remember records on an Infra what it is given, before anything is made with that.
func (w *Writer) Remember(ctx context.Context, infra *v1alpha1.Infra, given string) error {
	if given == "" || infra.Annotations[names.AnnotationGiven] == given {
		return nil
	}
	changed := infra.DeepCopy()
	if changed.Annotations == nil {
		changed.Annotations = map[string]string{}
	}
	changed.Annotations[names.AnnotationGiven] = given
	if err := w.Client.Patch(ctx, changed, client.MergeFrom(infra), client.FieldOwner(names.ManagerFieldOwner)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("remembering the addresses of Infra %s/%s: %w", infra.Namespace, infra.Name, err)
	}
	written(ctx, "patch", "Infra", infra)
	return nil
}
