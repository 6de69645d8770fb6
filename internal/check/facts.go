package check

import (
	"time"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/nad"
	"github.com/cldmnky/oooi/internal/step"
)

// Facts are what was read of a cluster.
type Facts struct {
	// Now is the API server's clock: the caller's may be wrong.
	Now time.Time
	// CLI is this binary's version.
	CLI string
	// Namespace of the operator.
	Namespace string
	// Only is the namespace whose Infras and bridges were read; empty: all.
	Only string

	// Kubernetes is the API server's version, e.g. v1.36.3.
	Kubernetes string
	// APIs are the kinds of others that the operator and its daemons read or write.
	APIs step.Read[[]API]
	// Versions of others, by the name of their check; who does not say one has none.
	Versions map[string]string

	// CRDs are the cluster's, by name; the operator's that are missing are not there.
	CRDs step.Read[map[string]apiextensionsv1.CustomResourceDefinition]
	// Deployment of the operator; nil if there is none. Manager is what its flags say.
	Deployment step.Read[*appsv1.Deployment]
	Manager    Manager
	// PodWaits is why one of the operator's pods is not Ready; empty if all are, or if none exists.
	PodWaits string
	// Denied are the operator's rights that it lacks, e.g. "list nodes".
	Denied step.Read[[]string]
	// Lease of the leader; nil if there is none.
	Lease step.Read[*coordinationv1.Lease]
	// Webhook is the configuration; nil if there is none. Served are the certificates that its server shows, the leaf first, as DER.
	Webhook step.Read[*admissionregistrationv1.ValidatingWebhookConfiguration]
	Served  step.Read[[][]byte]
	// Daemons are the workloads that the operator made; Overrides are images that their owners chose.
	Daemons   step.Read[[]Workload]
	Overrides []string

	Nodes          step.Read[[]corev1.Node]
	Infras         step.Read[[]v1alpha1.Infra]
	HostedClusters step.Read[[]hyperv1.HostedCluster]
	NodePools      step.Read[[]hyperv1.NodePool]
	Networks       step.Read[[]nad.NetworkAttachmentDefinition]
	Bridges        step.Read[[]Bridge]

	// Refused is what the caller may not create, of what an installation creates.
	Refused step.Read[[]string]
}

// API is a kind.
type API struct {
	schema.GroupVersionKind
	// Served: in this version. Others are the versions of its group that are.
	Served bool
	Others []string
}

// Manager is what the flags of the operator's Deployment say.
type Manager struct {
	VLAN, Bridges, Elects, Webhook bool
	// OwnCertificate: the operator makes the webhook's certificate; not, e.g., cert-manager.
	OwnCertificate bool
	Image, Envoy   string
	Overrides      bool
	// Lenders are the namespaces whose networks every pod may use.
	Lenders []string
}

// Workload is a Deployment or StatefulSet that runs daemons, with the images of its pod template.
type Workload struct {
	Kind, Namespace, Name string
	Images                []string
}

// Bridge is a DPUHCPBridge, and why DPUs cannot join; empty if they can.
type Bridge struct {
	dpuv1.DPUHCPBridge
	Because string
}
