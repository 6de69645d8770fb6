package bridgecli

import (
	"context"
	"fmt"
	"maps"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/internal/plan/bridge"
	"github.com/cldmnky/oooi/internal/registry"
)

// LookUp asks for the image of a release as the operator will, but from where the command runs: by its proxies, and with what the caller may read.
// The answer is empty if nothing is to be asked.
func LookUp(ctx context.Context, api client.Reader, p Platform, to string) (bridge.Answer, error) {
	in := bridge.Input{Settings: bridge.Settings{Images: p.ImagesKey}, Bridge: p.Bridge.DeepCopy(), Mapping: &corev1.ConfigMap{Data: maps.Clone(p.Images)}, Exists: nobody}
	in.Bridge.Spec.OCPReleaseImage = dpuv1.ReleaseImage(to)
	delete(in.Mapping.Data, bridge.CacheKey) // it is copied later
	if in.Lookup() == nil {
		return bridge.Answer{}, nil
	}
	unread, err := surroundings(ctx, api, &in)
	if err != nil || unread != "" {
		return bridge.Answer{Reason: bridge.LookingUp, Message: unread}, err
	}
	want := in.Lookup()
	if want == nil {
		return bridge.Answer{Reason: bridge.LookingUp, Message: "CAs of the cluster cannot be used: see BlueFieldContainerImageAvailable in oooi bridge status"}, nil
	}
	return registry.Once(ctx, *want), nil
}

// surroundings reads what says where and how to ask, or says what the caller may not read of it.
func surroundings(ctx context.Context, api client.Reader, in *bridge.Input) (unread string, err error) {
	digests, tags, config, proxy, pull := &configv1.ImageDigestMirrorSetList{}, &configv1.ImageTagMirrorSetList{}, &configv1.Image{}, &configv1.Proxy{}, &corev1.Secret{}
	cluster := types.NamespacedName{Name: "cluster"}
	get := func(key types.NamespacedName, into client.Object) {
		if err == nil && key.Name != "" {
			err = ifThere(api.Get(ctx, key, into))
		}
	}
	for _, list := range []client.ObjectList{digests, tags} {
		if err == nil {
			err = ifThere(api.List(ctx, list))
		}
	}
	get(cluster, config)
	get(cluster, proxy)
	get(types.NamespacedName{Namespace: in.Bridge.Namespace, Name: string(in.Bridge.Spec.PullSecret)}, pull)
	in.DigestMirrors, in.TagMirrors, in.ImageConfig, in.Proxy, in.PullSecret.Secret = digests.Items, tags.Items, config, proxy, pull
	in.RegistryCAs, in.TrustedCA = &corev1.ConfigMap{}, &corev1.ConfigMap{}
	ofRegistries, ofAll := in.CAKeys()
	get(ofRegistries, in.RegistryCAs)
	get(ofAll, in.TrustedCA)
	if apierrors.IsForbidden(err) {
		return fmt.Sprintf("you may not read what the operator asks registries with: %v", err), nil
	}
	return "", err
}
