package bridge

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/internal/dpf"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/refgrant"
)

// WantsTemplates says whether the bridge has to know the ignition of its NodePool.
func (in Input) WantsTemplates() bool {
	return in.Bridge.Spec.DPUDeploymentRef != nil || len(in.pairs()) > 0
}

// deploymentRefusals say why the bridge may not refer to its DPUDeployment.
func (in Input) deploymentRefusals() []finding.Finding {
	key := DeploymentKey(in.Bridge)
	if key.Name == "" {
		return nil
	}
	r := refgrant.Reference{Field: "dpuDeploymentRef", Path: "spec.dpuDeploymentRef", From: in.Bridge.Namespace, Kind: "dpudeployment", Namespace: key.Namespace, Name: key.Name}
	if in.Templates.Deployment != nil {
		r.Annotations = in.Templates.Deployment.Annotations
	}
	refused := refgrant.Check(r)
	for i := range refused {
		refused[i].Condition = templated
	}
	return refused
}

// deployment is that of the bridge, if it may refer to it.
func (in Input) deployment() *dpf.DPUDeployment {
	d := in.Templates.Deployment
	if d == nil || d.DeletionTimestamp != nil || len(in.deploymentRefusals()) > 0 {
		return nil
	}
	return d
}

// pairs are what DPUs of the DPUCluster are, or will be, installed with: each needs a template.
func (in Input) pairs() (all []pair) {
	add := func(kind string, by metav1.Object, bfb, bfbField, flavor, flavorField string) {
		if at := by.GetNamespace(); bfb != "" && flavor != "" {
			all = append(all, pair{types.NamespacedName{Namespace: at, Name: bfb}, types.NamespacedName{Namespace: at, Name: flavor}, kind + " " + at + "/" + by.GetName(), bfbField, flavorField})
		}
	}
	if d := in.deployment(); d != nil {
		add("DPUDeployment", d, d.Spec.DPUs.BFB, "spec.dpus.bfb", d.Spec.DPUs.Flavor, "spec.dpus.flavor")
	}
	for _, d := range in.installed() {
		add("DPU", &d, d.Spec.BFB, "spec.bfb", d.Spec.DPUFlavor, "spec.dpuFlavor")
	}
	slices.SortStableFunc(all, func(a, b pair) int {
		return cmp.Or(cmp.Compare(a.BFB.String(), b.BFB.String()), cmp.Compare(a.Flavor.String(), b.Flavor.String()))
	})
	return slices.CompactFunc(all, pair.sameAs)
}

// installed are the DPUs that templates are made for: those that somebody made who owns DPUCluster or DPUDeployment. In any other namespace,
// a DPU that somebody else made would get the hosted cluster's ignition, which has secrets.
func (in Input) installed() (all []dpf.DPU) {
	namespaces := []string{ClusterKey(in.Bridge).Namespace}
	if d := in.deployment(); d != nil {
		namespaces = append(namespaces, d.Namespace)
	}
	for _, d := range in.Templates.DPUs {
		if d.DeletionTimestamp == nil && slices.Contains(namespaces, d.Namespace) && d.Joins(ClusterKey(in.Bridge)) {
			all = append(all, d)
		}
	}
	return all
}

// unnamed says what gets no template, because it does not name both that one is made for. The API server accepts an empty name.
func (in Input) unnamed() (all []finding.Finding) {
	if d := in.deployment(); d != nil && (d.Spec.DPUs.BFB == "" || d.Spec.DPUs.Flavor == "") {
		all = append(all, finding.Wait(templated, "DPUDeploymentIncomplete").At("spec.dpuDeploymentRef").
			Say("DPUDeployment %s/%s names no BFB, or no DPUFlavor (spec.dpus): name both; DPF gets no template for its DPUs until then", d.Namespace, d.Name))
	}
	var dpus []string
	for _, d := range in.installed() {
		if d.Spec.BFB == "" || d.Spec.DPUFlavor == "" {
			dpus = append(dpus, d.Namespace+"/"+d.Name)
		}
	}
	if len(dpus) > 0 {
		all = append(all, finding.Warn(templated, "DPUIncomplete").Say("no template is made for DPUs %s, which name no BFB, or no DPUFlavor: DPF installs them from none of this bridge's", finding.Some(dpus)))
	}
	return all
}

// templates plans the templates. A template stays as it was, whatever is wrong, unless a DPU would be installed with another release, or with
// a BFB or flavor that is gone.
func (in Input) templates(p *Plan, bound bool) {
	if !in.Served.DPF {
		return
	}
	t := templater{Input: in, Plan: p, keep: map[string]bool{}}
	pairs := in.pairs()
	exists := in.cluster() != nil // a bridge that has made nothing says nothing of it, either: Applied
	if len(in.Templates.Unserved) > 0 && exists && in.WantsTemplates() {
		t.Find(in.unserved()...)
		return
	}
	if exists {
		t.Find(in.unreferred()...)
		t.Find(in.unnamed()...)
	}
	if bound && exists && len(pairs) > 0 {
		t.holdsRelease(pairs)
		if t.reads() {
			for _, of := range pairs {
				t.template(of)
			}
			t.waits()
		}
	}
	for _, e := range in.Templates.Existing {
		switch {
		case !in.Owns(&e) || !in.Templates.readByDPF(&e):
		case t.keep[e.Namespace+"/"+e.Name]:
			p.Templates.Served++
		default:
			p.Templates.Withdraw = append(p.Templates.Withdraw, e)
			p.Find(staying(&e)...)
		}
	}
}

// staying says why a template that is withdrawn is still there. Until it is gone, the hosted cluster does not change.
func staying(template metav1.Object) []finding.Finding {
	if template.GetDeletionTimestamp() == nil {
		return nil
	}
	return one(finding.Wait(dpuv1.ConditionReady, "TemplateTerminating").Say("ConfigMap %s/%s is withdrawn as a template, but its finalizers (%s) keep it, and DPF could install DPUs from it: have their owners remove them; the hosted cluster does not change until it is gone",
		template.GetNamespace(), template.GetName(), finding.Some(template.GetFinalizers())))
}

// unserved: what is not read must not count as absent. The hosted cluster keeps its release, because templates of that could not be withdrawn.
func (in Input) unserved() []finding.Finding {
	missing := finding.Some(in.Templates.Unserved)
	all := one(finding.Wait(templated, "DPFNotInstalled").Say("the cluster does not serve %s, or could not be asked for it: install the DPF operator in a version that has it; the bridge notices it, and leaves DPF's templates as they are until then", missing))
	if is, to := in.cluster().Spec.Release.Image, string(in.Bridge.Spec.OCPReleaseImage); is != to {
		all = append(all, finding.Wait(dpuv1.ConditionReady, "DPFNotInstalled").Say("HostedCluster %s keeps release %s until templates of it can be withdrawn: the cluster does not serve %s", in.name(), is, missing))
	}
	return all
}

// unreferred says why there is no DPUDeployment.
func (in Input) unreferred() []finding.Finding {
	key := DeploymentKey(in.Bridge)
	if refused := in.deploymentRefusals(); key.Name == "" || len(refused) > 0 {
		return refused
	}
	if in.deployment() == nil {
		return one(finding.Wait(templated, "DPUDeploymentNotFound").At("spec.dpuDeploymentRef").
			Say("DPUDeployment %s does not exist, or is being deleted: create it (kubectl get dpudeployments -A); DPF gets no template for its DPUs until then", key))
	}
	return nil
}

// runsDPF is the version of DPF; empty if it is not known.
func (in Input) runsDPF() string {
	if config, _ := dpf.Only(in.Templates.Configs); config != nil {
		return config.Status.Version
	}
	return ""
}

// serviceTemplate is the one of a name, whoever made it.
func (in Input) serviceTemplate(name string) *dpf.DPUServiceTemplate {
	for i := range in.Services.Templates {
		if in.Services.Templates[i].Name == name {
			return &in.Services.Templates[i]
		}
	}
	return nil
}
