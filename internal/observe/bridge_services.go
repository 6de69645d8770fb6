package observe

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/internal/dpf"
	"github.com/cldmnky/oooi/internal/plan/bridge"
)

// services reads what the services of the bridge's DPUDeployment need.
func (o *Bridges) services(ctx context.Context, seen *Bridge) error {
	if seen.Templates.Deployment == nil {
		return nil
	}
	namespace := bridge.DeploymentKey(seen.Input.Bridge).Namespace
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
	return nil
}
