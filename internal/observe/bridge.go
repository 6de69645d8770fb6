package observe

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/internal/dpf"
	"github.com/cldmnky/oooi/internal/guest/kubeconfig"
	"github.com/cldmnky/oooi/internal/metallb"
	"github.com/cldmnky/oooi/internal/namedwatch"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/plan/bridge"
	"github.com/cldmnky/oooi/internal/registry"
)

// Bridges reads for the bridges' controller.
type Bridges struct {
	*Observer
	Settings bridge.Settings
	// Secretless reads no Secret: anybody may cause an admission review, and its answer goes to the requester.
	Secretless bool
	// Watches report changes of the Secrets and the image mapping; nil for a caller that only judges.
	Watches *namedwatch.Watches
	// Lookups ask registries for images, OVN for those of the hosts' releases; nil for a caller that only judges.
	Lookups, OVN *registry.Lookups
	// Versions returns as what kind an object or list is read, and which versions the API server serves; nil for a caller that only judges.
	Versions func(context.Context, runtime.Object) (read schema.GroupVersionKind, served []string, err error)
}

// Bridge is one bridge as it is.
type Bridge struct {
	bridge.Input
	// DPUs of the DPUCluster; none as long as they may not be read.
	DPUs []dpf.DPU
	// Pause says why writes are stopped; empty if they are not.
	Pause Pause
}

// Deleting says whether the bridge is being deleted.
func (b Bridge) Deleting() bool { return b.Input.Bridge.DeletionTimestamp != nil }

// Bridge reads one bridge; nil if it does not exist.
func (o *Bridges) Bridge(ctx context.Context, key types.NamespacedName) (*dpuv1.DPUHCPBridge, error) {
	return get[dpuv1.DPUHCPBridge](ctx, o.Observer, key)
}

// Around reads all that planning a bridge uses, except the bridge itself, which may not be stored yet. For a bridge that is being deleted it
// reads nothing. With an error it returns what was read before; what the cache has is read first.
func (o *Bridges) Around(ctx context.Context, b *dpuv1.DPUHCPBridge) (Bridge, error) {
	seen := Bridge{Input: bridge.Input{
		Settings: o.Settings, Bridge: b, Exists: o.exists(ctx, &dpuv1.DPUHCPBridgeList{}),
		Served: bridge.Served{
			DPF:        o.Kinds.Served(&dpf.DPUCluster{}) && o.Kinds.Served(&dpf.DPU{}),
			HyperShift: o.Kinds.Served(&hyperv1.HostedCluster{}) && o.Kinds.Served(&hyperv1.NodePool{}),
			MetalLB:    o.Kinds.Served(&metallb.IPAddressPool{}) && o.Kinds.Served(&metallb.L2Advertisement{}),
		},
	}}
	if seen.Deleting() {
		return seen, nil
	}
	for _, read := range []func(context.Context, *Bridge) error{o.objects, o.rivals, o.namespace, o.surroundingsOf, o.mirrors, o.named, o.cache, o.dpus, o.templates, o.services, o.copies} {
		if err := read(ctx, &seen); err != nil {
			return seen, err
		}
	}
	if o.Lookups != nil {
		seen.Answer = o.Lookups.Follow(client.ObjectKeyFromObject(b), seen.Lookup())
		seen.Input.Services.Answer = o.OVN.Follow(client.ObjectKeyFromObject(b), seen.OVNLookup())
	}
	seen.Pause = o.pause(b.Annotations, seen.HostedCluster)
	return seen, nil
}

func (o *Bridges) objects(ctx context.Context, seen *Bridge) (err error) {
	key := client.ObjectKeyFromObject(seen.Input.Bridge)
	if seen.DPUCluster, err = get[dpf.DPUCluster](ctx, o.Observer, bridge.ClusterKey(seen.Input.Bridge)); err != nil {
		return err
	}
	if seen.HostedCluster, err = get[hyperv1.HostedCluster](ctx, o.Observer, key); err != nil {
		return err
	}
	if seen.NodePool, err = get[hyperv1.NodePool](ctx, o.Observer, key); err != nil {
		return err
	}
	seen.Pool, err = get[metallb.IPAddressPool](ctx, o.Observer, bridge.PoolKey(o.Settings, seen.Input.Bridge))
	return err
}

// rivals reads the other bridges that want the same, and what they have made.
func (o *Bridges) rivals(ctx context.Context, seen *Bridge) error {
	all := &dpuv1.DPUHCPBridgeList{}
	if err := o.Reader.List(ctx, all, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing bridges: %w", err)
	}
	for _, b := range all.Items {
		if b.UID == seen.Input.Bridge.UID || !bridge.Rivals(&b, seen.Input.Bridge) {
			continue
		}
		hc, err := get[hyperv1.HostedCluster](ctx, o.Observer, client.ObjectKeyFromObject(&b))
		if err != nil {
			return err
		}
		pool, err := get[metallb.IPAddressPool](ctx, o.Observer, bridge.PoolKey(o.Settings, &b))
		if err != nil {
			return err
		}
		seen.Rivals = append(seen.Rivals, bridge.Rival{DPUHCPBridge: &b, HostedCluster: hc, Pool: pool})
	}
	return nil
}

// namespace reads the control-plane namespace, and the HostedClusters that would share it.
func (o *Bridges) namespace(ctx context.Context, seen *Bridge) (err error) {
	b := seen.Input.Bridge
	if seen.Namespace, err = get[corev1.Namespace](ctx, o.Observer, types.NamespacedName{Name: bridge.ControlPlane(b)}); err != nil {
		return err
	}
	seen.Neighbours, err = o.sharing(ctx, bridge.ControlPlane(b), client.ObjectKeyFromObject(b))
	return err
}

func (o *Bridges) surroundingsOf(ctx context.Context, seen *Bridge) error {
	nodes, classes := &corev1.NodeList{}, &storagev1.StorageClassList{}
	if err := o.Reader.List(ctx, nodes, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing Nodes: %w", err)
	}
	if err := o.Reader.List(ctx, classes, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing StorageClasses: %w", err)
	}
	seen.Nodes, seen.StorageClasses = nodes.Items, classes.Items
	cluster, err := o.networks(ctx)
	seen.Networks = cluster.ClusterNetworks()
	return err
}

// mirrors and CAs are those that OpenShift's nodes use, too.
func (o *Bridges) mirrors(ctx context.Context, seen *Bridge) error {
	digests, err := list[configv1.ImageDigestMirrorSetList](ctx, o.Observer, "", client.UnsafeDisableDeepCopy)
	if err != nil {
		return err
	}
	tags, err := list[configv1.ImageTagMirrorSetList](ctx, o.Observer, "", client.UnsafeDisableDeepCopy)
	if err != nil {
		return err
	}
	if digests != nil {
		seen.DigestMirrors = byName(digests.Items)
	}
	if tags != nil {
		seen.TagMirrors = byName(tags.Items)
	}
	if seen.ImageConfig, err = get[configv1.Image](ctx, o.Observer, openShifts); err != nil {
		return err
	}
	seen.Proxy, err = get[configv1.Proxy](ctx, o.Observer, openShifts)
	return err
}

// openShifts is the name of the one object of each kind that OpenShift is configured by.
var openShifts = types.NamespacedName{Name: "cluster"}

// named reads the Secrets and the image mapping, which is not ours. Each is watched first and then read, by its name and from the API server
// itself.
func (o *Bridges) named(ctx context.Context, seen *Bridge) error {
	b := seen.Input.Bridge
	at := func(name string) types.NamespacedName {
		return types.NamespacedName{Namespace: b.Namespace, Name: name}
	}
	pull, ssh, key := at(string(b.Spec.PullSecret)), at(string(b.Spec.SSHKey)), at(names.BridgeKey(b.Name))
	kubeconfig, injected, followed := handedOver(seen.Input)
	maps := o.configMaps(seen)
	var others []namedwatch.Object
	for _, m := range maps {
		others = append(others, namedwatch.Object{Kind: namedwatch.ConfigMap, NamespacedName: m.key})
	}
	seen.Polled = !o.follow(b, slices.Concat(seen.Copied(), []types.NamespacedName{pull, ssh, key}, followed), others...)
	secrets := []struct {
		key  types.NamespacedName
		into *bridge.Secret
	}{{pull, &seen.PullSecret}, {ssh, &seen.SSHKey}, {key, &seen.Key}, {kubeconfig, &seen.Kubeconfig.Secret}, {injected, &seen.Injected}}
	if o.Secretless {
		secrets = nil
	}
	var reading errgroup.Group
	for _, read := range secrets {
		reading.Go(func() (err error) {
			*read.into, err = o.secret(ctx, read.key)
			return err
		})
	}
	for _, m := range maps {
		reading.Go(func() (err error) {
			*m.into, err = live[corev1.ConfigMap](ctx, o, m.key)
			return err
		})
	}
	if err := reading.Wait(); err != nil {
		return err
	}
	var err error
	seen.Kubeconfig, err = sanitised(ctx, seen.Kubeconfig.Secret)
	return err
}

// configMaps are those that a bridge's image is found by, and pulled: the mapping, and the CAs of registries.
func (o *Bridges) configMaps(seen *Bridge) []configMap {
	all := []configMap{{o.Settings.Images, &seen.Mapping}}
	ofRegistries, ofAll := seen.CAKeys()
	all = append(all, configMap{ofRegistries, &seen.RegistryCAs}, configMap{ofAll, &seen.TrustedCA})
	return slices.DeleteFunc(all, func(m configMap) bool { return m.key.Name == "" })
}

// cache reads the CAs of the cluster's own registry, if the mapping says that images are copied there. Who publishes them restarts what serves
// with them, so that nobody need watch them.
func (o *Bridges) cache(ctx context.Context, seen *Bridge) (err error) {
	ofServices, ofIngress := seen.CacheCAKeys()
	if ofServices.Name == "" {
		return nil
	}
	if seen.ServiceCA, err = live[corev1.ConfigMap](ctx, o, ofServices); err != nil {
		return err
	}
	seen.IngressCA, err = live[corev1.ConfigMap](ctx, o, ofIngress)
	return err
}

// configMap is read into a field.
type configMap struct {
	key  types.NamespacedName
	into **corev1.ConfigMap
}

// handedOver names the Secret that a kubeconfig comes from, and the Secret that it goes to if the bridge may refer to the DPUCluster or its
// status says that it was bound: then the Secret tells whether that is true. With the status alone, the second is not watched.
func handedOver(in bridge.Input) (from, to types.NamespacedName, followed []types.NamespacedName) {
	from = in.KubeconfigKey()
	switch key := bridge.InjectedKey(in.Bridge); {
	case len(in.Refusals()) == 0:
		return from, key, []types.NamespacedName{from, key}
	case in.SaysItWasBound():
		to = key
	}
	return from, to, []types.NamespacedName{from}
}

func (o *Bridges) follow(b *dpuv1.DPUHCPBridge, secrets []types.NamespacedName, others ...namedwatch.Object) (all bool) {
	if o.Watches == nil {
		return true
	}
	for _, secret := range secrets {
		others = append(others, namedwatch.Object{Kind: namedwatch.Secret, NamespacedName: secret})
	}
	return o.Watches.Follow(client.ObjectKeyFromObject(b), others...)
}

func (o *Bridges) secret(ctx context.Context, key types.NamespacedName) (bridge.Secret, error) {
	if key.Name == "" {
		return bridge.Secret{}, nil
	}
	s := &corev1.Secret{}
	err := o.Live.Get(ctx, key, s)
	switch {
	case apierrors.IsNotFound(err):
		return bridge.Secret{}, nil
	case apierrors.IsForbidden(err):
		if o.Watches != nil {
			o.Watches.Reopen(namedwatch.Object{Kind: namedwatch.Secret, NamespacedName: key})
		}
		return bridge.Secret{Denied: true}, nil
	case err != nil:
		return bridge.Secret{}, fmt.Errorf("reading Secret %s: %w", key, err)
	}
	return bridge.Secret{Secret: s}, nil
}

// refusals caches refused kubeconfigs by digest: the author of an expensive one can have his bridges reconciled as often as he likes.
var refusals = lru.New(1000)

// sanitised returns what may be handed on of a hosted cluster's kubeconfig.
func sanitised(ctx context.Context, from bridge.Secret) (bridge.Kubeconfig, error) {
	k := bridge.Kubeconfig{Secret: from}
	if from.Secret == nil {
		return k, nil
	}
	content := from.Data[kubeconfig.SecretKey]
	digest := sha256.Sum256(content)
	if known, is := refusals.Get(digest); is {
		k.Refused, k.Because = known.(*kubeconfig.Refusal).Rule, known.(*kubeconfig.Refusal).Because
		return k, nil
	}
	access, refusal, err := kubeconfig.SanitiseInTurn(ctx, content)
	switch {
	case err != nil:
		return k, err
	case refusal != nil:
		refusals.Add(digest, refusal)
		k.Refused, k.Because = refusal.Rule, refusal.Because
	default:
		k.Content = access.Kubeconfig()
	}
	return k, nil
}

// dpus reads the DPUs of the DPUCluster from the cache.
func (o *Bridges) dpus(ctx context.Context, seen *Bridge) error {
	all, err := list[dpf.DPUList](ctx, o.Observer, "", client.UnsafeDisableDeepCopy)
	if err != nil || all == nil {
		return err
	}
	for _, d := range byName(all.Items) {
		if d.Joins(bridge.ClusterKey(seen.Input.Bridge)) {
			seen.DPUs = append(seen.DPUs, d)
		}
	}
	return nil
}
