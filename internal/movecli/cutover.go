package movecli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/component"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/plan/input"
)

// CutOver moves an Infra: nothing of it serves in the other cluster before its last pod here has ended. It can be run again after it was
// interrupted at any step.
type CutOver struct {
	From, To client.Client
	Infra    types.NamespacedName
	// Patience is how long the pods may take to end.
	Patience time.Duration
	// Tell hears of each step.
	Tell func(string)
}

// off ends the pods of an Infra, and goingOn its pause. onAgain is what the administrator does to an Infra that is switched off and paused: a
// manager that sees it switched off and not paused forgets its addresses.
const (
	off     = `{"spec":{"infraComponents":{"dhcp":{"enabled":false},"dns":{"enabled":false},"proxy":{"enabled":false}}}}`
	goingOn = `{"metadata":{"annotations":{"` + names.AnnotationPaused + `":null}}}`
	onAgain = "remove enabled: false here, then the pause, wait until it serves, and run this again"
)

// Run moves the Infra, as Read has read it.
func (c CutOver) Run(ctx context.Context, m *Move) error {
	for _, step := range []func(context.Context, *Move) error{c.Ready, c.prepare, c.stop, c.carryLeases, c.start} {
		if err := step(ctx, m); err != nil {
			return err
		}
	}
	return nil
}

// Ready says what the other cluster lacks, before anything is written.
func (c CutOver) Ready(ctx context.Context, m *Move) error {
	if err := c.apart(ctx); err != nil {
		return err
	}
	if err := c.To.Get(ctx, types.NamespacedName{Name: c.Infra.Namespace}, &corev1.Namespace{}); err != nil {
		return fmt.Errorf("the other cluster, Namespace %s: %w", c.Infra.Namespace, err)
	}
	if key := input.Refs(m.Infra).HostedCluster; key.Name != "" {
		hosted := &metav1.PartialObjectMetadata{}
		hosted.SetGroupVersionKind(schema.GroupVersionKind{Group: "hypershift.openshift.io", Version: "v1beta1", Kind: "HostedCluster"})
		if err := c.To.Get(ctx, key, hosted); err != nil {
			return fmt.Errorf("the other cluster, HostedCluster %s: %w; move it first", key, err)
		}
	}
	there, err := c.there(ctx)
	if err != nil {
		return err
	}
	return c.waits(ctx, m.Infra, there)
}

// apart says whether the clusters are two, if both may be asked: one has several addresses, and the UID of kube-system tells it from others
// (OpenTelemetry, k8s.cluster.uid).
func (c CutOver) apart(ctx context.Context) error {
	var uids [2]types.UID
	for i, api := range []client.Client{c.From, c.To} {
		system := &corev1.Namespace{}
		if err := api.Get(ctx, types.NamespacedName{Name: metav1.NamespaceSystem}, system); apierrors.IsForbidden(err) {
			return nil
		} else if err != nil {
			return fmt.Errorf("reading Namespace %s: %w", metav1.NamespaceSystem, err)
		}
		uids[i] = system.UID
	}
	if uids[0] == uids[1] {
		return errors.New("--to is this cluster by another address: name the context of the other one")
	}
	return nil
}

// waits says whether the other cluster has an Infra that waits to take over from the one here, or admits it. The one here is already switched
// off if the move was interrupted: only the one there knows then what it was, and its addresses.
func (c CutOver) waits(ctx context.Context, here, there *v1alpha1.Infra) error {
	switch {
	case there == nil && switchedOff(here):
		return fmt.Errorf("Infra %s is switched off here, and the other cluster has none that knows what it was: %s", c.Infra, onAgain)
	case there == nil:
		if err := c.To.Create(ctx, here.DeepCopy(), client.DryRunAll); err != nil {
			return fmt.Errorf("the other cluster refuses the Infra: %w", err)
		}
	case switchedOff(there):
		return fmt.Errorf("the other cluster has an Infra %s that is switched off: remove that first", c.Infra)
	case !switchedOff(here) && there.Annotations[names.AnnotationGiven] != here.Annotations[names.AnnotationGiven]:
		return fmt.Errorf("the other cluster has an Infra %s with addresses of its own: remove that first", c.Infra)
	case there.Annotations[names.AnnotationPaused] == "":
		return fmt.Errorf("Infra %s serves in the other cluster already: there is nothing to move", c.Infra)
	}
	return nil
}

func switchedOff(infra *v1alpha1.Infra) bool {
	return !slices.ContainsFunc(component.All, func(of component.Component) bool { return of.Wanted(infra.Spec.InfraComponents).Enabled })
}

// there is the Infra in the other cluster; nil if it has none.
func (c CutOver) there(ctx context.Context) (*v1alpha1.Infra, error) {
	infra := &v1alpha1.Infra{}
	err := c.To.Get(ctx, c.Infra, infra)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("the other cluster, Infra %s: %w", c.Infra, err)
	}
	return infra, nil
}

// prepare creates the network and the paused Infra, from which nothing is made yet. An Infra that is there has the spec from before the stop.
func (c CutOver) prepare(ctx context.Context, m *Move) error {
	for _, o := range append(m.networks(), client.Object(m.Infra.DeepCopy())) {
		if err := c.To.Create(ctx, o); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("the other cluster, %s: %w", o.GetName(), err)
		}
	}
	c.Tell("the other cluster has the network and the Infra, which is paused there")
	return nil
}

// stop switches the services off here, waits until their pods have ended, and pauses what is left. The manager here has forgotten addresses
// that nothing has any more: the Infra gets them back, so that it can be switched on again.
func (c CutOver) stop(ctx context.Context, _ *Move) error {
	bare := &v1alpha1.Infra{ObjectMeta: metav1.ObjectMeta{Namespace: c.Infra.Namespace, Name: c.Infra.Name}}
	if err := c.From.Patch(ctx, bare.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(off))); err != nil {
		return fmt.Errorf("switching the services off: %w", err)
	}
	c.Tell("the services are switched off here; waiting until their pods have ended")
	var left []string
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, c.Patience, true, func(ctx context.Context) (bool, error) {
		still, err := c.serving(ctx)
		if err != nil {
			return false, err // the time may be over: left is what was there last
		}
		left = still
		return len(left) == 0, nil
	})
	if wait.Interrupted(err) {
		return fmt.Errorf("still here: %s: nothing serves in the other cluster yet. If a node is lost, fence it and delete the pod; if the Infra is paused, end that; then run this again. "+
			"To go back: set annotation %s here to what it is there, and remove enabled: false in the same edit; then delete Infra %s there",
			strings.Join(left, ", "), names.AnnotationGiven, c.Infra)
	}
	if err != nil {
		return fmt.Errorf("waiting for the pods: %w", err)
	}
	there, err := c.there(ctx)
	if there == nil {
		return cmp.Or(err, c.gone())
	}
	paused := bare.DeepCopy()
	paused.Annotations = map[string]string{names.AnnotationPaused: "true", names.AnnotationGiven: there.Annotations[names.AnnotationGiven]}
	if err := c.From.Patch(ctx, paused, client.MergeFrom(bare)); err != nil {
		return fmt.Errorf("pausing the Infra: %w", err)
	}
	c.Tell("nothing of it serves here any more")
	return nil
}

// serving are the servers and pods of the Infra that exist: the manager may not have seen the change while a server does.
func (c CutOver) serving(ctx context.Context) (left []string, err error) {
	of := client.MatchingLabels{names.LabelInfra: c.Infra.Name, names.LabelInfraNamespace: c.Infra.Namespace}
	pods := &metav1.PartialObjectMetadataList{}
	pods.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
	if err := c.From.List(ctx, pods, of, client.InNamespace(c.Infra.Namespace)); err != nil {
		return nil, err
	}
	for _, p := range pods.Items {
		left = append(left, "Pod "+p.Name)
	}
	for _, of := range component.All {
		name, server := names.Child(c.Infra.Name, string(of.Name)), of.New()
		switch err := c.From.Get(ctx, types.NamespacedName{Namespace: c.Infra.Namespace, Name: name}, server); {
		case err == nil:
			left = append(left, of.Kind+" "+name)
		case !apierrors.IsNotFound(err):
			return nil, err
		}
	}
	return left, nil
}

// carryLeases reads the leases once no daemon writes them, and creates them there.
func (c CutOver) carryLeases(ctx context.Context, _ *Move) error {
	m, err := Read(ctx, c.From, c.Infra, time.Now())
	if err != nil {
		return err
	}
	for i := range m.Leases {
		l := &m.Leases[i]
		if err := c.To.Create(ctx, l.DeepCopy()); apierrors.IsAlreadyExists(err) {
			err = c.sameLease(ctx, l)
			if err != nil {
				return err
			}
		} else if err != nil {
			return fmt.Errorf("the other cluster, lease of %s: %w", l.Spec.IP, err)
		}
	}
	c.Tell(fmt.Sprintf("%d leases are there", len(m.Leases)))
	return nil
}

// sameLease says whether a lease that is there is one that an interrupted move, or its files, brought; what was promised since then goes there.
func (c CutOver) sameLease(ctx context.Context, l *v1alpha1.DHCPLease) error {
	there := &v1alpha1.DHCPLease{}
	if err := c.To.Get(ctx, client.ObjectKeyFromObject(l), there); err != nil {
		return err
	}
	if there.Spec.MAC != l.Spec.MAC || there.Spec.ClientID != l.Spec.ClientID || there.Spec.State != l.Spec.State {
		return fmt.Errorf("the other cluster has a lease %s of another client, %s: delete it there, and run this again", l.Name, there.Spec.MAC)
	}
	if !there.Spec.DurableUntilTime.Before(&l.Spec.DurableUntilTime) {
		return nil
	}
	there.Spec.DurableUntilTime, there.Spec.ExpirationTime = l.Spec.DurableUntilTime, l.Spec.ExpirationTime
	if err := c.To.Update(ctx, there); err != nil {
		return fmt.Errorf("the other cluster, lease of %s: %w", l.Spec.IP, err)
	}
	return nil
}

// start lets the other cluster's manager begin, if the Infra there is still as it was made.
func (c CutOver) start(ctx context.Context, _ *Move) error {
	there, err := c.there(ctx)
	if there == nil {
		return cmp.Or(err, c.gone())
	}
	if err := c.To.Patch(ctx, there, client.RawPatch(types.MergePatchType, []byte(goingOn))); err != nil {
		return fmt.Errorf("ending the pause in the other cluster: %w", err)
	}
	c.Tell("the other cluster serves it from now on; the Infra here is switched off and paused")
	return nil
}

func (c CutOver) gone() error {
	return fmt.Errorf("Infra %s is gone from the other cluster: %s", c.Infra, onAgain)
}
