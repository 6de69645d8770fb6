package check

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/step"
)

// infraReady tells of each Infra that is not Ready the reason of its Ready, which is the first cause (internal/status).
func infraReady(f Facts) (all []step.Step) {
	switch {
	case f.Infras.Unread != "":
		return one(unread("the Infras", f.Infras.Unread))
	case f.lacksCRD("infras." + names.Group):
		return one(skip("Infras are not checked: their CRD is missing"))
	}
	good := 0
	for i := range f.Infras.Is {
		infra := &f.Infras.Is[i]
		if s := readiness(infra); s.Outcome == step.OK {
			good++
		} else {
			all = append(all, about("Infra", infra.Namespace, infra.Name, s))
		}
	}
	switch {
	case len(f.Infras.Is) == 0:
		return one(skip("%s", f.none("Infra")))
	case good > 0:
		all = append(all, ok("%d of %d Infras are Ready", good, len(f.Infras.Is)))
	}
	return all
}

func readiness(infra *v1alpha1.Infra) step.Step {
	name := infra.Namespace + "/" + infra.Name
	do := "kubectl -n " + infra.Namespace + " describe infra " + infra.Name
	ready := meta.FindStatusCondition(infra.Status.Conditions, v1alpha1.ConditionReady)
	degraded := meta.FindStatusCondition(infra.Status.Conditions, v1alpha1.ConditionDegraded)
	switch {
	case infra.DeletionTimestamp != nil:
		return warn(do, "Infra %s is being deleted", name)
	case ready == nil || ready.ObservedGeneration != infra.Generation:
		return fail("see whether the operator runs: the steps above", "Infra %s: the operator has not seen its newest spec yet", name)
	case ready.Status != metav1.ConditionTrue:
		return fail(do, "Infra %s is not Ready: %s: %s", name, ready.Reason, ready.Message)
	case ready.Reason == v1alpha1.ReasonProbeFails:
		return warn(do, "Infra %s is Ready, and its proxy's probe fails: %s", name, ready.Message)
	case degraded != nil && degraded.Status == metav1.ConditionTrue:
		return warn(do, "Infra %s is Degraded: %s: %s", name, degraded.Reason, degraded.Message)
	}
	return step.Step{Outcome: step.OK}
}

// none says that there is no object of a kind where it was looked for.
func (f Facts) none(kind string) string {
	if f.Only != "" {
		return "there is no " + kind + " in namespace " + f.Only + ", to which -n restricts this"
	}
	return "there is no " + kind
}

func bridgeReady(f Facts) (all []step.Step) {
	switch {
	case f.Bridges.Unread != "":
		return one(unread("the bridges", f.Bridges.Unread))
	case f.lacksCRD("dpuhcpbridges." + names.BridgeGroup):
		return one(skip("bridges are not checked: their CRD is missing"))
	case len(f.Bridges.Is) == 0:
		return one(skip("%s", f.none("DPUHCPBridge")))
	}
	good := 0
	for _, b := range f.Bridges.Is {
		if b.Because == "" {
			good++
			continue
		}
		all = append(all, about("DPUHCPBridge", b.Namespace, b.Name, fail("oooi bridge status "+b.Name+" -n "+b.Namespace, "DPUHCPBridge %s/%s is not ready: %s", b.Namespace, b.Name, b.Because)))
	}
	if good > 0 {
		all = append(all, ok("%d of %d bridges are ready", good, len(f.Bridges.Is)))
	}
	return all
}
