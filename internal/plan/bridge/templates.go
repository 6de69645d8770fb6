package bridge

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

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

// pairs are what DPUs of the DPUCluster are, or will be, installed with: each needs a template. DPUs count where those who own DPUCluster or
// DPUDeployment made them: in any other namespace, a DPU that somebody else made would get the hosted cluster's ignition, which has secrets.
func (in Input) pairs() (all []pair) {
	namespaces := []string{ClusterKey(in.Bridge).Namespace}
	add := func(namespace, bfb, flavor string) {
		if bfb != "" && flavor != "" {
			all = append(all, pair{types.NamespacedName{Namespace: namespace, Name: bfb}, types.NamespacedName{Namespace: namespace, Name: flavor}})
		}
	}
	if d := in.deployment(); d != nil {
		namespaces = append(namespaces, d.Namespace)
		add(d.Namespace, d.Spec.DPUs.BFB, d.Spec.DPUs.Flavor)
	}
	for i := range in.Templates.DPUs {
		if d := &in.Templates.DPUs[i]; d.DeletionTimestamp == nil && slices.Contains(namespaces, d.Namespace) && d.Joins(ClusterKey(in.Bridge)) {
			add(d.Namespace, d.Spec.BFB, d.Spec.DPUFlavor)
		}
	}
	slices.SortFunc(all, func(a, b pair) int {
		return cmp.Or(cmp.Compare(a.BFB.String(), b.BFB.String()), cmp.Compare(a.Flavor.String(), b.Flavor.String()))
	})
	return slices.Compact(all)
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
	if exists {
		t.Find(in.unreferred()...)
	}
	if bound && exists && len(pairs) > 0 && t.reads() {
		for _, of := range pairs {
			t.template(of)
		}
		t.waits()
	}
	for _, e := range in.Templates.Existing {
		switch {
		case !in.Owns(&e) || !in.readByDPF(&e):
		case t.keep[e.Namespace+"/"+e.Name]:
			p.Templates.Served++
		default:
			p.Templates.Withdraw = append(p.Templates.Withdraw, e)
		}
	}
}

// readByDPF says whether DPF looks for templates in the namespace of one. Elsewhere anybody can make some with the bridge's labels, and the
// operator may not be allowed to delete them, for which the hosted cluster would wait.
func (in Input) readByDPF(template metav1.Object) bool {
	return slices.ContainsFunc(in.Templates.Configs, func(c dpf.DPFOperatorConfig) bool { return c.Namespace == template.GetNamespace() })
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
