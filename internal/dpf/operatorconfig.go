package dpf

import (
	"cmp"
	"fmt"
	"net/url"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/utils/ptr"
)

// OperatorGroupVersion is that of DPFOperatorConfig (api/operator/v1alpha1).
var OperatorGroupVersion = schema.GroupVersion{Group: "operator.dpu.nvidia.com", Version: "v1alpha1"}

// RegistryService is the Service of DPF's bfb-registry, in DPFOperatorConfig's namespace (api/operator/v1alpha1, BFBRegistryName).
const RegistryService = "bfb-registry"

// TrustBundleKey is the key of the ConfigMap that TrustBundle names (api/operator/v1alpha1, CATrustBundleKey).
const TrustBundleKey = "ca.crt"

// ModeZeroTrust is the deploymentMode, and the dpuMode of a flavor, of DPUs that do not trust their host.
const ModeZeroTrust = "zero-trust"

// DPFOperatorConfig configures DPF. There is one, and DPF looks for templates in its namespace.
type DPFOperatorConfig struct { //nolint:revive // the kind has its name
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   OperatorConfigSpec   `json:"spec,omitempty"`
	Status OperatorConfigStatus `json:"status,omitempty"`
}

// OperatorConfigStatus has the fields that we read.
type OperatorConfigStatus struct {
	// Version of DPF that is deployed.
	Version string `json:"version,omitempty"`
}

// OperatorConfigSpec has the fields that we read.
type OperatorConfigSpec struct {
	// DeploymentMode is new in DPF 26.4; before, each flavor had a mode.
	DeploymentMode         string                 `json:"deploymentMode,omitempty"`
	Networking             Networking             `json:"networking,omitempty"`
	ProvisioningController ProvisioningController `json:"provisioningController,omitempty"`
	Security               Security               `json:"security,omitempty"`
}

// Security is new after DPF 26.4.
type Security struct {
	CertManagement struct {
		TrustBundleConfigMapName string `json:"trustBundleConfigMapName,omitempty"`
	} `json:"certManagement,omitempty"`
}

// TrustBundle names the ConfigMap, in DPFOperatorConfig's namespace, with the CAs of DPF's own certificates, among them the bfb-registry's
// (api/operator/v1alpha1, GetCATrustBundleConfigMapName). Older versions have none.
func (c *DPFOperatorConfig) TrustBundle() string {
	return cmp.Or(c.Spec.Security.CertManagement.TrustBundleConfigMapName, "dpf-ca-trust-bundle")
}

// Networking has the MTU of the DPUs' fast ports.
type Networking struct {
	HighSpeedMTU int `json:"highSpeedMTU,omitempty"`
}

// ProvisioningController says what DPUs are installed from.
type ProvisioningController struct {
	// EnableDynamicBFCFGTemplates has DPF look for templates, unless BFCFGTemplateConfigMap names one for all DPUs.
	EnableDynamicBFCFGTemplates bool     `json:"enableDynamicBFCFGTemplates,omitempty"`
	BFCFGTemplateConfigMap      *string  `json:"bfCFGTemplateConfigMap,omitempty"`
	Registry                    Registry `json:"registry,omitempty"`
	InstallInterface            Install  `json:"installInterface,omitempty"`
}

// Install says how DPUs are installed.
type Install struct {
	InstallViaRedfish Redfish `json:"installViaRedfish,omitempty"`
}

// Redfish has what Registry says since DPF 26.4, as HOST:PORT.
type Redfish struct {
	BFBRegistryAddress string `json:"bfbRegistryAddress,omitempty"`
}

// Registry is DPF's bfb-registry. The address of the load balancer comes first.
type Registry struct {
	LoadBalancerAddress string `json:"loadBalancerAddress,omitempty"`
	Address             string `json:"address,omitempty"`
}

// RegistryURL is that of the bfb-registry, as far as it is written: all of it, or without a port. It is empty if only RegistryService says it. The
// scheme is for an address without one.
func (c *DPFOperatorConfig) RegistryURL(scheme string) string {
	p := c.Spec.ProvisioningController
	named := cmp.Or(p.Registry.LoadBalancerAddress, p.Registry.Address, p.InstallInterface.InstallViaRedfish.BFBRegistryAddress)
	if named == "" || strings.Contains(named, "://") {
		return named
	}
	return scheme + "://" + named
}

// RegistryLacksPort says whether an address of the registry has no port because DPF adds the node port of RegistryService, and refuses one that is
// written, though not in the load balancer's (internal/provisioning/controllers/util, GetBFBRegistryAddressWithPort).
func (c *DPFOperatorConfig) RegistryLacksPort() bool {
	r := c.Spec.ProvisioningController.Registry
	named, err := url.Parse(c.RegistryURL("http"))
	return r.LoadBalancerAddress == "" && r.Address != "" && err == nil && named.Port() == "" && c.addsNodePort()
}

// addsNodePort says whether DPF is none that takes the registry's address as it is written. Up to 25.10 the registry listened on a port of its hosts,
// and 26.4 put it behind a node port (rh-ecosystem-edge/openshift-dpf 835ca68 and 8033304). A version that is not known counts as newer.
func (c *DPFOperatorConfig) addsNodePort() bool {
	is, err := version.ParseGeneric(c.Status.Version)
	return err != nil || is.AtLeast(version.MajorMinor(26, 4))
}

// IsZeroTrust says whether DPUs of a flavor do not trust their host.
func (c *DPFOperatorConfig) IsZeroTrust(f *DPUFlavor) bool {
	return cmp.Or(c.Spec.DeploymentMode, f.Spec.DpuMode) == ModeZeroTrust
}

// Only is the one DPFOperatorConfig that DPF works with. With none or several it is nil, and a sentence says what to do.
func Only(all []DPFOperatorConfig) (one *DPFOperatorConfig, problem string) {
	switch len(all) {
	case 0:
		return nil, "there is no DPFOperatorConfig, so DPF does nothing: create it"
	case 1:
		return &all[0], ""
	}
	return nil, fmt.Sprintf("there are %d DPFOperatorConfigs, and DPF works with one: delete the others (kubectl get dpfoperatorconfigs -A)", len(all))
}

// DPFOperatorConfigList is a list of DPFOperatorConfig.
type DPFOperatorConfigList struct { //nolint:revive // the kind has its name
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []DPFOperatorConfig `json:"items"`
}

// DeepCopyObject copies c.
func (c *DPFOperatorConfig) DeepCopyObject() runtime.Object {
	out := &DPFOperatorConfig{TypeMeta: c.TypeMeta, ObjectMeta: *c.ObjectMeta.DeepCopy(), Spec: c.Spec, Status: c.Status}
	if name := c.Spec.ProvisioningController.BFCFGTemplateConfigMap; name != nil {
		out.Spec.ProvisioningController.BFCFGTemplateConfigMap = ptr.To(*name)
	}
	return out
}

// DeepCopyObject copies l.
func (l *DPFOperatorConfigList) DeepCopyObject() runtime.Object {
	out := &DPFOperatorConfigList{TypeMeta: l.TypeMeta, ListMeta: *l.ListMeta.DeepCopy()}
	for i := range l.Items {
		out.Items = append(out.Items, *l.Items[i].DeepCopyObject().(*DPFOperatorConfig))
	}
	return out
}
