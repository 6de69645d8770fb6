package live

import (
	"context"
	"errors"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/cldmnky/oooi/api/v1alpha1"
)

// right to read one resource in one namespace, or in all ("").
type right struct{ verb, group, resource, namespace string }

// guard reads with the manager's rights what a viewer has the right to read himself. What is in no list of rights is read for nobody.
type guard struct {
	api     client.Client
	granted map[right]bool
}

// errSecrets is why a page lacks what `oooi ui` shows of the hosted cluster.
var errSecrets = errors.New("the operator reads no Secrets for a page; oooi ui does, with your own permissions")

func (g guard) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	if err := g.judge("get", into, key.Namespace, key.Name); err != nil {
		return err
	}
	if infra, is := into.(*v1alpha1.Infra); is {
		return infraOf(ctx, g.api, key, infra)
	}
	return g.api.Get(ctx, key, into, options...)
}

// infraOf gets an Infra from a list: the operator has the right to list them, and not to get one.
func infraOf(ctx context.Context, api client.Client, key client.ObjectKey, into *v1alpha1.Infra) error {
	var all v1alpha1.InfraList
	if err := api.List(ctx, &all, client.InNamespace(key.Namespace), client.MatchingFields{"metadata.name": key.Name}); err != nil {
		return err
	}
	if len(all.Items) == 0 {
		return apierrors.NewNotFound(schema.GroupResource{Group: oooi, Resource: "infras"}, key.Name)
	}
	*into = all.Items[0]
	return nil
}

func (g guard) List(ctx context.Context, into client.ObjectList, options ...client.ListOption) error {
	o := client.ListOptions{}
	o.ApplyOptions(options)
	if err := g.judge("list", into, o.Namespace, ""); err != nil {
		return err
	}
	return g.api.List(ctx, into, options...)
}

func (g guard) judge(verb string, of runtime.Object, namespace, name string) error {
	r, err := g.needs(verb, of, namespace)
	if err != nil {
		return err
	}
	if !g.granted[r] {
		return apierrors.NewForbidden(schema.GroupResource{Group: r.group, Resource: r.resource}, name, errors.New("you may not "+verb+" it"))
	}
	return nil
}

// needs is the right that reading an object, or a list, takes.
func (g guard) needs(verb string, of runtime.Object, namespace string) (right, error) {
	gvk, err := apiutil.GVKForObject(of, g.api.Scheme())
	if err != nil {
		return right{}, err
	}
	gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
	if gvk.GroupKind() == (schema.GroupKind{Kind: "Secret"}) {
		return right{}, errSecrets
	}
	at, err := g.api.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return right{}, err
	}
	if at.Scope.Name() == meta.RESTScopeNameRoot {
		namespace = ""
	}
	return right{verb, gvk.Group, at.Resource.Resource, namespace}, nil
}

func (g guard) all(rights []right) bool {
	return !slices.ContainsFunc(rights, func(r right) bool { return !g.granted[r] })
}
