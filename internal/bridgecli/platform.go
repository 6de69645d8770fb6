package bridgecli

import (
	"context"
	"encoding/json"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/internal/dpf"
	"github.com/cldmnky/oooi/internal/observe"
	"github.com/cldmnky/oooi/internal/plan/bridge"
)

// supportedVersions is what HyperShift's operator writes down of itself (hypershift-operator/controllers/supportedversion/reconciler.go, v0.1.60):
// {"versions": ["4.20", …]} under the key of the same name.
var supportedVersions = types.NamespacedName{Namespace: "hypershift", Name: "supported-versions"}

// ReadPlatform reads what an upgrade of a bridge depends on; images is the operator's ConfigMap of BlueField container images.
func ReadPlatform(ctx context.Context, api client.Reader, key, images types.NamespacedName) (Platform, error) {
	p := Platform{Bridge: &dpuv1.DPUHCPBridge{}}
	if err := api.Get(ctx, key, p.Bridge); err != nil {
		return p, fmt.Errorf("reading DPUHCPBridge %s: %w", key, err)
	}
	mapping, supported := &corev1.ConfigMap{}, &corev1.ConfigMap{}
	hc, management := &unstructured.Unstructured{}, &configv1.ClusterVersion{}
	hc.SetGroupVersionKind(hyperv1.GroupVersion.WithKind("HostedCluster"))
	for _, read := range []struct {
		key  types.NamespacedName
		into client.Object
		must bool // without it nothing can be said; of the others, a step says that they were not read
	}{{key, hc, true}, {images, mapping, true}, {supportedVersions, supported, false}, {types.NamespacedName{Name: "version"}, management, false}} {
		err := ifThere(api.Get(ctx, read.key, read.into))
		if err != nil && (read.must || !apierrors.IsForbidden(err)) {
			return p, fmt.Errorf("reading %s %s: %w", observe.KindOf(read.into), read.key, err)
		}
	}
	if management.Name != "" {
		p.Management = management
	}
	p.ImagesKey, p.Images, p.Supported = images, mapping.Data, versionsIn(supported)
	if err := p.hostedCluster(hc); err != nil {
		return p, err
	}
	if err := p.others(ctx, api); err != nil {
		return p, err
	}
	var err error
	p.DPF, err = DPFVersion(ctx, api)
	return p, err
}

// hostedCluster takes in a HostedCluster as it was read, with what the types of HyperShift's that we have lack; one without a name does not exist.
func (p *Platform) hostedCluster(read *unstructured.Unstructured) (err error) {
	if read.GetName() == "" {
		return nil
	}
	p.HostedCluster = &hyperv1.HostedCluster{}
	if err = runtime.DefaultUnstructuredConverter.FromUnstructured(read.Object, p.HostedCluster); err == nil {
		p.Version, err = bridge.VersionIn(read)
	}
	return err
}

func versionsIn(m *corev1.ConfigMap) []string {
	var said struct{ Versions []string }
	if json.Unmarshal([]byte(m.Data[supportedVersions.Name]), &said) != nil {
		return nil
	}
	return said.Versions
}

// DPFVersion is what the DPFOperatorConfig reports, of which DPF has one.
func DPFVersion(ctx context.Context, api client.Reader) (string, error) {
	all := &dpf.DPFOperatorConfigList{}
	if err := ifThere(api.List(ctx, all)); err != nil {
		return "", fmt.Errorf("listing DPFOperatorConfigs: %w", err)
	}
	for _, config := range all.Items {
		if config.Status.Version != "" {
			return config.Status.Version, nil
		}
	}
	return "", nil
}

// ifThere passes over what the cluster has not, or does not serve.
func ifThere(err error) error {
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
