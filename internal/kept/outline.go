package kept

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cldmnky/oooi/internal/dpf"
	"github.com/cldmnky/oooi/internal/nad"
	"github.com/cldmnky/oooi/internal/names"
)

// outline keeps an object's identity, and of each other part what fits. Of the finalizers it keeps ours alone: package apply reads all of them
// before it changes one.
func outline(object Object, part string, octets int) Object {
	left := reflect.New(reflect.TypeOf(object).Elem()).Interface().(Object)
	from := map[string]reflect.Value{"metadata": reflect.ValueOf(identity(object))}
	for name, value := range parts(object) {
		if name != "metadata" {
			from[name] = fitting(value, new(mostOfOutline))
		}
	}
	for name, value := range parts(left) {
		value.Set(from[name])
	}
	mark := map[string]string{names.AnnotationKeptInPart: fmt.Sprintf("%s %d", part, octets)}
	maps.Copy(mark, left.GetAnnotations())
	left.SetAnnotations(mark)
	return left
}

// identity is the metadata of an outline that is read.
func identity(object Object) metav1.ObjectMeta {
	m := metav1.ObjectMeta{
		Namespace: object.GetNamespace(), Name: object.GetName(), UID: object.GetUID(), ResourceVersion: object.GetResourceVersion(), Generation: object.GetGeneration(),
		CreationTimestamp: object.GetCreationTimestamp(), DeletionTimestamp: object.GetDeletionTimestamp(), Annotations: fit(object.GetAnnotations()),
	}
	for _, key := range names.Labels {
		if value, set := object.GetLabels()[key]; set {
			metav1.SetMetaDataLabel(&m, key, value)
		}
	}
	for _, ours := range []string{names.Finalizer, names.BridgeFinalizer} {
		if slices.Contains(object.GetFinalizers(), ours) {
			m.Finalizers = append(m.Finalizers, ours)
		}
	}
	if ref := metav1.GetControllerOf(object); ref != nil {
		m.OwnerReferences = []metav1.OwnerReference{fit(*ref)}
	}
	return m
}

func fit[T any](value T) T {
	return fitting(reflect.ValueOf(value), new(mostOfOutline)).Interface().(T)
}

// fitting returns a copy of a value, without the lists, maps and strings for which there is no room left.
func fitting(v reflect.Value, room *int) reflect.Value {
	into := reflect.New(v.Type()).Elem()
	switch v.Kind() {
	case reflect.Struct:
		if !open(v.Type()) {
			into.Set(v)
			break
		}
		for i := range v.NumField() {
			into.Field(i).Set(fitting(v.Field(i), room))
		}
	case reflect.Pointer:
		if !v.IsNil() {
			into.Set(reflect.New(v.Type().Elem()))
			into.Elem().Set(fitting(v.Elem(), room))
		}
	case reflect.String, reflect.Slice, reflect.Map, reflect.Interface:
		if octets := beyond(v); octets <= *room {
			*room -= octets
			into.Set(v)
		}
	default:
		into.Set(v)
	}
	return into
}

// open says whether all fields of a struct are exported. Others, such as times and quantities, are copied as a whole.
func open(of reflect.Type) bool {
	for i := range of.NumField() {
		if !of.Field(i).IsExported() {
			return false
		}
	}
	return true
}

// others are the annotations of other projects that are read here, on custom resources.
var others = []string{names.AnnotationHostedCluster, names.AnnotationConfigVersion, nad.ResourceName, dpf.AnnotationSkipSizeCheck}

// ours returns the annotations that are read here: those of our groups, and others.
func ours(annotations map[string]string) map[string]string {
	var all map[string]string
	for key, value := range annotations {
		group, _, _ := strings.Cut(key, "/")
		if key == names.AnnotationKeptInPart || group != names.Group && group != names.BridgeGroup && !slices.Contains(others, key) {
			continue
		}
		if all == nil {
			all = map[string]string{}
		}
		all[key] = value
	}
	return all
}
