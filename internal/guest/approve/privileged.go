package approve

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"time"

	"golang.org/x/sync/errgroup"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/cldmnky/oooi/internal/guest/bounded"
	"github.com/cldmnky/oooi/internal/guest/pace"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/plan/bridge"
)

const clusterRoleBindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"

// longestGrant is the longest pause after a write, or a refusal: somebody may undo what we write, again and again.
const longestGrant = 30 * time.Second

// keepPrivileged keeps the binding that pods of DPF's services need. Approvals need it not, so a refusal is recorded and tried again; only
// a broken connection ends the visit.
func (v *approving) keepPrivileged(ctx context.Context) error {
	if v.want.Privileged == nil {
		return nil
	}
	for tries := 0; ; tries++ {
		err := v.followPrivileged(ctx)
		if !v.refused(err) {
			return err
		}
		pace.Pause(ctx, pausing(tries))
	}
}

// unwritten is why a write was not done. A webhook there that fails for ClusterRoleBindings answers 500, for as long as it is down.
type unwritten struct{ error }

func (u unwritten) Unwrap() error { return u.error }

// refused records that the hosted cluster refuses a request, and says whether it does. Who is not let in at all is refused no one thing.
func (v *approving) refused(err error) bool {
	var (
		status *apierrors.StatusError
		write  unwritten
	)
	switch {
	case !errors.As(err, &status), apierrors.IsUnauthorized(err):
		return false
	case !errors.As(err, &write) && !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) && !apierrors.IsNotFound(err):
		return false
	}
	v.update(func(s *State) { s.Privileged.Refused = bounded.Said(status, v.access) })
	return true
}

func pausing(tries int) time.Duration { return pace.Growing(tries, time.Second, longestGrant) }

func (v *approving) followPrivileged(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	found := make(chan *rbacv1.ClusterRoleBinding, 1)
	of := bounded.Collection[*rbacv1.ClusterRoleBinding]{
		Path: clusterRoleBindings, Selects: bounded.Named(v.want.Privileged.Name), Of: bounded.Whole[rbacv1.ClusterRoleBinding],
	}
	group.Go(func() error {
		return bounded.Follow(ctx, v.api, of, func(all []*rbacv1.ClusterRoleBinding) {
			select {
			case <-found: // it was not looked at yet, and is old now
			default:
			}
			found <- append(all, nil)[0]
		})
	})
	group.Go(func() error { return v.bringPrivileged(ctx, found) })
	return group.Wait()
}

// bringPrivileged creates the binding if there is none, and deletes ours if it was changed: its watch then shows that there is none.
func (v *approving) bringPrivileged(ctx context.Context, found <-chan *rbacv1.ClusterRoleBinding) error {
	want, written := v.want.Privileged, time.Time{}
	for tries := 0; ; {
		var live *rbacv1.ClusterRoleBinding
		select {
		case <-ctx.Done():
			return ctx.Err()
		case live = <-found:
		}
		grant := bridge.GrantBy(live, want)
		settled := grant.There && (grant.Grants || !grant.Ours)
		v.update(func(s *State) {
			if !settled { // a refusal stands until what was refused has happened
				grant.Refused = s.Privileged.Refused
			}
			s.Privileged = grant
		})
		if settled {
			continue
		}
		if time.Since(written) > 2*longestGrant {
			tries = 0
		}
		if err := v.writePrivileged(ctx, live); err != nil {
			return unwritten{err}
		}
		pace.Pause(ctx, pausing(tries))
		tries, written = tries+1, time.Now()
	}
}

// writePrivileged removes the binding that is there, else creates one, unless somebody has meanwhile, which the watch shows.
func (v *approving) writePrivileged(ctx context.Context, live *rbacv1.ClusterRoleBinding) error {
	if live != nil {
		return v.api.Remove(ctx, clusterRoleBindings+"/"+live.Name, live.UID)
	}
	body, err := json.Marshal(v.want.Privileged)
	if err != nil {
		return err
	}
	_, err = v.api.Do(ctx, bounded.Request{
		Verb: http.MethodPost, Path: clusterRoleBindings, Accept: bounded.AsJSON, Content: bounded.AsJSON, Body: body,
		Query: url.Values{"fieldManager": {names.ManagerFieldOwner}},
	})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}
