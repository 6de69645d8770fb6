package dpu

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/internal/bfcfg"
	"github.com/cldmnky/oooi/internal/dpf"
	"github.com/cldmnky/oooi/internal/finding"
)

// Findings say what will keep DPUs of bridges from being installed, or from joining. They are known before DPF installs anything.
func (f Facts) Findings(dpus []dpf.DPU) (all []finding.Finding) {
	all = slices.Concat(f.unusable(), f.undeployable(), f.longNames(dpus))
	for i := range dpus {
		all = append(all, f.Of(&dpus[i])...)
	}
	return deduplicated(all)
}

// deduplicated leaves the worst of each reason and object: DPUs have flavors in common.
func deduplicated(all []finding.Finding) (once []finding.Finding) {
	for _, f := range all {
		switch i := slices.IndexFunc(once, func(o finding.Finding) bool { return o.Reason == f.Reason && o.Of == f.Of }); {
		case i < 0:
			once = append(once, f)
		case f.Severity > once[i].Severity:
			once[i] = f
		}
	}
	return once
}

// Of are the findings of one DPU. What its OS is installed from no longer matters once it is.
func (f Facts) Of(d *dpf.DPU) (all []finding.Finding) {
	object := objectOf(d, dpf.GroupVersion, "DPU")
	if n := len(d.Name); n > longestName {
		all = append(all, refuse("DPUNameTooLong").In(object).At("metadata.name").
			Say("DPU %s has a name of %d characters, but its host and Node get the same name, which may have at most %d: give its DPUNode or DPUDevice a shorter name; DPF joins both by a dash", d.Name, n, longestName))
	}
	if installed(d) || len(f.Configs) == 0 {
		return all
	}
	if unusable := f.unusable(); len(unusable) > 0 {
		return append(all, unusable...)
	}
	templates, at := f.TemplatesOf(d), f.Configs[0].Namespace
	switch len(templates) {
	case 0:
		all = append(all, finding.Wait(dpf.ConditionOSInstalled, "TemplateNotFound").In(object).At("spec").
			Say("no ConfigMap in namespace %s is the bf.cfg template for %s, so DPF does not install DPU %s; the bridge's conditions say why there is none", at, wanted(d), d.Name))
		return append(all, f.mayBeLarge(d.Namespace, d.Spec.DPUFlavor)...)
	case 1:
	default:
		all = append(all, refuse(dpuv1.ReasonTemplatesAmbiguous).In(object).At("spec").
			Say("ConfigMaps %s in namespace %s are all bf.cfg templates for %s, and DPF needs exactly one: delete the others", namesOf(templates), at, wanted(d)))
	}
	for _, t := range templates {
		if size := len(t.Data[dpf.TemplateKey]); size > dpf.MaxBFSize {
			all = append(all, sizeChecked(f.flavor(d.Namespace, d.Spec.DPUFlavor), refuse(bfcfg.TemplateTooLarge),
				fmt.Sprintf("ConfigMap %s has a bf.cfg of %d bytes. ", t.Name, size))...)
		}
	}
	return all
}

// longestName of a DPU: that of its host (Linux) and of a label of its Node.
const longestName = validation.DNS1123LabelMaxLength

// longNames warns of names of DPUs that do not exist yet. DPF makes DPUs of the DPUNodes in the namespace of the DPUDeployment, though perhaps not
// of all.
func (f Facts) longNames(dpus []dpf.DPU) (all []finding.Finding) {
	for i := range f.Nodes {
		n := &f.Nodes[i]
		if f.Deployment == nil || n.Namespace != f.Deployment.Namespace {
			continue
		}
		for j, device := range n.Spec.DPUs {
			name := n.DPUName(device.Name)
			if len(name) > longestName && !slices.ContainsFunc(dpus, func(d dpf.DPU) bool { return d.Namespace == n.Namespace && d.Name == name }) {
				all = append(all, finding.Warn(dpf.ConditionOSInstalled, "DPUNameTooLong").In(objectOf(n, dpf.GroupVersion, "DPUNode")).At(fmt.Sprintf("spec.dpus[%d].name", j)).
					Say("DPUDevice %s of DPUNode %s would become DPU %s, a name of %d characters, but its host and Node get the same name, which may have at most %d: give one of both a shorter name before DPF installs it", device.Name, n.Name, name, len(name), longestName))
			}
		}
	}
	return all
}

func refuse(reason string) finding.Builder { return finding.Refuse(dpf.ConditionOSInstalled, reason) }

func installed(d *dpf.DPU) bool {
	return meta.IsStatusConditionTrue(d.Status.Conditions, dpf.ConditionOSInstalled)
}

func wanted(d *dpf.DPU) string {
	return fmt.Sprintf("DPUCluster %s/%s, BFB %s/%s and DPUFlavor %s/%s", d.Spec.Cluster.Namespace, d.Spec.Cluster.Name, d.Namespace, d.Spec.BFB, d.Namespace, d.Spec.DPUFlavor)
}

func namesOf(all []corev1.ConfigMap) string {
	var names []string
	for _, c := range all {
		names = append(names, c.Name)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// unusable says that DPF looks for no templates.
func (f Facts) unusable() []finding.Finding {
	const controller = "spec.provisioningController"
	if len(f.Configs) == 0 {
		return nil
	}
	of := objectOf(&f.Configs[0], dpf.OperatorGroupVersion, "DPFOperatorConfig")
	config, problem := dpf.Only(f.Configs)
	if config == nil {
		return []finding.Finding{refuse("DPFOperatorConfigNotUnique").In(of).At("metadata.name").Say("%s", problem)}
	}
	if fixed := config.Spec.ProvisioningController.BFCFGTemplateConfigMap; fixed != nil {
		return []finding.Finding{refuse("TemplatesDisabled").In(of).At(controller+".bfCFGTemplateConfigMap").Set(finding.Values{controller + ".bfCFGTemplateConfigMap": nil, controller + ".enableDynamicBFCFGTemplates": true}).
			Say("DPF installs every DPU from ConfigMap %s, not from its bridge's template: remove bfCFGTemplateConfigMap, and set enableDynamicBFCFGTemplates: true", *fixed)}
	}
	if !config.Spec.ProvisioningController.EnableDynamicBFCFGTemplates {
		return []finding.Finding{refuse("TemplatesDisabled").In(of).At(controller + ".enableDynamicBFCFGTemplates").Set(finding.Values{controller + ".enableDynamicBFCFGTemplates": true}).
			Say("DPF installs its own OS on every DPU, because it looks for no bf.cfg template: set enableDynamicBFCFGTemplates: true")}
	}
	return nil
}

// undeployable are findings of the flavor that the DPUDeployment names, in whose namespace it is.
func (f Facts) undeployable() []finding.Finding {
	if f.Deployment == nil {
		return nil
	}
	return f.mayBeLarge(f.Deployment.Namespace, f.Deployment.Spec.DPUs.Flavor)
}

// mayBeLarge warns of a flavor before there is a template whose size is known.
func (f Facts) mayBeLarge(namespace, flavor string) []finding.Finding {
	return sizeChecked(f.flavor(namespace, flavor), finding.Warn(dpf.ConditionOSInstalled, bfcfg.TemplateTooLarge), "")
}

// Measured names the templates whose size matters: those of DPUs that are to be installed with a flavor for which DPF checks it.
func (f Facts) Measured(dpus []dpf.DPU) (all []types.NamespacedName) {
	for i := range dpus {
		d := &dpus[i]
		if installed(d) || len(f.mayBeLarge(d.Namespace, d.Spec.DPUFlavor)) == 0 {
			continue
		}
		for _, t := range f.TemplatesOf(d) {
			all = append(all, types.NamespacedName{Namespace: t.Namespace, Name: t.Name})
		}
	}
	return all
}

// sizeChecked says that DPF checks the size of the bf.cfg for a flavor. Nil: it was not read.
func sizeChecked(flavor *dpf.DPUFlavor, is finding.Builder, size string) []finding.Finding {
	if flavor == nil {
		return nil
	}
	if _, skips := flavor.Annotations[dpf.AnnotationSkipSizeCheck]; skips {
		return nil
	}
	return []finding.Finding{is.In(objectOf(flavor, dpf.GroupVersion, "DPUFlavor")).At("metadata.annotations").Set(finding.Values{"metadata.annotations": map[string]any{dpf.AnnotationSkipSizeCheck: ""}}).
		Say("%sDPF refuses a bf.cfg of more than %d bytes, as OpenShift's may be, unless the DPUFlavor has annotation %s: set it", size, dpf.MaxBFSize, dpf.AnnotationSkipSizeCheck)}
}
