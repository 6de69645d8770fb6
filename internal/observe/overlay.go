package observe

import (
	"context"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Overlay reads as if objects were written: they hide those of their names in the Reader below.
type Overlay struct {
	client.Reader
	objects []client.Object
}

// Over is the Observer's view as if these objects were written. Nobody is woken by what is read of it.
func (o *Observer) Over(objects ...client.Object) *Observer {
	over := *o
	over.Reader, over.Listeners = Overlay{o.Reader, objects}, NewListeners()
	return &over
}

// Get implements client.Reader.
func (o Overlay) Get(ctx context.Context, key types.NamespacedName, into client.Object, opts ...client.GetOption) error {
	for _, object := range o.objects {
		if reflect.TypeOf(object) == reflect.TypeOf(into) && client.ObjectKeyFromObject(object) == key {
			Assign(into, object)
			return nil
		}
	}
	return o.Reader.Get(ctx, key, into, opts...)
}

// Assign makes one object a copy of another of its type.
func Assign(into, of client.Object) {
	reflect.ValueOf(into).Elem().Set(reflect.ValueOf(of.DeepCopyObject()).Elem())
}

// List implements client.Reader.
func (o Overlay) List(ctx context.Context, into client.ObjectList, opts ...client.ListOption) error {
	if err := o.Reader.List(ctx, into, opts...); err != nil {
		return err
	}
	var asked client.ListOptions
	asked.ApplyOptions(opts)
	items, err := meta.ExtractList(into)
	if err != nil {
		return err
	}
	kind := elementOf(into)
	for _, object := range o.objects {
		if reflect.TypeOf(object) != kind {
			continue
		}
		items = slices.DeleteFunc(items, func(i runtime.Object) bool {
			return client.ObjectKeyFromObject(i.(client.Object)) == client.ObjectKeyFromObject(object)
		})
		if Selects(asked, object) {
			items = append(items, object.DeepCopyObject())
		}
	}
	return meta.SetList(into, items)
}

// elementOf is the type of a list's objects.
func elementOf(list client.ObjectList) reflect.Type {
	items, err := meta.GetItemsPtr(list)
	if err != nil {
		return nil
	}
	return reflect.PointerTo(reflect.TypeOf(items).Elem().Elem())
}

// Selects says whether a list with these options has an object: by its namespace, its labels, its name and the values of Indexes.
func Selects(asked client.ListOptions, object client.Object) bool {
	if asked.Namespace != "" && asked.Namespace != object.GetNamespace() {
		return false
	}
	if asked.LabelSelector != nil && !asked.LabelSelector.Matches(labels.Set(object.GetLabels())) {
		return false
	}
	if asked.FieldSelector == nil {
		return true
	}
	indexes := Indexes(object)
	for _, field := range asked.FieldSelector.Requirements() {
		values := []string{object.GetName()}
		if field.Field != "metadata.name" {
			of, known := indexes[field.Field]
			if !known {
				return false
			}
			values = of(object)
		}
		if !slices.Contains(values, field.Value) {
			return false
		}
	}
	return true
}
