// Package dpu says how far DPF has come with each DPU of a bridge, what the DPU waits for, and what will keep it from being installed. It is
// pure, and knows only what DPF's objects and the bridge's Events say.
package dpu

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cldmnky/oooi/internal/dpf"
	"github.com/cldmnky/oooi/internal/finding"
)

// Facts are what the installation of DPUs depends on, as far as it was read.
type Facts struct {
	// Configs are all DPFOperatorConfigs; none if they were not read, and Templates neither.
	Configs []dpf.DPFOperatorConfig
	// Templates are ConfigMaps of DPFOperatorConfig's namespace, others among them. Those of Measured have their text.
	Templates []corev1.ConfigMap
	// Flavors are those that were read.
	Flavors []dpf.DPUFlavor
	// Deployment is the bridge's DPUDeployment; nil if it was not read.
	Deployment *dpf.DPUDeployment
	// Nodes are the DPUNodes that were read, others among them.
	Nodes []dpf.DPUNode
}

// TemplatesOf are the templates that DPF would take for a DPU. It needs exactly one.
func (f Facts) TemplatesOf(d *dpf.DPU) (all []corev1.ConfigMap) {
	config, _ := dpf.Only(f.Configs)
	if config == nil {
		return nil
	}
	at := func(name string) types.NamespacedName {
		return types.NamespacedName{Namespace: d.Namespace, Name: name}
	}
	wants := dpf.TemplateOf(types.NamespacedName{Namespace: d.Spec.Cluster.Namespace, Name: d.Spec.Cluster.Name}, at(d.Spec.BFB), at(d.Spec.DPUFlavor))
	for _, t := range f.Templates {
		matches := t.Namespace == config.Namespace && t.Labels[dpf.LabelTemplate] == "true"
		for key, value := range wants {
			matches = matches && t.Annotations[key] == value
		}
		if matches {
			all = append(all, t)
		}
	}
	return all
}

// flavor is one by its name; nil if it was not read.
func (f Facts) flavor(namespace, name string) *dpf.DPUFlavor {
	i := slices.IndexFunc(f.Flavors, func(f dpf.DPUFlavor) bool { return f.Namespace == namespace && f.Name == name })
	if i < 0 {
		return nil
	}
	return &f.Flavors[i]
}

// objectOf names an object, which does not say its kind where a list had it.
func objectOf(o metav1.Object, of schema.GroupVersion, kind string) finding.Object {
	return finding.Object{APIVersion: of.String(), Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName()}
}
