package controller

import (
	"context"
	"reflect"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/cldmnky/oooi/internal/observe"
)

// lookEvery is how often absent kinds are looked for; one is watched within 10 s of its CRD (design/architecture.md).
const lookEvery = 5 * time.Second

// lateKinds watches kinds that a cluster may lack, from the moment that it has them.
type lateKinds struct {
	kinds  *observe.Kinds
	mapper meta.RESTMapper
	cache  cache.Cache
	scheme *runtime.Scheme
	log    logr.Logger
	waits  []lateWatch
	// tell is called when a kind has appeared, with or without objects: somebody may wait for it.
	tell []func()
}

// lateWatch is one controller's wish to hear of a kind.
type lateWatch struct {
	kind       client.Object
	controller controller.Controller
	handler    handler.EventHandler
}

func (l *lateKinds) watch(c controller.Controller, kind client.Object, h handler.EventHandler) {
	l.waits = append(l.waits, lateWatch{kind, c, h})
}

// Start looks for absent kinds until the context ends or none is absent.
func (l *lateKinds) Start(ctx context.Context) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for len(l.kinds.Absent()) > 0 {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			l.look()
		}
	}
	return nil
}

// look begins to watch every kind that has appeared. It counts as served first: its first events lead to reads.
func (l *lateKinds) look() {
	for _, kind := range l.kinds.Absent() {
		gvk, err := apiutil.GVKForObject(kind, l.scheme)
		if err == nil {
			_, err = l.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
		}
		if err != nil {
			if !meta.IsNoMatchError(err) {
				l.log.Error(err, "looking for a kind", "kind", gvk)
			}
			continue
		}
		if err := index(l.cache, kind); err != nil {
			l.log.Error(err, "indexing a kind", "kind", gvk)
			continue
		}
		l.kinds.Appeared(kind)
		l.log.Info("kind is served", "kind", gvk.Kind)
		for _, w := range l.waits {
			if reflect.TypeOf(w.kind) != reflect.TypeOf(kind) {
				continue
			}
			if err := w.controller.Watch(source.Kind(l.cache, w.kind, w.handler)); err != nil {
				l.log.Error(err, "watching a kind", "kind", gvk)
			}
		}
		for _, tell := range l.tell {
			tell()
		}
	}
}
