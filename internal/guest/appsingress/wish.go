package appsingress

import (
	"reflect"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	accore "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/utils/ptr"

	"github.com/cldmnky/oooi/internal/managedfields"
)

// wish is the Service that should be; the zero one is none.
type wish struct {
	service *unstructured.Unstructured
	class   *string
}

func wishFor(s *accore.ServiceApplyConfiguration) (*wish, error) {
	if s == nil {
		return &wish{}, nil
	}
	intent, err := managedfields.Intent(s)
	w := &wish{service: intent}
	if s.Spec != nil {
		w.class = s.Spec.LoadBalancerClass
	}
	return w, err
}

func (w *wish) equals(other *wish) bool { return reflect.DeepEqual(w.service, other.service) }

func (w *wish) names(s *corev1.Service) bool {
	return w.service != nil && w.service.GetNamespace() == s.Namespace && w.service.GetName() == s.Name
}

// write is the next that brings our Services closer to a wish; the zero one is none.
type write struct {
	remove *corev1.Service
	apply  *unstructured.Unstructured
	over   *corev1.Service // what apply changes; nil when it creates
}

// next decides. One at a time: what it leads to is seen before the one after. A class is immutable on a Service (ValidateServiceUpdate),
// so another class is another Service; one that is going is waited for; one that is not ours is let be.
func (w *wish) next(ours []*corev1.Service, foreign bool) write {
	var live *corev1.Service
	for _, s := range ours {
		fits := w.names(s) && ptr.Equal(s.Spec.LoadBalancerClass, w.class)
		switch {
		case !fits && s.DeletionTimestamp == nil:
			return write{remove: s}
		case w.names(s):
			live = s
		}
	}
	going := live != nil && live.DeletionTimestamp != nil
	if w.service == nil || foreign || going || live != nil && managedfields.Unchanged(live, w.service) {
		return write{}
	}
	return write{apply: w.service, over: live}
}
