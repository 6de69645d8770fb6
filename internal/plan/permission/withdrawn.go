package permission

import (
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cldmnky/oooi/internal/endpoint"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/plan/input"
	"github.com/cldmnky/oooi/internal/refgrant"
)

// OtherNamespace is a namespace, not the Infra's own, in which the Infra has Roles or NetworkPolicies.
type OtherNamespace struct {
	Namespace *corev1.Namespace // nil if it does not exist
	// HostedControlPlane in it, and the HostedCluster that this names; nil if they do not exist.
	HostedControlPlane *hyperv1.HostedControlPlane
	HostedCluster      *hyperv1.HostedCluster
}

// Withdrawn says whether the owner of a namespace has withdrawn its grant to the Infra, whatever the Infra's spec names now. A missing object
// withdraws nothing, because a restore creates objects one after the other.
func Withdrawn(in input.Input, other OtherNamespace) bool {
	if other.Namespace == nil || other.Namespace.DeletionTimestamp != nil {
		return false // with all that is in it
	}
	reference := refgrant.Reference{From: in.Infra.Namespace, Namespace: other.Namespace.Name, Annotations: other.Namespace.Annotations}
	if reference.Allowed() {
		return false
	}
	if found, stranger := strangersNamespace(in); stranger && found.Severity == finding.Refused && plain(in) && other.Namespace.Name == in.MadeNamespace.Name {
		return true // a user's own, which an older release took for a control plane's
	}
	hc, awaited := other.HostedCluster, awaits(in, other.Namespace.Name)
	if hc == nil && awaited {
		hc = in.HostedCluster
		if first := precedent(in); first != nil && other.Namespace.Name == in.ControlPlaneNamespace() {
			hc = first
		}
	}
	if hc != nil {
		reference.Namespace, reference.Annotations = hc.Namespace, hc.Annotations
		return !reference.Allowed()
	}
	return other.HostedControlPlane == nil && !awaited
}

// awaits says whether the control plane that the Infra names is, or will be, in a namespace.
func awaits(in input.Input, namespace string) bool {
	if input.Refs(in.Infra).ControlPlaneNamespace == namespace {
		return true
	}
	key, known := in.HostedClusterKey()
	named := hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	return known && endpoint.ControlPlaneNamespace(&named) == namespace
}
