// Package dpu says how far DPF has come with each DPU of a bridge, what the DPU waits for, and what will keep it from being installed. It is
// pure, and knows only what DPF's objects and the bridge's Events say.
package dpu

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/cldmnky/oooi/internal/dpf"
	"github.com/cldmnky/oooi/internal/finding"
)

// Kinds of DPF of which a field or two is read.
var (
	FlavorKind     = dpf.GroupVersion.WithKind("DPUFlavor")
	ConfigKind     = schema.GroupVersionKind{Group: "operator.dpu.nvidia.com", Version: "v1alpha1", Kind: "DPFOperatorConfig"}
	DeploymentKind = schema.GroupVersionKind{Group: "svc.dpu.nvidia.com", Version: "v1alpha1", Kind: "DPUDeployment"}
	Kinds          = []schema.GroupVersionKind{FlavorKind, ConfigKind, DeploymentKind}
)

// How DPF finds the template of a DPU's bf.cfg (doca-platform: pkg/bfcfg/bfcfg.go, 0e760f28).
const (
	prefix = "provisioning.dpu.nvidia.com/"
	// TemplateLabel is "true" on ConfigMaps with a template.
	TemplateLabel = prefix + "bfcfg-template"
	templateKey   = "BF_CFG_TEMPLATE"
	// mostUnskipped is how many bytes a bf.cfg may have without dpf.AnnotationSkipSizeCheck on the DPUFlavor.
	mostUnskipped = 128 << 10
)

// Facts are what the installation of DPUs depends on, as far as it was read.
type Facts struct {
	// Config is the DPFOperatorConfig; nil if it was not read, and Templates neither.
	Config *unstructured.Unstructured
	// Templates are the ConfigMaps of Config's namespace with TemplateLabel.
	Templates []corev1.ConfigMap
	// Flavors and Deployments are those that were read.
	Flavors, Deployments []unstructured.Unstructured
}

// TemplatesOf are the templates that DPF would take for a DPU. It needs exactly one.
func (f Facts) TemplatesOf(d *dpf.DPU) (all []corev1.ConfigMap) {
	wants := map[string]string{
		"-cluster-name": d.Spec.Cluster.Name, "-cluster-namespace": d.Spec.Cluster.Namespace,
		"-bfb-name": d.Spec.BFB, "-bfb-namespace": d.Namespace,
		"-dpuflavor-name": d.Spec.DPUFlavor, "-dpuflavor-namespace": d.Namespace,
	}
	for _, t := range f.Templates {
		matches := t.Namespace == f.Config.GetNamespace() && t.Labels[TemplateLabel] == "true"
		for end, value := range wants {
			matches = matches && t.Annotations[TemplateLabel+end] == value
		}
		if matches {
			all = append(all, t)
		}
	}
	return all
}

// flavor is one by its name; nil if it was not read.
func (f Facts) flavor(namespace, name string) *unstructured.Unstructured {
	i := slices.IndexFunc(f.Flavors, func(u unstructured.Unstructured) bool { return u.GetNamespace() == namespace && u.GetName() == name })
	if i < 0 {
		return nil
	}
	return &f.Flavors[i]
}

func objectOf(u *unstructured.Unstructured) finding.Object {
	return finding.Object{APIVersion: u.GetAPIVersion(), Kind: u.GetKind(), Namespace: u.GetNamespace(), Name: u.GetName()}
}
