package status

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/component"
	"github.com/cldmnky/oooi/internal/names"
)

// leasePause is the least time between two writes that only change the count of leases.
const leasePause = time.Second

// Writer writes status, and emits events for changed conditions.
type Writer struct {
	Client client.Client
	Events events.EventRecorder

	mu      sync.Mutex
	counted map[types.UID]time.Time // when an Infra's status was last written
	unseen  map[types.UID]string    // the resourceVersion of our last write, until it is read
	unready map[types.UID]time.Time // since when an Infra that is reported Ready is not
}

// Infra writes an Infra's status if it changed. If only the count of leases did, the write may have to wait: later says how long.
func (w *Writer) Infra(ctx context.Context, infra *v1alpha1.Infra, want v1alpha1.InfraStatus, now time.Time) (later time.Duration, err error) {
	passes := w.mayPass(infra, want, now)
	if passes > 0 {
		want.Conditions = keeping(infra.Status.Conditions, want.Conditions, v1alpha1.ConditionReady, v1alpha1.ConditionDegraded)
	}
	if equality.Semantic.DeepEqual(infra.Status, want) {
		return passes, nil
	}
	but := want
	but.Leases = infra.Status.Leases
	if wait := w.sinceCounted(infra.UID, now); wait > 0 && equality.Semantic.DeepEqual(infra.Status, but) {
		return cmp.Or(min(passes, wait), wait), nil
	}
	if err := w.write(ctx, infra, want, names.ManagerFieldOwner); err != nil {
		return 0, err
	}
	w.counts(infra.UID, now)
	w.tell(infra, infra.Status.Conditions, want.Conditions)
	return passes, nil
}

// keeping returns now with the conditions of these kinds as they were before.
func keeping(before, now []metav1.Condition, kinds ...string) []metav1.Condition {
	all := slices.Clone(now)
	for _, kind := range kinds {
		if was := meta.FindStatusCondition(before, kind); was != nil {
			*meta.FindStatusCondition(all, kind) = *was
		}
	}
	return all
}

func (w *Writer) sinceCounted(uid types.UID, now time.Time) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return leasePause - now.Sub(w.counted[uid])
}

func (w *Writer) counts(uid types.UID, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.counted == nil {
		w.counted = map[types.UID]time.Time{}
	}
	w.counted[uid] = now
}

// Forget drops an object that is gone.
func (w *Writer) Forget(uid types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.counted, uid)
	delete(w.unseen, uid)
	delete(w.unready, uid)
}

// Overtook says whether an object was read before our last write of its status. If so, that write's own event is still to come, and brings
// us back. Judging by the old object would repeat events, and give changes a later time.
func (w *Writer) Overtook(o client.Object) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	order, err := resourceversion.CompareResourceVersion(o.GetResourceVersion(), w.unseen[o.GetUID()])
	if err == nil && order < 0 {
		return true
	}
	delete(w.unseen, o.GetUID())
	return false
}

// Child writes the controller's part of a child's status if it changed.
func (w *Writer) Child(ctx context.Context, of component.Component, server component.Server, report component.Report) error {
	if second := v1alpha1.InstanceCondition(v1alpha1.ConditionConfigAccepted, 1); report.Alone && meta.FindStatusCondition(of.Written(server).Conditions, second) != nil {
		return w.write(ctx, server, struct{}{}, client.FieldOwner(names.InstanceFieldOwner(of.FieldOwner, 1))) // its daemon is gone, and takes nothing back
	}
	has, want := of.Status(server, report)
	changes, err := differs(has, want)
	if err != nil || !changes {
		return err
	}
	if err := w.write(ctx, server, want, names.ManagerFieldOwner); err != nil {
		return err
	}
	w.tell(server, of.Written(server).Conditions, report.Conditions)
	return nil
}

// comeAndGo are the optional fields of the controller's part, and of an instance; no daemon writes them.
var comeAndGo = []string{"serviceName", "serviceClusterIP", "serviceIP", "backendCount", "healthyBackends", "node"}

// differs says whether has lacks a value of want, or still has one of our fields that want lacks. What daemons wrote besides does not
// count.
func differs(has, want any) (bool, error) {
	h, err := object(has)
	if err != nil {
		return false, err
	}
	w, err := object(want)
	return !contains(h, w), err
}

func object(value any) (map[string]any, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("encoding a status: %w", err)
	}
	out := map[string]any{}
	return out, json.Unmarshal(text, &out)
}

// contains compares objects field by field, of which those that come and go are in both or in neither, and lists of objects by looking for each
// wanted one.
func contains(has, want any) bool {
	switch w := want.(type) {
	case map[string]any:
		h, ok := has.(map[string]any)
		if slices.ContainsFunc(comeAndGo, func(field string) bool { return h[field] != nil && w[field] == nil }) {
			return false
		}
		for name, value := range w {
			if !ok || !contains(h[name], value) {
				return false
			}
		}
		return ok
	case []any:
		h, ok := has.([]any)
		for _, wanted := range w {
			found := false
			for _, element := range h {
				found = found || contains(element, wanted)
			}
			if !found {
				return false
			}
		}
		return ok
	}
	return reflect.DeepEqual(has, want)
}

func (w *Writer) write(ctx context.Context, of client.Object, status any, owner client.FieldOwner) error {
	gvk, err := apiutil.GVKForObject(of, w.Client.Scheme())
	if err != nil {
		return err
	}
	fields, err := object(status)
	if err != nil {
		return err
	}
	u := &unstructured.Unstructured{Object: map[string]any{"status": fields}}
	u.SetGroupVersionKind(gvk)
	u.SetNamespace(of.GetNamespace())
	u.SetName(of.GetName())
	err = w.Client.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(u), owner, client.ForceOwnership)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("writing the status of %s %s/%s: %w", gvk.Kind, of.GetNamespace(), of.GetName(), err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.unseen == nil {
		w.unseen = map[types.UID]string{}
	}
	w.unseen[of.GetUID()] = u.GetResourceVersion()
	return nil
}
