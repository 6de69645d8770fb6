package controller

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/observe"
	"github.com/cldmnky/oooi/internal/plan"
)

// guestPatience is how long a hosted cluster that does not answer is waited for before what is in it is left there
// (spec/dns-proxy.md).
var guestPatience = 10 * time.Minute

// retryLeave: no event comes while the hosted cluster does not answer.
const retryLeave = 10 * time.Second

// follow tells the hosted cluster what should be there, and says whether nothing of ours is (any more).
func (r infraReconciler) follow(seen observe.Infra, p plan.InfraPlan) (left bool, err error) {
	switch {
	case p.Apps == nil:
		return r.leave(seen), nil
	case p.Apps.Undecided:
		return false, nil
	}
	return false, r.observe.Guests.Apply(client.ObjectKeyFromObject(seen.Input.Infra), p.Apps.Service)
}

// leave takes our Service out of the hosted cluster, and says when that is done. A hosted cluster that is gone, or going, takes
// it along.
func (r infraReconciler) leave(seen observe.Infra) (done bool) {
	infra := seen.Input.Infra
	key := client.ObjectKeyFromObject(infra)
	if access, ok := seen.GuestAccess(); ok {
		gone, away := r.observe.Guests.End(key)
		if !gone && away < guestPatience {
			return false
		}
		if !gone {
			r.status.Events.Eventf(infra, nil, corev1.EventTypeWarning, "GuestObjectsMayRemain", "Remove",
				"the hosted cluster has not answered for %s: Service %s, labelled with this Infra, may remain there; delete it when it is back", guestPatience, access.Service)
		}
	}
	r.observe.Guests.Forget(key)
	return true
}

// retryLeaving is set while something of ours is to be removed from the hosted cluster.
func (r infraReconciler) retryLeaving(s v1alpha1.InfraStatus) time.Duration {
	if s.AppsIngress != nil && s.AppsIngress.Reason == "Removing" {
		return retryLeave
	}
	return 0
}
