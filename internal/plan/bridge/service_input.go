package bridge

import (
	"k8s.io/apimachinery/pkg/types"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/internal/dpf"
)

// serviced is the condition about what services need.
const serviced = dpuv1.ConditionServiceTemplatesReady

// Services are what the services of a DPUDeployment are made from, in its namespace.
type Services struct {
	Templates      []dpf.DPUServiceTemplate
	Configurations []dpf.DPUServiceConfiguration
}

// Servicing is about the services of a DPUDeployment.
type Servicing struct {
	// Deployment names it; empty if the bridge has none.
	Deployment types.NamespacedName
}
