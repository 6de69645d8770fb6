// Package apply brings the cluster to what a plan says, by server-side apply. It removes what no plan says any more, touches nothing that
// is not ours, and writes nothing if nothing changed. It reads what it is about to write itself, from the API server where the cache may be
// behind.
//
// Who writes, and what (internal/archtest holds the list):
//
//   - internal/apply: all that a plan says
//   - internal/status: status
//   - internal/controller: reviews of requests for its metrics, which are not stored
//   - internal/live: likewise, for its pages
//   - internal/webhook: its certificate's Secret, and that certificate in webhook configurations
//   - internal/guest/appsingress: the Service of *.apps, in hosted clusters
//   - internal/guest/approve: approvals of certificate requests, and the ClusterRoleBinding of DPF's pods, in hosted clusters
//   - internal/guest/bounded: what these two delete there
//   - internal/daemon: the status of a daemon's own object, and events
//   - internal/dhcp: events of its leases
//   - internal/dhcp/leasekube: leases
//   - internal/stages: the status of leases
//   - internal/checkcli: reviews of rights, which are not stored
//   - internal/bridgecli: what the administrator has it make
//   - internal/leasecli: leases that the administrator releases or imports
//   - internal/diffcli: dry runs, which are not stored
//   - internal/movecli: an Infra, its network and its leases that the administrator moves
package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/component"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/managedfields"
	"github.com/cldmnky/oooi/internal/names"
)

// Writer writes for the manager.
type Writer struct {
	// Client reads from the cache and writes.
	Client client.Client
	// Live reads from the API server.
	Live client.Reader
	// Partial are the kinds of which the cache has only objects with our label: others may exist even if it lacks them.
	Partial map[schema.GroupKind]bool
}

// Applied is what came of applying a plan.
type Applied struct {
	// Findings name the objects that are not ours, and were left alone.
	Findings []finding.Finding
	// Wrote: something was written, or had changed since it was read, so what was read before is out of date.
	Wrote bool
	// Made are the objects that did not exist; Mended those that somebody had changed since we last applied the same.
	Made, Mended []finding.Object
}

// To applies the desired objects for an owner, dependent kinds second, and then removes the rest of what it owns. An object that fails, or
// is somebody else's, stops neither the others nor the removal; the errors come back joined, together with what was done. Nothing is
// removed if desired cannot be read. Calling it again with the same desired writes nothing.
func (w *Writer) To(ctx context.Context, owner Owner, desired []runtime.ApplyConfiguration) (Applied, error) {
	applied, keep, err := w.put(ctx, owner, desired)
	if keep == nil {
		return applied, err
	}
	undesired := func(o client.Object) bool { return !keep[identityOf(o)] }
	return applied, errors.Join(err, w.prune(ctx, owner, undesired, &applied))
}

// Add applies the desired objects for an owner, dependent kinds second.
func (w *Writer) Add(ctx context.Context, owner Owner, desired ...runtime.ApplyConfiguration) (Applied, error) {
	applied, _, err := w.put(ctx, owner, desired)
	return applied, err
}

// put also returns the identities of the desired objects.
func (w *Writer) put(ctx context.Context, owner Owner, desired []runtime.ApplyConfiguration) (applied Applied, keep map[identity]bool, err error) {
	var first, second []*unstructured.Unstructured
	keep = map[identity]bool{}
	for _, d := range desired {
		want, err := managedfields.Intent(d)
		if err != nil {
			return applied, nil, err
		}
		keep[identityOf(want)] = true
		if needs(want.GetKind()) {
			second = append(second, want)
		} else {
			first = append(first, want)
		}
	}
	sent, err := w.all(ctx, owner, first, &applied)
	more, moreErr := w.all(ctx, owner, second, &applied)
	w.awaitCache(ctx, append(sent, more...))
	return applied, keep, errors.Join(err, moreErr)
}

// OtherNamespaces are those, besides the Infra's own, in which it owns something. Others may write its labels too, so names count as well.
func (w *Writer) OtherNamespaces(ctx context.Context, owner Owner, infra *v1alpha1.Infra) ([]string, error) {
	owned, err := w.inventory(ctx, owner)
	var all []string
	for _, o := range owned {
		ours := strings.HasPrefix(o.GetName(), names.Qualified(infra.Namespace, infra.Name)+"-")
		if ours && o.GetNamespace() != infra.Namespace && o.GetDeletionTimestamp() == nil {
			all = append(all, o.GetNamespace())
		}
	}
	slices.Sort(all)
	return slices.Compact(all), err
}

// Leave removes what an Infra owns in these namespaces.
func (w *Writer) Leave(ctx context.Context, owner Owner, namespaces []string) (Applied, error) {
	var applied Applied
	return applied, w.prune(ctx, owner, func(o client.Object) bool { return slices.Contains(namespaces, o.GetNamespace()) }, &applied)
}

// Drop removes what an Infra owns for components that are switched off, and leaves everything else as it is.
func (w *Writer) Drop(ctx context.Context, owner Owner, infra *v1alpha1.Infra, off []string) (Applied, error) {
	var applied Applied
	if len(off) == 0 {
		return applied, nil
	}
	return applied, w.prune(ctx, owner, func(o client.Object) bool {
		return slices.ContainsFunc(off, func(component string) bool {
			return names.OfChild(o.GetName(), infra.Namespace, names.Child(infra.Name, component))
		})
	}, &applied)
}

// needs says whether a kind depends on others: the API server refuses a binding to a role that does not exist, and controllers of a child or
// a workload need its network, permissions and configuration.
func needs(kind string) bool {
	_, isServer := component.OfKind(kind)
	return isServer || slices.Contains([]string{"RoleBinding", "StatefulSet", "Deployment", "HostedCluster", "NodePool"}, kind)
}

// filledIn are kinds in which others set fields that we omit, and these stay: HyperShift its identifiers and defaults, users whatever we
// have no field for.
var filledIn = map[string]bool{"HostedCluster": true, "NodePool": true}

// atOnce is how many objects of one owner are written at a time: each waits for the API server, but not for the others.
const atOnce = 8

// all applies objects that do not depend on each other, and returns those that it sent.
func (w *Writer) all(ctx context.Context, owner Owner, wanted []*unstructured.Unstructured, applied *Applied) (sent []*unstructured.Unstructured, err error) {
	did := make([]done, len(wanted))
	var group errgroup.Group
	group.SetLimit(atOnce)
	for i, want := range wanted {
		group.Go(func() error {
			did[i] = w.one(ctx, owner, want)
			return nil
		})
	}
	_ = group.Wait() // each result has its own error
	var errs []error
	for i, d := range did {
		if d.finding != nil {
			applied.Findings = append(applied.Findings, *d.finding)
		}
		if d.wrote {
			applied.Wrote, sent = true, append(sent, wanted[i])
		}
		applied.Wrote = applied.Wrote || d.overtaken
		if d.made {
			applied.Made = append(applied.Made, objectOf(wanted[i]))
		}
		if d.mended {
			applied.Mended = append(applied.Mended, objectOf(wanted[i]))
		}
		errs = append(errs, d.err)
	}
	return sent, errors.Join(errs...)
}

// done is what came of applying one object.
type done struct {
	wrote, made, mended bool
	overtaken           bool // by somebody who changed the object after it was read
	finding             *finding.Finding
	err                 error
}

// identity names an object, whatever its version.
type identity struct {
	schema.GroupKind
	client.ObjectKey
}

func identityOf(o client.Object) identity {
	return identity{o.GetObjectKind().GroupVersionKind().GroupKind(), client.ObjectKeyFromObject(o)}
}

func (id identity) String() string { return id.Kind + " " + id.ObjectKey.String() }

func objectOf(o *unstructured.Unstructured) finding.Object {
	return finding.Object{APIVersion: o.GetAPIVersion(), Kind: o.GetKind(), Namespace: o.GetNamespace(), Name: o.GetName()}
}

func (w *Writer) one(ctx context.Context, owner Owner, want *unstructured.Unstructured) done {
	id := identityOf(want)
	live, err := w.live(ctx, want)
	if err != nil {
		return done{err: fmt.Errorf("reading %s: %w", id, err)}
	}
	switch {
	case live != nil && (!owner.owns(live) || owner.inherits(live) && live.GetDeletionTimestamp() != nil):
		return done{finding: new(notOurs(want, live))}
	case live != nil && (live.GetDeletionTimestamp() != nil || unchanged(live, want)):
		return done{} // one that is being deleted is made again once it is gone
	case live != nil && tooLarge(live) != nil:
		return done{finding: tooLarge(live)}
	}
	mended := live != nil && managedfields.Drifted(live, want) && !unsealed(live, want)
	if !filledIn[id.Kind] {
		if err := w.takeOver(ctx, live, want); err != nil {
			return done{err: fmt.Errorf("taking hold of what others added to %s: %w", id, err)}
		}
	}
	options := []client.ApplyOption{client.FieldOwner(names.ManagerFieldOwner)}
	if live != nil { // without a live object no force: one that somebody made meanwhile, and the cache lacks, stays theirs
		options = append(options, client.ForceOwnership)
	}
	planned := owner.Read[objectOf(want)]
	want.SetResourceVersion(planned)
	if err := w.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(want), options...); planned != "" && apierrors.IsConflict(err) {
		return done{overtaken: true}
	} else if err != nil {
		failed := done{err: fmt.Errorf("applying %s: %w", id, err)}
		if apierrors.IsInvalid(err) || apierrors.IsForbidden(err) { // the cause is what the user wrote, or may do; a retry alone mends neither
			failed.finding = new(finding.Refuse(v1alpha1.ConditionReady, "Rejected").In(objectOf(want)).Say("the API server rejects %s: %s", id, err))
		}
		return failed
	}
	written(ctx, "apply", id.Kind, want)
	return done{wrote: true, made: live == nil, mended: mended}
}

// unsealed says whether an admin took the seal off, which asks for the pending template, and is no drift (docs/adr/0005-released-templates.md).
func unsealed(live, want client.Object) bool {
	_, was := want.GetAnnotations()[names.AnnotationSeal]
	_, is := live.GetAnnotations()[names.AnnotationSeal]
	return was && !is
}

func unchanged(live client.Object, want *unstructured.Unstructured) bool {
	if filledIn[want.GetKind()] {
		return managedfields.Whole(live, want)
	}
	return managedfields.Unchanged(live, want)
}

// awaitCache waits until the cache has what was just applied, so that the next reader sees it, above all the next Infra that gets addresses
// on the same VLAN, and nobody restores a drift twice. It waits no longer than a second, because somebody may have deleted the object since.
func (w *Writer) awaitCache(ctx context.Context, sent []*unstructured.Unstructured) {
	_ = wait.PollUntilContextTimeout(ctx, 2*time.Millisecond, time.Second, true, func(ctx context.Context) (bool, error) {
		for len(sent) > 0 && w.shows(ctx, sent[0]) {
			sent = sent[1:]
		}
		return len(sent) == 0, nil
	})
}

func (w *Writer) shows(ctx context.Context, want *unstructured.Unstructured) bool {
	made, err := w.Client.Scheme().New(want.GroupVersionKind())
	if err != nil {
		return false
	}
	live := made.(client.Object)
	err = w.Client.Get(ctx, client.ObjectKeyFromObject(want), live, client.UnsafeDisableDeepCopy)
	if err != nil {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(live.GetResourceVersion(), want.GetResourceVersion()) // of the API server's answer
	return err == nil && order >= 0
}

// live is the object as it is; nil if there is none.
func (w *Writer) live(ctx context.Context, want *unstructured.Unstructured) (client.Object, error) {
	made, err := w.Client.Scheme().New(want.GroupVersionKind())
	if err != nil {
		return nil, err
	}
	live := made.(client.Object)
	err = w.Client.Get(ctx, client.ObjectKeyFromObject(want), live, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) && w.Partial[want.GroupVersionKind().GroupKind()] {
		err = w.Live.Get(ctx, client.ObjectKeyFromObject(want), live)
	}
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return live, err
}

// NameTaken is the reason of a finding about an object that is not ours. No event tells us when that object goes away.
const NameTaken = "NameTaken"

func notOurs(want *unstructured.Unstructured, live client.Object) finding.Finding {
	if live.GetDeletionTimestamp() != nil {
		return finding.Wait(v1alpha1.ConditionReady, NameTaken).In(objectOf(want)).
			Say("%s is not ours, and is still being deleted; the operator creates ours afterwards: see what it waits for with kubectl describe", objectOf(want))
	}
	return finding.Refuse(v1alpha1.ConditionReady, NameTaken).In(objectOf(want)).
		Say("%s exists and is not ours; it is left alone: rename or remove it, or choose another name", objectOf(want))
}
