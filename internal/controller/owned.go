package controller

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/cldmnky/oooi/internal/apply"
	"github.com/cldmnky/oooi/internal/component"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/metallb"
	"github.com/cldmnky/oooi/internal/nad"
	"github.com/cldmnky/oooi/internal/observe"
	"github.com/cldmnky/oooi/internal/plan/bridge"
)

// infraKinds are all kinds that plan.Infra creates, in any namespace.
func infraKinds() (all []schema.GroupVersionKind) {
	for _, c := range component.All {
		all = append(all, c.GVK())
	}
	return append(all,
		nad.GroupVersion.WithKind("NetworkAttachmentDefinition"),
		schema.GroupVersionKind{Group: "networking.k8s.io", Version: "v1", Kind: "NetworkPolicy"},
		schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "RoleBinding"},
		schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "Role"},
	)
}

// bridgeKinds are what a bridge makes and prunes in its namespace: Secrets are in no cache, and the hosted cluster is ended separately.
var bridgeKinds = []schema.GroupVersionKind{{Version: "v1", Kind: "ConfigMap"}}

// metallbKinds are what a bridge makes in MetalLB's namespace.
var metallbKinds = []schema.GroupVersionKind{
	metallb.GroupVersion.WithKind("IPAddressPool"),
	metallb.GroupVersion.WithKind("L2Advertisement"),
}

func ownerBridge(in bridge.Input) apply.Owner {
	b := in.Bridge
	return apply.Owner{
		UID: b.UID, Exists: in.Exists, Names: apply.NameOf("bridge", b.Namespace, b.Name),
		Namespace: b.Namespace, Kinds: bridgeKinds, Anywhere: metallbKinds,
	}
}

// ownerTemplates is the same bridge as owner of its templates, which are withdrawn by name.
func ownerTemplates(in bridge.Input) apply.Owner {
	b := in.Bridge
	return apply.Owner{UID: b.UID, Exists: in.Exists, Names: apply.NameOf("template", b.Namespace, b.Name)}
}

// childKinds are what every child's plan creates, except its workload.
var childKinds = []schema.GroupVersionKind{
	{Version: "v1", Kind: "ServiceAccount"},
	{Version: "v1", Kind: "Service"},
	{Version: "v1", Kind: "ConfigMap"},
	{Version: "v1", Kind: "Pod"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "RoleBinding"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "Role"},
	{Group: "networking.k8s.io", Version: "v1", Kind: "NetworkPolicy"},
	{Group: "policy", Version: "v1", Kind: "PodDisruptionBudget"},
}

// workloadKinds are the workload kinds of all components.
func workloadKinds() (all []schema.GroupVersionKind) {
	for _, c := range component.All {
		all = append(all, c.WorkloadGVK())
	}
	return all
}

// ownerInfra describes what an Infra owns.
func ownerInfra(seen observe.Infra) apply.Owner {
	infra := seen.Input.Infra
	return apply.Owner{UID: infra.UID, Exists: seen.Exists, Names: apply.NameOf("infra", infra.Namespace, infra.Name), Anywhere: infraKinds()}
}

// owner describes what a child owns: objects in its own namespace that name it.
func (r childReconciler) owner(seen observe.Child) apply.Owner {
	read, kind := map[finding.Object]string{}, r.of.WorkloadGVK()
	for _, rollout := range seen.Rollouts() {
		read[finding.Object{APIVersion: kind.GroupVersion().String(), Kind: kind.Kind, Namespace: seen.Server.GetNamespace(), Name: rollout.Workload}] = rollout.Version
	}
	return apply.Owner{
		UID: seen.Server.GetUID(), Exists: seen.Exists, Namespace: seen.Server.GetNamespace(),
		Names: apply.NameOf(string(r.of.Name), seen.Server.GetNamespace(), seen.Server.GetName()),
		Kinds: append([]schema.GroupVersionKind{kind}, childKinds...),
		Read:  read,
	}
}
