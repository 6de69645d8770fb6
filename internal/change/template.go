package change

import (
	"fmt"
	"slices"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/cldmnky/oooi/internal/dpf"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/plan/bridge"
	"github.com/cldmnky/oooi/internal/plan/desired"
)

// Remake is what becomes of a template that is made anew later, once HyperShift has done its part.
const Remake = "remake"

// Template is what becomes of a ConfigMap from which DPF installs DPUs.
type Template struct {
	Verb      string `json:"verb"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// BFB and Flavor of the DPUs, each with its namespace.
	BFB    string `json:"bfb"`
	Flavor string `json:"flavor"`
	Says   string `json:"says"`
}

// templates are those that change. Both plans were made with the same stand-in for the ignition, so that it makes no difference.
func templates(before, after BridgePicture, writes []Write) (all []Template) {
	for _, o := range after.Plan.Templates.Apply {
		is := flattened(o)
		twin := slices.IndexFunc(before.Plan.Templates.Apply, func(b runtime.ApplyConfiguration) bool { return flattened(b).same(is) })
		switch {
		case twin >= 0 && before.Paused == "" && string(desired.Encoded(before.Plan.Templates.Apply[twin])) == string(desired.Encoded(o)):
		case exists(after.Input.Templates.Existing, is):
			all = append(all, template(Update, is, "DPUs that DPF installs from then on get something else"))
		default:
			all = append(all, template(Create, is, "DPF installs DPUs from it"))
		}
	}
	for _, e := range after.Plan.Templates.Withdraw {
		if !slices.ContainsFunc(before.Plan.Templates.Withdraw, func(b corev1.ConfigMap) bool { return b.UID == e.UID }) {
			all = append(all, template(Delete, flattened(&e), withdrawn(after, &e)))
		}
	}
	if !rendersAnew(writes) {
		return all
	}
	for _, e := range after.Input.Templates.Existing {
		told := slices.ContainsFunc(all, func(t Template) bool { return t.Namespace == e.Namespace && t.Name == e.Name })
		if !told && after.Owns(&e) {
			all = append(all, template(Remake, flattened(&e), "made anew once HyperShift has rendered the ignition from what changes; DPUs that DPF installs from then on get something else"))
		}
	}
	return all
}

func template(verb string, of flat, says string) Template {
	named := func(what string) string {
		at := func(end string) string {
			return of.values[within("metadata.annotations", dpf.LabelTemplate+"-"+what+"-"+end)]
		}
		return at("namespace") + "/" + at("name")
	}
	return Template{Verb: verb, Namespace: of.Namespace, Name: of.Name, BFB: named("bfb"), Flavor: named("dpuflavor"), Says: says}
}

func exists(all []corev1.ConfigMap, of flat) bool {
	return slices.ContainsFunc(all, func(e corev1.ConfigMap) bool { return e.Namespace == of.Namespace && e.Name == of.Name })
}

// withdrawn says until when there is no template.
func withdrawn(after BridgePicture, e *corev1.ConfigMap) string {
	if release := string(after.Bridge.Spec.OCPReleaseImage); e.Annotations[names.AnnotationTemplateRelease] != release {
		return fmt.Sprintf("DPF installs no DPU of these until the control plane runs release %s and HyperShift has rendered its ignition, from which the template is then made anew", release)
	}
	return "DPF installs no DPU of these any more"
}

// rendersAnew says whether HyperShift renders the NodePool's ignition from something else: the MachineConfig of the NodePool, or what the
// HostedCluster refers to (hypershift 3ee96155, nodepool/config.go, Hash and generateMCORawConfig). Of another release, the template tells it.
func rendersAnew(writes []Write) bool {
	for _, w := range writes {
		switch is := w.After.(type) {
		case *corev1.ConfigMap:
			if is.Name == names.BridgeIgnition(is.Labels[names.LabelBridge]) && w.Before != nil {
				return true
			}
		case *hyperv1.HostedCluster:
			was, existed := w.Before.(*hyperv1.HostedCluster)
			if existed && (was.Spec.PullSecret != is.Spec.PullSecret || was.Spec.SSHKey != is.Spec.SSHKey || trusts(was) != trusts(is)) {
				return true
			}
		}
	}
	return false
}

func trusts(hc *hyperv1.HostedCluster) string {
	if hc.Spec.AdditionalTrustBundle == nil {
		return ""
	}
	return hc.Spec.AdditionalTrustBundle.Name
}

// installed says what becomes of the DPUs of the DPUCluster.
func installed(after BridgePicture) string {
	var all []string
	for _, d := range after.Input.Templates.DPUs {
		all = append(all, d.Namespace+"/"+d.Name)
	}
	if len(all) == 0 {
		return fmt.Sprintf("DPUCluster %s has no DPU yet", bridge.ClusterKey(after.Bridge))
	}
	return "those that are installed stay as they are until DPF installs them again: " + finding.Some(all)
}
