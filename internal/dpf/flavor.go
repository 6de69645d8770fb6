package dpf

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

const (
	// AnnotationSkipSizeCheck of a DPUFlavor, with any value, lets DPF install a bf.cfg of more than MaxBFSize.
	AnnotationSkipSizeCheck = "provisioning.dpu.nvidia.com/skip-bfcfg-size-check"
	// MaxBFSize is in octets (pkg/bfcfg/bfcfg.go).
	MaxBFSize = 128 << 10
)

// AgentApplied files have no text in the flavor: DPF's agent on the DPU writes them, from a ConfigMap (api/provisioning/v1alpha1, ConfigFileType).
const AgentApplied = "agent-applied"

// DPUFlavor says how DPUs are configured. DPF does not let its spec change.
type DPUFlavor struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec DPUFlavorSpec `json:"spec,omitempty"`
}

// DPUFlavorSpec has the fields that we read, and all others in Raw.
type DPUFlavorSpec struct {
	OVS         DPUFlavorOVS  `json:"ovs,omitempty"`
	ConfigFiles []ConfigFile  `json:"configFiles,omitempty"`
	Grub        DPUFlavorGrub `json:"grub,omitempty"`
	// SystemReservedResources are those that services of DPF are not given, since the system takes them, e.g. Open vSwitch.
	SystemReservedResources map[string]resource.Quantity `json:"systemReservedResources,omitempty"`
	// DpuMode is deprecated: newer versions have DPFOperatorConfig.spec.deploymentMode.
	DpuMode string `json:"dpuMode,omitempty"`

	// Raw is the whole spec as it was read, which DPUs get as a file.
	Raw json.RawMessage `json:"-"`
}

// DPUFlavorOVS has the script that configures Open vSwitch.
type DPUFlavorOVS struct {
	RawConfigScript string `json:"rawConfigScript,omitempty"`
}

// DPUFlavorGrub has the kernel's command line.
type DPUFlavorGrub struct {
	KernelParameters []string `json:"kernelParameters,omitempty"`
}

// ConfigFile is a file of the DPU's operating system.
type ConfigFile struct {
	Path        string `json:"path,omitempty"`
	Operation   string `json:"operation,omitempty"`   // override or append
	Raw         string `json:"raw,omitempty"`         // the text
	Permissions string `json:"permissions,omitempty"` // octal
	// Type is new after DPF 26.4: cloud-init, which is what an empty one means, or AgentApplied.
	Type string `json:"type,omitempty"`
}

// UnmarshalJSON keeps what it read in Raw.
func (s *DPUFlavorSpec) UnmarshalJSON(raw []byte) error {
	type fields DPUFlavorSpec
	var read fields
	if err := json.Unmarshal(raw, &read); err != nil {
		return err
	}
	*s = DPUFlavorSpec(read)
	s.Raw = bytes.Clone(raw)
	return nil
}

// MarshalJSON writes Raw, so that no field is lost.
func (s DPUFlavorSpec) MarshalJSON() ([]byte, error) {
	if s.Raw != nil {
		return s.Raw, nil
	}
	type fields DPUFlavorSpec
	return json.Marshal(fields(s))
}

// DPUFlavorList is a list of DPUFlavor.
type DPUFlavorList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []DPUFlavor `json:"items"`
}

// DeepCopy copies f.
func (f *DPUFlavor) DeepCopy() *DPUFlavor {
	if f == nil {
		return nil
	}
	out := &DPUFlavor{TypeMeta: f.TypeMeta, ObjectMeta: *f.ObjectMeta.DeepCopy(), Spec: f.Spec}
	out.Spec.ConfigFiles, out.Spec.Raw = slices.Clone(f.Spec.ConfigFiles), bytes.Clone(f.Spec.Raw)
	out.Spec.Grub.KernelParameters, out.Spec.SystemReservedResources = slices.Clone(f.Spec.Grub.KernelParameters), maps.Clone(f.Spec.SystemReservedResources)
	return out
}

// DeepCopyObject copies f.
func (f *DPUFlavor) DeepCopyObject() runtime.Object { return f.DeepCopy() }

// DeepCopyObject copies l.
func (l *DPUFlavorList) DeepCopyObject() runtime.Object {
	out := &DPUFlavorList{TypeMeta: l.TypeMeta, ListMeta: *l.ListMeta.DeepCopy()}
	for i := range l.Items {
		out.Items = append(out.Items, *l.Items[i].DeepCopy())
	}
	return out
}
