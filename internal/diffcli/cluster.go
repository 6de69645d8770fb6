// Package diffcli implements `oooi diff`: it reads what the operator reads, with the caller's own permissions, and has internal/change say
// what a change does. It stores nothing in the cluster.
package diffcli

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/internal/controller"
	"github.com/cldmnky/oooi/internal/observe"
)

// cluster reads each list of objects once, as the operator's cache has it. What the caller may not read counts as absent, and is noted.
type cluster struct {
	api client.Client
	// homes are the namespaces that are listed if the caller may not list all.
	homes   []string
	options cache.Options
	lists   map[listed]known
	news    int        // objects of the files that do not exist
	mu      sync.Mutex // of unread: a bridge's Secrets and ConfigMaps are read at once
	unread  map[string]bool
}

type listed struct {
	kind      schema.GroupVersionKind
	namespace string // empty: all
}

// known are the objects of a list by their keys; refused says that the caller may not list them.
type known struct {
	objects map[types.NamespacedName]client.Object
	refused bool
}

func newCluster(api client.Client, homes []string) *cluster {
	return &cluster{api: api, homes: homes, options: controller.CacheOptions(), lists: map[listed]known{}, unread: map[string]bool{}}
}

// observer reads the cluster as the operator's does.
func (c *cluster) observer(settings Settings) *observe.Observer {
	kinds := observe.NewKinds(true, true)
	for _, kind := range kinds.All() {
		gvk, err := c.api.GroupVersionKindFor(kind)
		if err == nil {
			_, err = c.api.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
		}
		kinds.Set(kind, err == nil)
	}
	return &observe.Observer{Reader: c, Live: live{c}, Settings: settings.Input, Kinds: kinds, Listeners: observe.NewListeners(), Now: settings.Now}
}

// Get implements client.Reader.
func (c *cluster) Get(ctx context.Context, key types.NamespacedName, into client.Object, opts ...client.GetOption) error {
	if _, single := into.(*corev1.ConfigMap); single { // a namespace may have many, and large ones
		return live{c}.Get(ctx, key, into, opts...)
	}
	gvk, err := c.api.GroupVersionKindFor(into)
	if err != nil {
		return err
	}
	all, err := c.all(ctx, gvk, key.Namespace)
	switch {
	case err != nil:
		return err
	case all.refused:
		return live{c}.Get(ctx, key, into, opts...)
	}
	found, is := all.objects[key]
	if !is {
		return apierrors.NewNotFound(schema.GroupResource{Group: gvk.Group, Resource: gvk.Kind}, key.Name)
	}
	observe.Assign(into, found)
	return nil
}

// List implements client.Reader.
func (c *cluster) List(ctx context.Context, into client.ObjectList, opts ...client.ListOption) error {
	if _, many := into.(*corev1.ConfigMapList); many {
		return live{c}.List(ctx, into, opts...)
	}
	gvk, asked, err := c.asked(into, opts)
	if err != nil {
		return err
	}
	found, err := c.all(ctx, gvk, asked.Namespace)
	if err != nil {
		return err
	}
	if found.refused {
		c.cannot("list", gvk, asked.Namespace)
		if found, err = c.inHomes(ctx, gvk, asked.Namespace); err != nil {
			return err
		}
	}
	items := reflect.New(reflect.TypeOf(into).Elem()).Interface().(client.ObjectList)
	slice := reflect.ValueOf(items).Elem().FieldByName("Items")
	for _, key := range slices.SortedFunc(maps.Keys(found.objects), byKey) {
		if observe.Selects(asked, found.objects[key]) {
			slice = reflect.Append(slice, reflect.ValueOf(found.objects[key].DeepCopyObject()).Elem())
		}
	}
	reflect.ValueOf(into).Elem().FieldByName("Items").Set(slice)
	return nil
}

// asked is the kind of a list's objects, and what of them is asked for.
func (c *cluster) asked(into client.ObjectList, opts []client.ListOption) (gvk schema.GroupVersionKind, asked client.ListOptions, err error) {
	gvk, err = c.api.GroupVersionKindFor(into)
	gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
	asked.ApplyOptions(opts)
	return gvk, asked, err
}

func byKey(a, b types.NamespacedName) int {
	return slices.Compare([]string{a.Namespace, a.Name}, []string{b.Namespace, b.Name})
}

// inHomes lists a kind in the namespaces of the files, if all was asked for.
func (c *cluster) inHomes(ctx context.Context, gvk schema.GroupVersionKind, namespace string) (known, error) {
	all := known{objects: map[types.NamespacedName]client.Object{}}
	if namespace != "" {
		return all, nil
	}
	for _, home := range c.homes {
		more, err := c.all(ctx, gvk, home)
		if err != nil {
			return all, err
		}
		maps.Copy(all.objects, more.objects)
	}
	return all, nil
}

// all lists a kind in a namespace, once.
func (c *cluster) all(ctx context.Context, gvk schema.GroupVersionKind, namespace string) (known, error) {
	for _, at := range []string{"", namespace} {
		if k, read := c.lists[listed{gvk, at}]; read && (at == namespace || !k.refused) {
			return k, nil
		}
	}
	made, err := c.api.Scheme().New(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	if err != nil {
		return known{}, err
	}
	list := made.(client.ObjectList)
	err = c.api.List(ctx, list, client.InNamespace(namespace), c.kept(gvk))
	k := known{objects: map[types.NamespacedName]client.Object{}, refused: apierrors.IsForbidden(err)}
	if err != nil && !k.refused && !meta.IsNoMatchError(err) && !apierrors.IsNotFound(err) {
		return k, fmt.Errorf("listing %s of namespace %q: %w", gvk.Kind, namespace, err)
	}
	items, err := meta.ExtractList(list)
	if err != nil {
		return k, err
	}
	for _, item := range items {
		trimmed, err := c.options.DefaultTransform(item)
		if err != nil {
			return k, err
		}
		object := trimmed.(client.Object)
		k.objects[client.ObjectKeyFromObject(object)] = object
	}
	c.lists[listed{gvk, namespace}] = k
	return k, nil
}

// kept selects the objects of a kind that the operator's cache keeps.
func (c *cluster) kept(gvk schema.GroupVersionKind) client.ListOption {
	for kind, by := range c.options.ByObject {
		if of, err := c.api.GroupVersionKindFor(kind); err == nil && of == gvk && by.Label != nil {
			return client.MatchingLabelsSelector{Selector: by.Label}
		}
	}
	return client.MatchingLabels{}
}

// cannot notes what the caller may not do.
func (c *cluster) cannot(verb string, gvk schema.GroupVersionKind, namespace string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unread[c.right(verb, gvk, namespace)] = true
}

// right is one that the caller may lack, in words.
func (c *cluster) right(verb string, gvk schema.GroupVersionKind, namespace string) string {
	resource := gvk.Kind
	if m, err := c.api.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version); err == nil {
		resource = m.Resource.GroupResource().String()
		if m.Scope.Name() != meta.RESTScopeNameNamespace {
			return fmt.Sprintf("%s %s", verb, resource)
		}
	}
	if namespace == "" {
		return fmt.Sprintf("%s %s in all namespaces", verb, resource)
	}
	return fmt.Sprintf("%s %s in namespace %s", verb, resource, namespace)
}

// live asks the API server itself.
type live struct{ *cluster }

// Get implements client.Reader.
func (l live) Get(ctx context.Context, key types.NamespacedName, into client.Object, opts ...client.GetOption) error {
	err := l.api.Get(ctx, key, into, opts...)
	if _, secret := into.(*corev1.Secret); secret || !apierrors.IsForbidden(err) { // who plans from a Secret says what follows
		return err
	}
	gvk, kindErr := l.api.GroupVersionKindFor(into)
	if kindErr != nil {
		return kindErr
	}
	l.cannot("get", gvk, key.Namespace)
	return apierrors.NewNotFound(schema.GroupResource{Group: gvk.Group, Resource: gvk.Kind}, key.Name)
}

// List implements client.Reader.
func (l live) List(ctx context.Context, into client.ObjectList, opts ...client.ListOption) error {
	err := l.api.List(ctx, into, opts...)
	if !apierrors.IsForbidden(err) {
		return err
	}
	gvk, asked, err := l.asked(into, opts)
	if err != nil {
		return err
	}
	l.cannot("list", gvk, asked.Namespace)
	return nil
}
