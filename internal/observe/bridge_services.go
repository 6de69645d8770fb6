package observe

import (
	"context"

	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/internal/dpf"
	"github.com/cldmnky/oooi/internal/plan/bridge"
)

// services reads what the services of the bridge's DPUDeployment need. Admission does not judge them.
func (o *Bridges) services(ctx context.Context, seen *Bridge) error {
	b := seen.Input.Bridge
	if b.Spec.DPUDeploymentRef == nil || o.Secretless {
		return nil
	}
	namespace := bridge.DeploymentKey(b).Namespace
	templates, err := list[dpf.DPUServiceTemplateList](ctx, o.Observer, namespace, client.UnsafeDisableDeepCopy)
	if err != nil {
		return err
	}
	configurations, err := list[dpf.DPUServiceConfigurationList](ctx, o.Observer, namespace, client.UnsafeDisableDeepCopy)
	if err != nil {
		return err
	}
	if templates != nil {
		seen.Services.Templates = templates.Items
	}
	if configurations != nil {
		seen.Services.Configurations = configurations.Items
	}
	if !b.Spec.ManageDPUServiceTemplates {
		return nil
	}
	if seen.Services.Host, err = get[appsv1.DaemonSet](ctx, o.Observer, bridge.HostOVN); err != nil {
		return err
	}
	seen.Services.Release, err = get[configv1.ClusterVersion](ctx, o.Observer, types.NamespacedName{Name: "version"})
	return err
}
