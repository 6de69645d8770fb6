// Package permission is the first stage of planning: it decides what an Infra may refer to.
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

// Check judges every reference of the Infra to another namespace, from what the first stage read. While it has findings, nothing in the
// control plane's namespace may be read, and nothing created.
func Check(in input.Input) []finding.Finding {
	cluster := clusterReferences(in)
	if refused := refgrant.Check(cluster...); refused != nil {
		return refused // the checks below allow its control-plane namespace without a grant
	}
	if f, stranger := strangersNamespace(in); stranger {
		return []finding.Finding{f}
	}
	return refgrant.Check(append(targetReferences(in), nadReference(in))...)
}

// HostedCluster that an Infra may refer to; nil if it may not, as if it did not exist.
func HostedCluster(in input.Input) *hyperv1.HostedCluster {
	if !mayRefer(in) {
		return nil
	}
	return in.HostedCluster
}

// mayRefer says whether an Infra may refer to its control plane.
func mayRefer(in input.Input) bool { return len(refgrant.Check(clusterReferences(in)...)) == 0 }

// clusterReferences are the HostedCluster and, if it does not follow from its name, the control plane's namespace.
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
			return []refgrant.Reference{written} // the user must not learn whose control plane it is
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

// strangersNamespace finds a control-plane namespace that is not the Infra's to use. HyperShift joins namespace and name by a dash, so that
// HostedClusters a/b-c and a-b/c share one, and that of a/b may be a user's own namespace a-b. It belongs to another HostedCluster that is
// older, or that alone has a HostedControlPlane there; without any, it is no control plane's. The message does not tell which applies. If
// HyperShift has labelled it, a control plane will follow: the Infra waits, because if it were refused, a newer one would take its place on
// the VLAN.
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

// plain says whether the control plane's namespace exists without a HostedControlPlane and without a grant to the Infra. HyperShift creates the
// former some steps later, and none for a HostedCluster that is paused, that it refuses, or whose SSH key is missing (hypershift:
// hostedcluster_controller.go, reconcile).
func plain(in input.Input) bool {
	if in.MadeNamespace == nil || in.HostedControlPlane != nil {
		return false
	}
	return !(refgrant.Reference{From: in.Infra.Namespace, Namespace: in.MadeNamespace.Name, Annotations: in.MadeNamespace.Annotations}).Allowed()
}

// precedent is the oldest HostedCluster of the control plane's namespace; nil if that is ours. HostedControlPlanes do not decide, because
// HyperShift creates one for each. The creation time does, as for bridges: a newer HostedCluster cannot block an older one.
func precedent(in input.Input) *hyperv1.HostedCluster {
	if in.HostedCluster == nil {
		return nil
	}
	if first := input.Oldest(append([]*hyperv1.HostedCluster{in.HostedCluster}, in.Sharing...)...); first != in.HostedCluster {
		return first
	}
	return nil
}

// targetReferences are the namespaces of extra endpoints; the control plane's needs no grant.
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

// OnOwnNetwork says whether the network is in the namespace of the Infra's own control plane, where it needs no grant, as in Check. False while
// the Infra waits for that: HyperShift labels an existing namespace too, and may never create a control plane there, e.g. without the
// HostedCluster's SSH key.
func OnOwnNetwork(in input.Input) bool {
	if in.NAD == nil || in.NAD.Namespace != in.ControlPlaneNamespace() || !mayRefer(in) {
		return false
	}
	_, stranger := strangersNamespace(in)
	return !stranger
}
