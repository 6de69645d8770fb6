package kept

import (
	"fmt"
	"reflect"

	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cldmnky/oooi/internal/names"
)

// wholeOrNamed returns an object of a built-in kind, or what is kept of one that is too large. A cluster-scoped object stays whole: only a
// cluster's admin writes it.
func wholeOrNamed(object Object) Object {
	if _, marked := object.GetAnnotations()[names.AnnotationKeptInPart]; marked { // set by somebody else: the mark is ours alone
		annotations := object.GetAnnotations()
		delete(annotations, names.AnnotationKeptInPart)
		object.SetAnnotations(annotations)
	}
	octets := Octets(object)
	if octets <= MostOfKubernetes || object.GetNamespace() == "" {
		return object
	}
	return named(object, octets)
}

// named keeps an object's identity, and the label of an EndpointSlice that names its Service.
func named(object Object, octets int) Object {
	meta := identity(object)
	meta.Annotations = map[string]string{names.AnnotationKeptInPart: fmt.Sprintf(" %d", octets)}
	if service, is := object.GetLabels()[discoveryv1.LabelServiceName]; is {
		metav1.SetMetaDataLabel(&meta, discoveryv1.LabelServiceName, service)
	}
	left := reflect.New(reflect.TypeOf(object).Elem()).Interface().(Object)
	for name, value := range parts(left) {
		if name == "metadata" {
			value.Set(reflect.ValueOf(meta))
		}
	}
	if policy, is := left.(*networkingv1.NetworkPolicy); is { // else it would isolate every pod, and we would add our own policy
		policy.Spec.PolicyTypes = []networkingv1.PolicyType{networkingv1.PolicyTypeEgress}
	}
	return left
}
