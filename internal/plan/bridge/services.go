package bridge

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/cldmnky/oooi/internal/dpf"
	"github.com/cldmnky/oooi/internal/finding"
)

// serviceTemplates plans the DPUServiceTemplates that the bridge keeps, and says what the services of the DPUDeployment lack. Nothing else of
// the bridge depends on that: DPUs that are installed already go on.
func (in Input) serviceTemplates(p *Plan, bound bool) {
	if !in.Bridge.Spec.ManageDPUServiceTemplates {
		p.Services.Remove = in.ownServiceTemplates()
	}
	d := in.deployment()
	if d == nil {
		return
	}
	p.Services.Deployment = types.NamespacedName{Namespace: d.Namespace, Name: d.Name}
	var templates, configurations []string
	for _, service := range d.Spec.Services {
		at := func(name string) types.NamespacedName {
			return types.NamespacedName{Namespace: d.Namespace, Name: name}
		}
		if find(in.Services.Templates, at(service.ServiceTemplate)) == nil {
			templates = append(templates, service.ServiceTemplate)
		}
		if find(in.Services.Configurations, at(service.ServiceConfiguration)) == nil {
			configurations = append(configurations, service.ServiceConfiguration)
		}
	}
	if bound && in.Bridge.Spec.ManageDPUServiceTemplates {
		keeper{Input: in, Plan: p, missing: len(templates) > 0}.keep()
	}
	p.Find(lacking(d, "DPUServiceTemplate", "ServiceTemplateNotFound", templates)...)
	p.Find(lacking(d, "DPUServiceConfiguration", "ServiceConfigurationNotFound", configurations)...)
}

// ownServiceTemplates are those that the bridge has made.
func (in Input) ownServiceTemplates() (all []dpf.DPUServiceTemplate) {
	for _, t := range in.Services.Templates {
		if in.Owns(&t) {
			all = append(all, t)
		}
	}
	return all
}

// lacking says which objects of a kind a DPUDeployment waits for.
func lacking(d *dpf.DPUDeployment, kind, reason string, missing []string) []finding.Finding {
	if len(missing) == 0 {
		return nil
	}
	slices.Sort(missing)
	return one(finding.Wait(serviced, reason).Say("DPUDeployment %s/%s needs %s %s, which namespace %s does not have, or which is being deleted: create it; until then DPF makes no DPUSet, and so installs no DPU",
		d.Namespace, d.Name, kind, finding.Some(slices.Compact(missing)), d.Namespace))
}
