package bridge

import (
	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/internal/dpf"
)

// serviced is the condition about what services need.
const serviced = dpuv1.ConditionServiceTemplatesReady

// HostOVN names the DaemonSet of OVN-Kubernetes on Nodes with DPUs (cluster-network-operator, bindata/network/ovn-kubernetes/self-hosted/
// ovnkube-node.yaml).
var HostOVN = types.NamespacedName{Namespace: "openshift-ovn-kubernetes", Name: "ovnkube-node-dpu-host"}

// AnnotationHostRelease of that DaemonSet is the release of OpenShift that its image is of. It changes together with the image, and
// ClusterVersion much earlier.
const AnnotationHostRelease = "release.openshift.io/version"

// Services are what the services of a DPUDeployment are made from, in its namespace.
type Services struct {
	Templates      []dpf.DPUServiceTemplate
	Configurations []dpf.DPUServiceConfiguration
	// Host is the DaemonSet of HostOVN, Release that of the management cluster; read if the bridge makes DPUServiceTemplates.
	Host    *appsv1.DaemonSet
	Release *configv1.ClusterVersion
	// Answer is what registries have said to OVNLookup.
	Answer Answer
}

// Servicing is about the services of a DPUDeployment.
type Servicing struct {
	// Deployment names it; empty if the bridge has none.
	Deployment types.NamespacedName
	// Apply are the DPUServiceTemplates that the bridge keeps, as they are to be; Remove are those that it has made and no longer keeps.
	Apply  []runtime.ApplyConfiguration
	Remove []dpf.DPUServiceTemplate
}
