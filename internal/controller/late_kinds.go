package controller

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/cldmnky/oooi/internal/observe"
)

// lookEvery is the interval between looks for kinds; a kind is watched within 10 s of its CRD (operator-rules.md#late-kinds).
const lookEvery = 5 * time.Second

// lateKinds watches kinds that a cluster may lack, while it serves them.
type lateKinds struct {
	kinds     *observe.Kinds
	discovery discovery.DiscoveryInterfaceWithContext
	cache     cache.Cache
	scheme    *runtime.Scheme
	log       logr.Logger
	waits     []lateWatch
	// tell is called when a kind has appeared, with or without objects, or disappeared: an object may wait for it.
	tell []func()
}

// lateWatch is a watch of a kind that a controller wants.
type lateWatch struct {
	kind       client.Object
	controller controller.Controller
	handler    handler.EventHandler
}

func (l *lateKinds) watch(c controller.Controller, kind client.Object, h handler.EventHandler) {
	l.waits = append(l.waits, lateWatch{kind, c, h})
}

// NeedLeaderElection implements manager.LeaderElectionRunnable. A manager that does not lead serves admission, which reads the same kinds.
func (l *lateKinds) NeedLeaderElection() bool { return false }

// Start looks for kinds until the context ends.
func (l *lateKinds) Start(ctx context.Context) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			l.look(ctx)
		}
	}
}

// look starts to watch each kind that has appeared, and marks each that has disappeared as absent.
func (l *lateKinds) look(ctx context.Context) {
	served := map[schema.GroupVersion]*metav1.APIResourceList{}
	for _, kind := range l.kinds.All() {
		gvk, err := apiutil.GVKForObject(kind, l.scheme)
		if version := gvk.GroupVersion(); err == nil && served[version] == nil {
			served[version], err = l.resources(ctx, version)
		}
		if err != nil {
			l.log.Error(err, "looking for a kind", "kind", gvk)
			continue
		}
		is := has(served[gvk.GroupVersion()], gvk.Kind)
		if is == l.kinds.Served(kind) {
			continue
		}
		if is {
			err = l.begin(ctx, kind)
		} else {
			l.kinds.Set(kind, false)
		}
		if err != nil {
			l.log.Error(err, "watching a kind", "kind", gvk)
			continue
		}
		l.log.Info("kinds have changed", "kind", gvk.Kind, "served", is)
		for _, tell := range l.tell {
			tell()
		}
	}
}

// resources lists the resources of a version; none if the version is not served.
func (l *lateKinds) resources(ctx context.Context, of schema.GroupVersion) (*metav1.APIResourceList, error) {
	all, err := l.discovery.ServerResourcesForGroupVersionWithContext(ctx, of.String())
	if apierrors.IsNotFound(err) {
		return &metav1.APIResourceList{}, nil
	}
	return all, err
}

func has(served *metav1.APIResourceList, kind string) bool {
	return slices.ContainsFunc(served.APIResources, func(r metav1.APIResource) bool { return r.Kind == kind })
}

// versions returns the kind as which an object or list is read, and the versions in which the API server itself says that it serves that kind.
func (l *lateKinds) versions(ctx context.Context, object runtime.Object) (read schema.GroupVersionKind, all []string, err error) {
	if read, err = apiutil.GVKForObject(object, l.scheme); err != nil {
		return read, nil, err
	}
	read.Kind = strings.TrimSuffix(read.Kind, "List")
	groups, err := l.discovery.ServerGroupsWithContext(ctx)
	if err != nil {
		return read, nil, fmt.Errorf("looking for versions of %s: %w", read.GroupKind(), err)
	}
	for _, g := range groups.Groups {
		for _, v := range g.Versions {
			if g.Name != read.Group {
				continue
			}
			served, err := l.resources(ctx, schema.GroupVersion{Group: g.Name, Version: v.Version})
			if err != nil {
				return read, nil, fmt.Errorf("looking for %s in %s: %w", read.Kind, v.GroupVersion, err)
			}
			if has(served, read.Kind) {
				all = append(all, v.GroupVersion)
			}
		}
	}
	return read, all, nil
}

// begin starts to watch a kind. The kind is marked as served first: its first events lead to reads. The informer of a kind that disappeared
// and came back is stale, and would retry for minutes; it is removed.
func (l *lateKinds) begin(ctx context.Context, kind client.Object) error {
	if err := l.cache.RemoveInformer(ctx, kind); err != nil {
		return err
	}
	if err := index(l.cache, kind); err != nil {
		return err
	}
	l.kinds.Set(kind, true)
	var errs []error
	for _, w := range l.waits {
		if reflect.TypeOf(w.kind) == reflect.TypeOf(kind) {
			errs = append(errs, w.controller.Watch(source.Kind(l.cache, w.kind, w.handler)))
		}
	}
	return errors.Join(errs...)
}
