package controller

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/boot"
	"github.com/cldmnky/oooi/internal/guest/appsingress"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/status"
)

func init() { metrics.Registry.MustRegister(boot.Times()) }

const (
	// noteTries to note a worker in its lease, each after a read: daemons write the same lease.
	noteTries = 3
	// noteTime is how long they may take.
	noteTime = 10 * time.Second
)

// joins notes in the leases of workers that their Nodes are Ready, and counts these boots.
type joins struct {
	live   client.Reader // no cache has leases
	status *status.Writer
	log    logr.Logger
}

// Follows implements appsingress.Boots.
func (j joins) Follows(infra types.NamespacedName) {
	boot.WillCount(infra.String(), boot.LeaseToReady)
}

// Leaves implements appsingress.Boots.
func (j joins) Leaves(infra types.NamespacedName) { boot.Forget(infra.String(), boot.LeaseToReady) }

// Joined implements appsingress.Boots. A boot that cannot be noted is not counted.
func (j joins) Joined(ctx context.Context, infra types.NamespacedName, n appsingress.Joined) {
	ctx, cancel := context.WithTimeout(ctx, noteTime)
	defer cancel()
	key := types.NamespacedName{Namespace: infra.Namespace, Name: names.Lease(names.DHCPServer(infra.Name), n.Address)}
	var err error
	for range noteTries {
		if err = j.note(ctx, infra, key, n); !apierrors.IsConflict(err) {
			break
		}
	}
	if client.IgnoreNotFound(err) != nil { // an address without a lease is of no worker of the Infra's
		j.log.Info("that a worker's Node is Ready is not noted in its lease", "lease", key, "error", err.Error())
	}
}

func (j joins) note(ctx context.Context, infra, key types.NamespacedName, n appsingress.Joined) error {
	lease := &v1alpha1.DHCPLease{}
	if err := j.live.Get(ctx, key, lease); err != nil {
		return err
	}
	stage, took, is := becameReady(lease, n)
	if !is {
		return nil
	}
	if err := j.status.Stage(ctx, lease, stage); err != nil {
		return err
	}
	boot.Count(infra.String(), boot.LeaseToReady, took)
	return nil
}

// becameReady is the stage of a lease's holder whose Node this may be, and how long it took for it; false if it is noted, or the Node is older than
// the lease. A Node may say that it was Ready earlier than we saw it, which is so after we were away, but not later, nor before the lease began.
func becameReady(l *v1alpha1.DHCPLease, n appsingress.Joined) (s v1alpha1.Stage, took time.Duration, is bool) {
	since, at := l.Spec.LastTransitionTime, n.Seen
	_, noted := l.Stages()[v1alpha1.StageNodeReady]
	if since == nil || l.Spec.State != v1alpha1.LeaseBound || noted || n.Created.Before(since.Time) {
		return s, 0, false
	}
	if n.Says.Before(at) && !n.Says.Before(since.Time) {
		at = n.Says
	}
	return v1alpha1.Stage{Name: v1alpha1.StageNodeReady, FirstTime: metav1.NewMicroTime(at)}, at.Sub(since.Time), true
}
