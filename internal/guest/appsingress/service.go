package appsingress

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cldmnky/oooi/internal/guest/bounded"
	"github.com/cldmnky/oooi/internal/guest/kubeconfig"
	"github.com/cldmnky/oooi/internal/guest/pace"
	"github.com/cldmnky/oooi/internal/managedfields"
	"github.com/cldmnky/oooi/internal/names"
)

const (
	// writesAtMost is the shortest time between writes, so that we do not race somebody who undoes them.
	writesAtMost = time.Second
	// longestRefusal is the longest pause after a hosted cluster refused our Service; its user may mend the cause there.
	longestRefusal = 30 * time.Second
)

// keepService brings our Service to what Apply or End said, and keeps it so. A refusal is recorded and retried; only a broken connection
// ends it.
func (v *visit) keepService(ctx context.Context, access kubeconfig.Access) error {
	var again <-chan time.Time
	for tries := 0; ; {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-v.Due:
		case <-again:
		}
		todo, ready := v.todo()
		if !ready {
			continue
		}
		made, err := v.write(ctx, todo)
		var status *apierrors.StatusError
		switch {
		case err == nil:
			tries, again = 0, nil
			v.wrote(made, "")
		case errors.As(err, &status):
			again = time.After(min(longestRefusal, writesAtMost<<min(tries, 5)))
			tries++
			v.wrote("", bounded.Said(status, access))
		default:
			v.wrote("", "")
			return err
		}
		if todo != (write{}) {
			pace.Pause(ctx, writesAtMost)
		}
	}
}

// todo is the next write; ready is false before everything is read and Apply or End has said something.
func (v *visit) todo() (todo write, ready bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.settled || v.wished == nil {
		return write{}, false
	}
	todo = v.wished.next(v.ours, v.seen.Foreign)
	v.making = todo.apply != nil
	return todo, true
}

// wrote records the outcome of a write: a Service that it created counts as ours, though the watch may not have shown it yet.
func (v *visit) wrote(made types.UID, refused string) {
	v.update(func() {
		v.making, v.seen.Refused = false, refused
		if made != "" && !slices.ContainsFunc(v.ours, func(s *corev1.Service) bool { return s.UID == made }) {
			v.made, v.madeAt = made, time.Now()
		}
	})
}

func (v *visit) write(ctx context.Context, todo write) (made types.UID, err error) {
	switch {
	case todo.remove != nil:
		return "", v.api.Remove(ctx, pathOf(todo.remove), todo.remove.UID)
	case todo.apply != nil:
		return v.apply(ctx, todo.apply, todo.over)
	}
	return "", nil
}

func pathOf(s metav1.Object) string {
	return "/api/v1/namespaces/" + s.GetNamespace() + "/services/" + s.GetName()
}

// apply writes our Service, with force only over the very one that was seen. Otherwise it conflicts with one that somebody created
// meanwhile, and the watch shows that soon.
func (v *visit) apply(ctx context.Context, wanted *unstructured.Unstructured, over *corev1.Service) (types.UID, error) {
	query := url.Values{"fieldManager": {names.ManagerFieldOwner}}
	if over != nil {
		query.Set("force", "true")
		wanted = wanted.DeepCopy()
		wanted.SetUID(over.UID)
		if err := v.takeOver(ctx, over); err != nil {
			return "", err
		}
	}
	body, err := json.Marshal(wanted)
	if err != nil {
		return "", err
	}
	answer, err := v.api.Do(ctx, bounded.Request{
		Verb: http.MethodPatch, Path: pathOf(wanted), Accept: bounded.AsJSON, Content: string(types.ApplyPatchType), Body: body, Query: query,
	})
	if over == nil && apierrors.IsConflict(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	made, err := bounded.Whole[corev1.Service](answer)
	return made.UID, err
}

// takeOver makes us the owner of fields that others added to our Service, so that applying removes them.
func (v *visit) takeOver(ctx context.Context, live *corev1.Service) error {
	patch, err := managedfields.TakeOver(live)
	if err != nil || patch == nil {
		return err
	}
	_, err = v.api.Do(ctx, bounded.Request{
		Verb: http.MethodPatch, Path: pathOf(live), Accept: bounded.AsJSON, Content: string(types.JSONPatchType), Body: patch,
		Query: url.Values{"fieldManager": {names.ManagerFieldOwner}},
	})
	return err
}
