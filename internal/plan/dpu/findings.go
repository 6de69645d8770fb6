package dpu

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/internal/dpf"
	"github.com/cldmnky/oooi/internal/finding"
)

// Findings say what will keep DPUs of bridges from being installed, or from joining. They are known before DPF installs anything.
func (f Facts) Findings(dpus []dpf.DPU) (all []finding.Finding) {
	all = append(f.disabled(), f.undeployable()...)
	for i := range dpus {
		all = append(all, f.Of(&dpus[i])...)
	}
	return deduplicated(all)
}

// deduplicated: DPUs have flavors in common.
func deduplicated(all []finding.Finding) (once []finding.Finding) {
	for _, f := range all {
		if !slices.ContainsFunc(once, func(o finding.Finding) bool { return o.Reason == f.Reason && o.Of == f.Of }) {
			once = append(once, f)
		}
	}
	return once
}

// Of are the findings of one DPU. What its OS is installed from no longer matters once it is.
func (f Facts) Of(d *dpf.DPU) (all []finding.Finding) {
	object := finding.Object{APIVersion: dpf.GroupVersion.String(), Kind: "DPU", Namespace: d.Namespace, Name: d.Name}
	if n := len(d.Name); n > validation.DNS1123LabelMaxLength {
		all = append(all, refuse("DPUNameTooLong").In(object).At("metadata.name").
			Say("DPU %s has a name of %d characters, but its host and Node get the same name, which may have at most %d: give its DPUNode or DPUDevice a shorter name; DPF joins both by a dash", d.Name, n, validation.DNS1123LabelMaxLength))
	}
	if installed(d) || f.Config == nil {
		return all
	}
	if disabled := f.disabled(); len(disabled) > 0 {
		return append(all, disabled...)
	}
	templates := f.TemplatesOf(d)
	switch len(templates) {
	case 0:
		all = append(all, finding.Wait(dpf.ConditionOSInstalled, "TemplateNotFound").In(object).At("spec").
			Say("no ConfigMap in namespace %s is the bf.cfg template for %s, so DPF does not install DPU %s", f.Config.GetNamespace(), wanted(d), d.Name))
	case 1:
	default:
		all = append(all, refuse(dpuv1.ReasonTemplatesAmbiguous).In(object).At("spec").
			Say("ConfigMaps %s in namespace %s are all bf.cfg templates for %s, and DPF needs exactly one: delete the others", namesOf(templates), f.Config.GetNamespace(), wanted(d)))
	}
	if len(templates) == 0 || slices.ContainsFunc(templates, large) {
		all = append(all, sizeChecked(f.flavor(d.Namespace, d.Spec.DPUFlavor))...)
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

func large(template corev1.ConfigMap) bool { return len(template.Data[templateKey]) > mostUnskipped }

// disabled says that DPF looks for no templates.
func (f Facts) disabled() []finding.Finding {
	const controller = "spec.provisioningController"
	if f.Config == nil {
		return nil
	}
	of := objectOf(f.Config)
	field := strings.Split(controller, ".")
	if fixed, found, _ := unstructured.NestedString(f.Config.Object, append(field, "bfCFGTemplateConfigMap")...); found {
		return []finding.Finding{refuse("TemplatesDisabled").In(of).At(controller+".bfCFGTemplateConfigMap").Set(finding.Values{controller + ".bfCFGTemplateConfigMap": nil, controller + ".enableDynamicBFCFGTemplates": true}).
			Say("DPF installs every DPU from ConfigMap %s, not from its bridge's template: remove bfCFGTemplateConfigMap, and set enableDynamicBFCFGTemplates: true", fixed)}
	}
	if on, _, _ := unstructured.NestedBool(f.Config.Object, append(field, "enableDynamicBFCFGTemplates")...); !on {
		return []finding.Finding{refuse("TemplatesDisabled").In(of).At(controller + ".enableDynamicBFCFGTemplates").Set(finding.Values{controller + ".enableDynamicBFCFGTemplates": true}).
			Say("DPF installs its own OS on every DPU, because it looks for no bf.cfg template: set enableDynamicBFCFGTemplates: true")}
	}
	return nil
}

// undeployable are findings of the flavors that DPUDeployments name, in whose namespace they are.
func (f Facts) undeployable() (all []finding.Finding) {
	for _, d := range f.Deployments {
		name, _, _ := unstructured.NestedString(d.Object, "spec", "dpus", "flavor")
		all = append(all, sizeChecked(f.flavor(d.GetNamespace(), name))...)
	}
	return all
}

// sizeChecked says that DPF refuses a bf.cfg of OpenShift for a flavor. Nil: it was not read.
func sizeChecked(flavor *unstructured.Unstructured) []finding.Finding {
	if flavor == nil {
		return nil
	}
	if _, skips := flavor.GetAnnotations()[dpf.AnnotationSkipSizeCheck]; skips {
		return nil
	}
	return []finding.Finding{refuse("FlavorChecksSize").In(objectOf(flavor)).At("metadata.annotations").Set(finding.Values{"metadata.annotations": map[string]any{dpf.AnnotationSkipSizeCheck: ""}}).
		Say("DPF refuses a bf.cfg of more than %d bytes, which OpenShift's are, unless the DPUFlavor has annotation %s", mostUnskipped, dpf.AnnotationSkipSizeCheck)}
}
