package observe

import (
	"context"
	"fmt"
	"slices"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/internal/dpf"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/plan/bridge"
)

// templates reads what the bridge's templates are made from, and those that exist. Admission does not judge them.
func (o *Bridges) templates(ctx context.Context, seen *Bridge) (err error) {
	t := &seen.Templates
	if o.Secretless {
		return nil
	}
	t.DPUs, t.Unserved = seen.DPUs, o.unserved()
	if t.Deployment, err = get[dpf.DPUDeployment](ctx, o.Observer, bridge.DeploymentKey(seen.Input.Bridge)); err != nil {
		return err
	}
	existing, err := list[corev1.ConfigMapList](ctx, o.Observer, "", client.MatchingLabels{names.LabelManagedBy: names.ManagedBy, dpf.LabelTemplate: "true"}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return err
	}
	t.Existing = byName(existing.Items)
	configs, err := list[dpf.DPFOperatorConfigList](ctx, o.Observer, "", client.UnsafeDisableDeepCopy)
	if err != nil {
		return err
	}
	if configs != nil {
		t.Configs = configs.Items
	}
	if !seen.WantsTemplates() {
		return nil
	}
	if err := o.ofTemplates(ctx, t); err != nil {
		return err
	}
	t.Version, err = o.controlPlaneVersion(ctx, seen.HostedCluster)
	config, _ := dpf.Only(t.Configs)
	if err != nil || config == nil {
		return err
	}
	if t.Foreign, err = o.foreignTemplates(ctx, config.Namespace); err != nil {
		return err
	}
	return o.registry(ctx, t, config)
}

// unserved are the kinds that ofTemplates and templates read, as far as the API server does not serve them.
func (o *Bridges) unserved() (all []string) {
	for name, kind := range map[string]client.Object{"DPUDeployment": &dpf.DPUDeployment{}, "DPUFlavor": &dpf.DPUFlavor{}, "BFB": &dpf.BFB{}, "DPFOperatorConfig": &dpf.DPFOperatorConfig{}} {
		if !o.Kinds.Served(kind) {
			all = append(all, name+"s")
		}
	}
	slices.Sort(all)
	return all
}

// ofTemplates reads what DPUs are installed with.
func (o *Bridges) ofTemplates(ctx context.Context, t *bridge.Templates) error {
	flavors, err := list[dpf.DPUFlavorList](ctx, o.Observer, "", client.UnsafeDisableDeepCopy)
	if err != nil {
		return err
	}
	bfbs, err := list[dpf.BFBList](ctx, o.Observer, "", client.UnsafeDisableDeepCopy)
	if err != nil {
		return err
	}
	if flavors != nil {
		t.Flavors = flavors.Items
	}
	if bfbs != nil {
		t.BFBs = bfbs.Items
	}
	return nil
}

// registry reads the Service that zero-trust DPUs download from, whose node port the configuration may lack, and the CAs of its certificate. Who may
// not read them has none: the rest of the bridge goes on, and the template's finding says what is missing.
func (o *Bridges) registry(ctx context.Context, t *bridge.Templates, config *dpf.DPFOperatorConfig) (err error) {
	if !slices.ContainsFunc(t.Flavors, func(f dpf.DPUFlavor) bool { return config.IsZeroTrust(&f) }) {
		return nil
	}
	t.Registry, err = live[corev1.Service](ctx, o, types.NamespacedName{Namespace: config.Namespace, Name: dpf.RegistryService})
	if err != nil && !apierrors.IsForbidden(err) {
		return err
	}
	t.RegistryCA, err = live[corev1.ConfigMap](ctx, o, types.NamespacedName{Namespace: config.Namespace, Name: config.TrustBundle()})
	if apierrors.IsForbidden(err) {
		return nil
	}
	return err
}

// foreignTemplates are those without our label, which the cache does not have; of each only its metadata is read.
func (o *Bridges) foreignTemplates(ctx context.Context, namespace string) ([]metav1.PartialObjectMetadata, error) {
	others, err := labels.NewRequirement(names.LabelManagedBy, selection.NotEquals, []string{names.ManagedBy})
	if err != nil {
		return nil, err
	}
	all := &metav1.PartialObjectMetadataList{}
	all.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMapList"))
	selected := client.MatchingLabelsSelector{Selector: labels.SelectorFromSet(labels.Set{dpf.LabelTemplate: "true"}).Add(*others)}
	if err := o.Live.List(ctx, all, client.InNamespace(namespace), selected); err != nil {
		return nil, fmt.Errorf("listing the templates of others in namespace %s: %w", namespace, err)
	}
	return byName(all.Items), nil
}

// controlPlaneVersion reads a field that the types of HyperShift's that we have lack.
func (o *Bridges) controlPlaneVersion(ctx context.Context, hc *hyperv1.HostedCluster) (v bridge.ControlPlaneVersion, err error) {
	if hc == nil {
		return v, nil
	}
	raw := &unstructured.Unstructured{}
	raw.SetGroupVersionKind(hyperv1.GroupVersion.WithKind("HostedCluster"))
	if err := o.Live.Get(ctx, client.ObjectKeyFromObject(hc), raw); err != nil {
		return v, client.IgnoreNotFound(err)
	}
	return bridge.VersionIn(raw)
}

// templatesLeft are those of a bridge that is being deleted, where DPF looks for them: elsewhere anybody can make some with its labels, and
// block their deletion.
func (o *Bridges) templatesLeft(ctx context.Context, b *dpuv1.DPUHCPBridge) (all []bridge.Object, err error) {
	configs := &dpf.DPFOperatorConfigList{}
	if err := o.unlessAbsent(ctx, configs, o.Live.List(ctx, configs)); err != nil {
		return nil, fmt.Errorf("listing DPFOperatorConfigs: %w", err)
	}
	for _, config := range configs.Items {
		found := &corev1.ConfigMapList{}
		if config.Namespace == b.Namespace {
			continue // they are among the others of its namespace
		}
		if err := o.Live.List(ctx, found, madeFor(b), client.MatchingLabels{names.LabelBridgeTemplate: "true"}, client.InNamespace(config.Namespace)); err != nil {
			return nil, fmt.Errorf("listing the templates of bridge %s/%s: %w", b.Namespace, b.Name, err)
		}
		for i := range found.Items {
			all = append(all, &found.Items[i])
		}
	}
	return all, nil
}
