package appsingress

import (
	"reflect"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	accore "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/utils/ptr"

	"github.com/cldmnky/oooi/internal/managedfields"
)

// wish is the Service that should exist; the zero wish is none.
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

// write is the next step to a wish; the zero write is none.
type write struct {
	remove *corev1.Service
	apply  *unstructured.Unstructured
	over   *corev1.Service // the Service that apply changes; nil if it creates one
}

// next is one write at a time; its result is seen before the next is decided. A Service's class is immutable (ValidateServiceUpdate), so
// another class needs another Service. A Service that is being deleted is waited for; one that is not ours is left alone.
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
