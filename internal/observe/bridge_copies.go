package observe

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/internal/dpf"
	"github.com/cldmnky/oooi/internal/plan/bridge"
)

// imageStream is the kind that OpenShift's registry makes at the first push.
var imageStream = schema.GroupVersionKind{Group: "image.openshift.io", Version: "v1", Kind: "ImageStream"}

// copies are read if former releases may have left some. Who only judges removes none.
func (o *Bridges) copies(ctx context.Context, seen *Bridge) error {
	if o.Lookups == nil || seen.CacheNamespace() == "" {
		return nil
	}
	if err := o.users(ctx, &seen.Input.Copies); err != nil {
		return err
	}
	seen.Input.Copies.Streams = o.streams(ctx, seen)
	return nil
}

// users reads who may need a copy.
func (o *Bridges) users(ctx context.Context, of *bridge.Copies) error {
	bridges := &dpuv1.DPUHCPBridgeList{}
	if err := o.Reader.List(ctx, bridges, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing bridges: %w", err)
	}
	dpus, err := list[dpf.DPUList](ctx, o.Observer, "", client.UnsafeDisableDeepCopy)
	if err != nil {
		return err
	}
	if of.Bridges = bridges.Items; dpus != nil {
		of.DPUs = dpus.Items
	}
	return nil
}

// streams are the ImageStreams among which former copies are; none if they cannot be listed, whatever the error: while OpenShift's API server for
// them is away, or for who may not read them, nothing is removed, and all else of the bridge goes on.
func (o *Bridges) streams(ctx context.Context, seen *Bridge) []metav1.PartialObjectMetadata {
	if len(seen.FormerCopies()) == 0 {
		return nil
	}
	all := &metav1.PartialObjectMetadataList{}
	all.SetGroupVersionKind(imageStream)
	if o.Live.List(ctx, all, client.InNamespace(seen.CacheNamespace())) != nil {
		return nil
	}
	for i := range all.Items {
		all.Items[i].SetGroupVersionKind(imageStream)
	}
	return all.Items
}

// cached are the copies of images that nobody will need. What may not be read, or is of no kind that is served, stays: an image in a registry
// holds up no deletion.
func (o *Bridges) cached(ctx context.Context, r *bridge.Remains) (err error) {
	if r.Mapping, err = live[corev1.ConfigMap](ctx, o, o.Settings.Images); err != nil {
		return err
	}
	if r.CacheNamespace() == "" {
		return nil
	}
	if err := o.users(ctx, &r.Copies); err != nil {
		return err
	}
	for _, key := range r.Unused() {
		stream := &metav1.PartialObjectMetadata{}
		stream.SetGroupVersionKind(imageStream)
		err := o.Live.Get(ctx, key, stream)
		if err == nil {
			r.Cached = append(r.Cached, stream)
		} else if err := unlessHidden(err); err != nil {
			return fmt.Errorf("reading ImageStream %s: %w", key, err)
		}
	}
	return nil
}

// unlessHidden returns the error of a read of ImageStreams; nil if they may not be read, or there are none.
func unlessHidden(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || meta.IsNoMatchError(err) {
		return nil
	}
	return err
}
