package controller

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/observe"
	"github.com/cldmnky/oooi/internal/plan"
	"github.com/cldmnky/oooi/internal/plan/apps"
	"github.com/cldmnky/oooi/internal/plan/input"
)

// retryLeave is the interval while the hosted cluster does not answer: no event comes then.
const retryLeave = 10 * time.Second

// look returns what is seen in an Infra's hosted cluster, if the Infra may access it. Otherwise nothing is written there any more; HyperShift,
// too, deletes our Service when its cluster goes.
func (r infraReconciler) look(key types.NamespacedName, seen observe.Infra) *input.Guest {
	if !seen.Gone() {
		if a, may := apps.AccessTo(seen.Input); may {
			return r.hosted.Guests.See(key, a)
		}
	}
	r.hosted.Guests.Forget(key)
	return nil
}

// follow applies the plan's Service in the hosted cluster, and says whether nothing of ours is left there.
func (r infraReconciler) follow(seen observe.Infra, p plan.InfraPlan) (left bool, err error) {
	switch {
	case !seen.Publishes():
		return r.leave(seen), nil
	case p.Apps == nil || p.Apps.Undecided:
		return false, nil
	}
	return false, r.hosted.Guests.Apply(client.ObjectKeyFromObject(seen.Input.Infra), p.Apps.Service)
}

// leave removes our Service from the hosted cluster, and says whether that is done or given up. A hosted cluster that is gone or being deleted
// takes it along. Guests.Forget is not called here: a later step may fail, and the wait would start anew.
func (r infraReconciler) leave(seen observe.Infra) (done bool) {
	infra := seen.Input.Infra
	service, alive := apps.ServiceIn(seen.Input)
	if !alive {
		return true
	}
	if _, ok := apps.AccessTo(seen.Input); ok {
		gone, waited := r.hosted.Guests.End(client.ObjectKeyFromObject(infra))
		if gone || waited < r.hosted.Guests.Patience {
			return gone
		}
	}
	r.status.Events.Eventf(infra, nil, corev1.EventTypeWarning, "GuestObjectsMayRemain", "Remove",
		"Service %s, labelled with this Infra, may remain in the hosted cluster; delete it there: %s", service, stays(seen))
	return true
}

// stays says why our Service is still in the hosted cluster, as far as that is known.
func stays(seen observe.Infra) string {
	_, access := apps.AccessTo(seen.Input)
	switch g := seen.Guest; {
	case !access:
		return "this Infra may no longer refer to the HostedCluster, or to something else that it names"
	case g == nil:
		return "the hosted cluster has not been read yet"
	case g.Problem != nil:
		return g.Problem.Message
	case g.Refused != "":
		return "the hosted cluster refuses the deletion: " + g.Refused
	case g.Service != nil && g.Service.DeletionTimestamp != nil:
		return "a finalizer blocks its deletion"
	}
	return "its deletion is under way"
}

// retryLeaving is set while our Service is to be removed from the hosted cluster.
func (r infraReconciler) retryLeaving(s v1alpha1.InfraStatus) time.Duration {
	if s.AppsIngress != nil && s.AppsIngress.Reason == "Removing" {
		return retryLeave
	}
	return 0
}
