// Package permission is the first stage: to what an Infra may refer.
package permission

import (
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	corev1 "k8s.io/api/core/v1"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/endpoint"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/plan/input"
	"github.com/cldmnky/oooi/internal/plan/subject"
	"github.com/cldmnky/oooi/internal/refgrant"
)

// Check judges every reference of the Infra that leaves its namespace, from what the first stage read. With any
// finding, nothing of the control plane's namespace may be read and nothing created.
func Check(in input.Input) []finding.Finding {
	cluster := clusterReferences(in)
	if refused := refgrant.Check(cluster...); refused != nil {
		return refused // what follows from the HostedCluster is not judged, or its namespace would be allowed
	}
	if f, stranger := strangersNamespace(in); stranger {
		return []finding.Finding{f}
	}
	return refgrant.Check(append(targetReferences(in), nadReference(in))...)
}

// HostedCluster that an Infra may refer to; nil where it may not, which looks the same as where there is none.
func HostedCluster(in input.Input) *hyperv1.HostedCluster {
	if !mayRefer(in) {
		return nil
	}
	return in.HostedCluster
}

// mayRefer says whether an Infra may refer to its control plane.
func mayRefer(in input.Input) bool { return len(refgrant.Check(clusterReferences(in)...)) == 0 }

// clusterReferences lead to the control plane: the HostedCluster, and its namespace where that is not the HostedCluster's own.
func clusterReferences(in input.Input) []refgrant.Reference {
	var refs []refgrant.Reference
	written := namespaceReference(in, "proxy.controlPlaneNamespace", subject.FieldControlPlane, input.Refs(in.Infra).ControlPlaneNamespace)
	if key, ok := in.HostedClusterKey(); ok {
		r := refgrant.Reference{Field: "hostedClusterRef", Path: "spec.hostedClusterRef", From: in.Infra.Namespace, Kind: "hostedcluster", Namespace: key.Namespace, Name: key.Name}
		if in.Infra.Spec.HostedClusterRef == nil {
			r.Field, r.Path = "proxy.controlPlaneNamespace", subject.FieldControlPlane
		}
		if in.HostedCluster != nil {
			r.Annotations = in.HostedCluster.Annotations
		}
		if in.Infra.Spec.HostedClusterRef == nil && !r.Allowed() && !written.Allowed() {
			return []refgrant.Reference{written} // whose control plane it is, is not theirs to hear
		}
		refs = append(refs, r)
	}
	if in.HostedCluster != nil && in.ControlPlaneNamespace() == endpoint.ControlPlaneNamespace(in.HostedCluster) {
		return refs
	}
	if written.Name != "" {
		refs = append(refs, written)
	}
	return refs
}

// strangersNamespace: HyperShift joins namespace and name by a dash, so that HostedCluster b-c in a and HostedCluster c
// in a-b share one namespace, and HostedCluster b in a means a namespace a-b that somebody has made for himself. It is another's who was
// there first, or whose HostedControlPlane alone is there, and nobody's control plane as long as there is none. Which of them it is, the
// sentence does not tell. One that HyperShift has marked is about to be a control plane's: an Infra that waits for it is not refused, or it
// would lose its place on the VLAN to who comes meanwhile.
func strangersNamespace(in input.Input) (finding.Finding, bool) {
	key, known := in.HostedClusterKey()
	if !known {
		return finding.Finding{}, false
	}
	anothers, waits := precedent(in) != nil, plain(in)
	if in.HostedControlPlane != nil && !anothers {
		theirs, named := input.ClusterOf(in.HostedControlPlane)
		anothers = named && theirs != key
	}
	found := finding.Refuse(v1alpha1.ConditionAccepted, "RefNotPermitted")
	if waits && !anothers && in.MadeNamespace.Labels[endpoint.ControlPlaneLabel] == "true" {
		found = finding.Wait(v1alpha1.ConditionAccepted, "WaitingForControlPlane")
	}
	return found.At("spec.hostedClusterRef").
		Say("namespace %s has no control plane of HostedCluster %s, or was another's first: wait until HyperShift has made it, or give one of the two another name", in.ControlPlaneNamespace(), key), anothers || waits
}

// plain says whether the control plane's namespace is there without one, and its owner admits nobody. HyperShift makes the
// HostedControlPlane some steps after the namespace, and none for a HostedCluster that is paused, that it refuses, or whose SSH key is
// missing (hypershift: hostedcluster_controller.go, reconcile).
func plain(in input.Input) bool {
	if in.MadeNamespace == nil || in.HostedControlPlane != nil {
		return false
	}
	return !(refgrant.Reference{From: in.Infra.Namespace, Namespace: in.MadeNamespace.Name, Annotations: in.MadeNamespace.Annotations}).Allowed()
}

// precedent is the HostedCluster that has the control plane's namespace before ours; nil where ours is first. HostedControlPlanes do not
// tell, for HyperShift makes one of each. The API server's clock does, as for bridges: who comes later holds nobody back.
func precedent(in input.Input) *hyperv1.HostedCluster {
	if in.HostedCluster == nil {
		return nil
	}
	if first := input.Oldest(append([]*hyperv1.HostedCluster{in.HostedCluster}, in.Sharing...)...); first != in.HostedCluster {
		return first
	}
	return nil
}

// targetReferences are the namespaces of extra endpoints; the control plane's is the Infra's to use.
func targetReferences(in input.Input) []refgrant.Reference {
	var refs []refgrant.Reference
	for _, e := range in.Infra.Spec.ExtraEndpoints {
		if e.Target.Namespace == "" {
			continue
		}
		r := namespaceReference(in, "extraEndpoints["+e.Name+"].target.namespace", "spec.extraEndpoints["+e.Name+"].target.namespace", string(e.Target.Namespace))
		r.AllowedNamespaces = []string{in.ControlPlaneNamespace()}
		refs = append(refs, r)
	}
	return refs
}

func nadReference(in input.Input) refgrant.Reference {
	key := input.Refs(in.Infra).NAD
	r := refgrant.Reference{
		Field: "networkConfig.networkAttachmentDefinition", Path: subject.FieldNAD, From: in.Infra.Namespace, Kind: "network-attachment-definition", Namespace: key.Namespace, Name: key.Name,
		AllowedNamespaces: append([]string{in.ControlPlaneNamespace()}, in.Settings.NADSourceNamespaces...),
	}
	if in.NAD != nil {
		r.Annotations = in.NAD.Annotations
	}
	return r
}

func namespaceReference(in input.Input, field, path, namespace string) refgrant.Reference {
	r := refgrant.Reference{Field: field, Path: path, From: in.Infra.Namespace, Kind: "namespace", Namespace: namespace, Name: namespace}
	if ns := namespaceNamed(in, namespace); ns != nil {
		r.Annotations = ns.Annotations
	}
	return r
}

func namespaceNamed(in input.Input, name string) *corev1.Namespace {
	for i := range in.Namespaces {
		if in.Namespaces[i].Name == name {
			return &in.Namespaces[i]
		}
	}
	return nil
}

// OnOwnNetwork says whether the network is in the namespace of the Infra's own control plane, which grants it, as in Check. While the Infra
// waits for that, it is not: HyperShift marks a namespace that is there already, and may never make a control plane in it, e.g. where the
// HostedCluster's SSH key is missing.
func OnOwnNetwork(in input.Input) bool {
	if in.NAD == nil || in.NAD.Namespace != in.ControlPlaneNamespace() || !mayRefer(in) {
		return false
	}
	_, stranger := strangersNamespace(in)
	return !stranger
}
