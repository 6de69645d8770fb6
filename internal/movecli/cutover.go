package movecli

import (
	"context"
	"errors"
	"fmt"
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

// pausing keeps the manager here from writing, for as long as the Infra is there; off ends its pods.
const (
	off     = `{"spec":{"infraComponents":{"dhcp":{"enabled":false},"dns":{"enabled":false},"proxy":{"enabled":false}}}}`
	pausing = `{"metadata":{"annotations":{"` + names.AnnotationPaused + `":"true"}}}`
	goingOn = `{"metadata":{"annotations":{"` + names.AnnotationPaused + `":null}}}`
)

// Run moves the Infra.
func (c CutOver) Run(ctx context.Context) error {
	m, err := Read(ctx, c.From, c.Infra, time.Now())
	if err != nil {
		return err
	}
	for _, step := range []func(context.Context, *Move) error{c.Ready, c.prepare, c.stop, c.carryLeases, c.start} {
		if err := step(ctx, m); err != nil {
			return err
		}
	}
	return nil
}

// Ready says what the other cluster lacks, before anything is written.
func (c CutOver) Ready(ctx context.Context, m *Move) error {
	if err := c.To.Get(ctx, types.NamespacedName{Name: c.Infra.Namespace}, &corev1.Namespace{}); err != nil {
		return fmt.Errorf("the other cluster, Namespace %s: %w", c.Infra.Namespace, err)
	}
	if key := m.hosted(); key.Name != "" {
		hosted := &metav1.PartialObjectMetadata{}
		hosted.SetGroupVersionKind(schema.GroupVersionKind{Group: "hypershift.openshift.io", Version: "v1beta1", Kind: "HostedCluster"})
		if err := c.To.Get(ctx, key, hosted); err != nil {
			return fmt.Errorf("the other cluster, HostedCluster %s: %w; move it first", key, err)
		}
	}
	there, err := c.there(ctx)
	switch {
	case err != nil:
		return err
	case there == nil:
		if err := c.To.Create(ctx, m.Infra.DeepCopy(), client.DryRunAll); err != nil {
			return fmt.Errorf("the other cluster refuses the Infra: %w", err)
		}
		return nil
	case there.Annotations[names.AnnotationGiven] != m.Infra.Annotations[names.AnnotationGiven]:
		return fmt.Errorf("the other cluster has an Infra %s with addresses of its own: remove that first", c.Infra)
	case there.Annotations[names.AnnotationPaused] == "":
		return fmt.Errorf("Infra %s serves in the other cluster already: there is nothing to move", c.Infra)
	}
	return nil
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

// stop switches the services off here, waits until their pods have ended, and pauses what is left.
func (c CutOver) stop(ctx context.Context, _ *Move) error {
	infra := &v1alpha1.Infra{ObjectMeta: metav1.ObjectMeta{Namespace: c.Infra.Namespace, Name: c.Infra.Name}}
	if err := c.From.Patch(ctx, infra, client.RawPatch(types.MergePatchType, []byte(off))); err != nil {
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
			"To go back: delete Infra %s there, and remove enabled: false here", strings.Join(left, ", "), c.Infra)
	}
	if err != nil {
		return fmt.Errorf("waiting for the pods: %w", err)
	}
	if err := c.From.Patch(ctx, infra, client.RawPatch(types.MergePatchType, []byte(pausing))); err != nil {
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

// sameLease says whether a lease that is there is one that an interrupted move brought.
func (c CutOver) sameLease(ctx context.Context, l *v1alpha1.DHCPLease) error {
	there := &v1alpha1.DHCPLease{}
	if err := c.To.Get(ctx, client.ObjectKeyFromObject(l), there); err != nil {
		return err
	}
	if there.Spec.MAC != l.Spec.MAC || there.Spec.ClientID != l.Spec.ClientID || there.Spec.State != l.Spec.State {
		return fmt.Errorf("the other cluster has a lease %s of another client, %s: delete it there, and run this again", l.Name, there.Spec.MAC)
	}
	return nil
}

// start lets the other cluster's manager begin, if the Infra there is still as it was made.
func (c CutOver) start(ctx context.Context, _ *Move) error {
	there, err := c.there(ctx)
	if there == nil {
		return errors.Join(err, fmt.Errorf("Infra %s is gone from the other cluster: run this again", c.Infra))
	}
	if err := c.To.Patch(ctx, there, client.RawPatch(types.MergePatchType, []byte(goingOn))); err != nil {
		return fmt.Errorf("ending the pause in the other cluster: %w", err)
	}
	c.Tell("the other cluster serves it from now on; the Infra here is switched off and paused")
	return nil
}
