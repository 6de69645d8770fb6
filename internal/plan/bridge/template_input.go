package bridge

import (
	"cmp"
	"fmt"
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/internal/dpf"
)

// templated is the condition about templates.
const templated = dpuv1.ConditionIgnitionConfigured

// Templates are what a bridge's templates are made from, and those that exist.
type Templates struct {
	// Deployment is the one of spec.dpuDeploymentRef, DPUs are those of the DPUCluster.
	Deployment *dpf.DPUDeployment
	DPUs       []dpf.DPU
	Flavors    []dpf.DPUFlavor
	BFBs       []dpf.BFB
	Configs    []dpf.DPFOperatorConfig
	// Registry is DPF's Service of the bfb-registry, read if zero-trust DPUs need its node port.
	Registry *corev1.Service
	// RegistryCA is DPF's ConfigMap with the CAs of the registry, read for zero-trust DPUs, too.
	RegistryCA *corev1.ConfigMap
	// Unserved are kinds of these that the API server does not serve: there may be some.
	Unserved []string
	// Existing are the templates of all bridges, each with a digest of its text in place of the text.
	Existing []corev1.ConfigMap
	// Foreign are others in DPFOperatorConfig's namespace.
	Foreign []metav1.PartialObjectMetadata
	// Version is the HostedCluster's status.controlPlaneVersion, which older HyperShifts do not have.
	Version ControlPlaneVersion
	Payload Payload
}

// readByDPF says whether DPF looks for templates in the namespace of one. Elsewhere anybody can make some with the bridge's labels, and the
// operator may not be allowed to delete them, for which the hosted cluster would wait.
func (t Templates) readByDPF(template metav1.Object) bool {
	return slices.ContainsFunc(t.Configs, func(c dpf.DPFOperatorConfig) bool { return c.Namespace == template.GetNamespace() })
}

// Templating changes a bridge's templates.
type Templating struct {
	// Apply are those that are new or have changed. Unchanged ones are in neither list.
	Apply []runtime.ApplyConfiguration
	// Withdraw are those from which no DPU may be installed any more.
	Withdraw []corev1.ConfigMap
	// Served is how many there are.
	Served int
}

// pair is what a DPU is installed with.
type pair struct {
	BFB, Flavor types.NamespacedName
	// By says whose BFBField and FlavorField name them, e.g. DPUDeployment dpf/ovn.
	By, BFBField, FlavorField string
}

// sameAs says whether DPUs of both are installed with the same, whoever names it.
func (p pair) sameAs(q pair) bool { return p.BFB == q.BFB && p.Flavor == q.Flavor }

// DeploymentKey names the DPUDeployment of a bridge; empty if it refers to none.
func DeploymentKey(b *dpuv1.DPUHCPBridge) types.NamespacedName {
	ref := b.Spec.DPUDeploymentRef
	if ref == nil {
		return types.NamespacedName{}
	}
	return types.NamespacedName{Namespace: cmp.Or(string(ref.Namespace), b.Namespace), Name: string(ref.Name)}
}

// ControlPlaneVersion is what newer HyperShifts say of the control plane alone (hypershift 3ee96155, controlplaneversion_types.go), the
// newest first. It does not wait for Nodes, as status.version does.
type ControlPlaneVersion struct {
	History []ControlPlaneUpdate `json:"history,omitempty"`
}

// ControlPlaneUpdate is one of its releases.
type ControlPlaneUpdate struct {
	State   configv1.UpdateState `json:"state,omitempty"`
	Version string               `json:"version,omitempty"`
	Image   string               `json:"image,omitempty"`
}

// VersionIn reads status.controlPlaneVersion of a HostedCluster, which the types of HyperShift's that we have lack.
func VersionIn(hc *unstructured.Unstructured) (v ControlPlaneVersion, err error) {
	status, _, err := unstructured.NestedMap(hc.Object, "status", "controlPlaneVersion")
	if err == nil {
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(status, &v)
	}
	if err != nil {
		return v, fmt.Errorf("reading status.controlPlaneVersion of HostedCluster %s/%s: %w", hc.GetNamespace(), hc.GetName(), err)
	}
	return v, nil
}

// Download says which ignition a bridge's templates are made from, and where it is served.
type Download struct {
	// NodePool and Hash say whose ignition, and of which configuration.
	NodePool types.NamespacedName
	Hash     string
	// CA and Token are Secrets in the control-plane namespace.
	CA, Token types.NamespacedName
	// Host is the server's name in TLS.
	Host string
	// Servers are what to connect to, HOST:PORT, in the order in which to try them, whatever Host resolves to.
	Servers []string
}

// Payload is what is known of a Download.
type Payload struct {
	// Content is the ignition, and Release the release image that it is for. A later failure does not remove them.
	Content []byte
	Release string
	// Reason and Message say why there is no content, or why it cannot be downloaded again. With no content either, nothing is known yet.
	Reason, Message string
}
