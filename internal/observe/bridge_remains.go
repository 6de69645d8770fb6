package observe

import (
	"context"
	"errors"
	"fmt"
	"strings"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/internal/dpf"
	"github.com/cldmnky/oooi/internal/metallb"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/plan/bridge"
)

// Remains reads what is left of a bridge that is being deleted, from the API server itself: objects that the cache does not show yet must not
// be left behind.
func (o *Bridges) Remains(ctx context.Context, seen Bridge) (bridge.Remains, error) {
	b := seen.Input.Bridge
	err := o.rivals(ctx, &seen)
	r := bridge.Remains{Input: seen.Input}
	if err != nil {
		return r, err
	}
	if r.HostedCluster, err = live[hyperv1.HostedCluster](ctx, o, client.ObjectKeyFromObject(b)); err != nil {
		return r, err
	}
	if r.NodePool, err = live[hyperv1.NodePool](ctx, o, client.ObjectKeyFromObject(b)); err != nil {
		return r, err
	}
	if err = o.ofDPF(ctx, &r); err != nil {
		return r, err
	}
	if err = o.handover(ctx, &r.Input); err != nil {
		return r, err
	}
	if r.Secrets, r.Denied, err = o.own(ctx, b); err != nil {
		return r, err
	}
	if r.Others, err = o.others(ctx, b); err != nil {
		return r, err
	}
	if err = o.cached(ctx, &r); err != nil {
		return r, err
	}
	templates, err := o.templatesLeft(ctx, b)
	r.Others = append(r.Others, templates...)
	if r.Forced() && errors.As(err, &elsewhere{}) {
		return r, nil
	}
	return r, err
}

// ofDPF reads DPF's objects. A forced deletion waits for none of them, and leaves what it cannot read.
func (o *Bridges) ofDPF(ctx context.Context, r *bridge.Remains) (err error) {
	key := bridge.ClusterKey(r.Bridge)
	if r.DPUCluster, err = live[dpf.DPUCluster](ctx, o, key); err == nil {
		r.DPUs, err = o.DPUs(ctx, key)
	}
	if r.Forced() && errors.As(err, &elsewhere{}) {
		return nil
	}
	return err
}

// handover reads the Secrets of handedOver while a bridge is being deleted, and watches no others any more.
func (o *Bridges) handover(ctx context.Context, in *bridge.Input) (err error) {
	from, to, followed := handedOver(*in)
	o.follow(in.Bridge, followed)
	if in.Injected, err = o.secret(ctx, to); err != nil {
		return err
	}
	kubeconfig, err := o.secret(ctx, from)
	if err != nil {
		return err
	}
	in.Kubeconfig, err = sanitised(ctx, kubeconfig)
	return err
}

// others are what a bridge has made besides the hosted cluster and the Secrets. ConfigMaps are listed in its own namespace only, and
// DPUServiceTemplates in its DPUDeployment's: elsewhere anybody can make some with its labels, and block their deletion.
func (o *Bridges) others(ctx context.Context, b *dpuv1.DPUHCPBridge) (all []bridge.Object, err error) {
	type made struct {
		list      client.ObjectList
		namespace client.InNamespace
	}
	lists := []made{{&corev1.ConfigMapList{}, client.InNamespace(b.Namespace)}, {&metallb.IPAddressPoolList{}, ""}, {&metallb.L2AdvertisementList{}, ""}}
	if namespace := bridge.DeploymentKey(b).Namespace; namespace != "" {
		lists = append(lists, made{&dpf.DPUServiceTemplateList{}, client.InNamespace(namespace)})
	}
	for _, of := range lists {
		if err := o.unlessAbsent(ctx, of.list, o.Live.List(ctx, of.list, madeFor(b), of.namespace)); err != nil {
			return nil, fmt.Errorf("listing %s of bridge %s/%s: %w", KindOf(of.list), b.Namespace, b.Name, err)
		}
		_ = meta.EachListItem(of.list, func(object runtime.Object) error {
			all = append(all, object.(bridge.Object))
			return nil
		})
	}
	return all, nil
}

// live reads one object from the API server itself; nil if the object or its kind does not exist.
func live[T any, P interface {
	*T
	client.Object
}](ctx context.Context, o *Bridges, key types.NamespacedName) (P, error) {
	object := P(new(T))
	read := o.Live.Get(ctx, key, object)
	if err := o.unlessAbsent(ctx, object, read); err != nil {
		return nil, fmt.Errorf("reading %s %s: %w", KindOf(object), key, err)
	}
	if read != nil {
		return nil, nil
	}
	return object, nil
}

// elsewhere is the error for a kind that is served, but not in the version that is read: nobody can tell what objects it has.
type elsewhere struct {
	read   schema.GroupVersionKind
	served []string
}

func (e elsewhere) Error() string {
	return fmt.Sprintf("the cluster serves %s as %s, and the operator reads %s: have that served again, or use an operator that reads another version",
		e.read.Kind, strings.Join(e.served, ", "), e.read.GroupVersion())
}

// unlessAbsent returns the error of a read; nil if the object does not exist, or its kind is served in no version.
func (o *Bridges) unlessAbsent(ctx context.Context, object runtime.Object, err error) error {
	unknown := apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse) // no API at that path
	if !unknown && !meta.IsNoMatchError(err) {
		return client.IgnoreNotFound(err)
	}
	read, served, err := o.Versions(ctx, object)
	if err != nil || len(served) == 0 {
		return err
	}
	return elsewhere{read, served}
}

// DPUs lists the DPUs of all DPUClusters, from the API server itself: a decision on a host says if it is the DPU of another cluster.
func (o *Bridges) DPUs(ctx context.Context, _ types.NamespacedName) ([]dpf.DPU, error) {
	all := &dpf.DPUList{}
	if err := o.unlessAbsent(ctx, all, o.Live.List(ctx, all)); err != nil {
		return nil, fmt.Errorf("listing DPUs: %w", err)
	}
	return all.Items, nil
}

// Copies are the Secrets that a bridge has made in its own namespace.
func (o *Bridges) Copies(ctx context.Context, b *dpuv1.DPUHCPBridge) ([]corev1.Secret, error) {
	return o.made(ctx, b, b.Namespace)
}

// own are all Secrets that a bridge has made; denied are the namespaces where they may not be read.
func (o *Bridges) own(ctx context.Context, b *dpuv1.DPUHCPBridge) (all []corev1.Secret, denied []string, err error) {
	namespaces := []string{b.Namespace}
	if namespace := bridge.ClusterKey(b).Namespace; namespace != b.Namespace {
		namespaces = append(namespaces, namespace)
	}
	for _, namespace := range namespaces {
		found, err := o.made(ctx, b, namespace)
		if apierrors.IsForbidden(err) {
			denied = append(denied, namespace)
		} else if err != nil {
			return nil, nil, err
		}
		all = append(all, found...)
	}
	return all, denied, nil
}

// madeFor selects what the operator has made for a bridge.
func madeFor(b *dpuv1.DPUHCPBridge) client.MatchingLabels {
	return client.MatchingLabels{names.LabelManagedBy: names.ManagedBy, names.LabelBridge: b.Name, names.LabelBridgeNamespace: b.Namespace}
}

func (o *Bridges) made(ctx context.Context, b *dpuv1.DPUHCPBridge, namespace string) ([]corev1.Secret, error) {
	found := &corev1.SecretList{}
	secrets := client.MatchingLabels{names.LabelBridgeSecret: "true"}
	if err := o.Live.List(ctx, found, client.InNamespace(namespace), madeFor(b), secrets); err != nil {
		return nil, fmt.Errorf("listing the Secrets of bridge %s in namespace %s: %w", b.Name, namespace, err)
	}
	return found.Items, nil
}
