// Package refgrant decides whether a reference may leave its namespace.
package refgrant

import (
	"slices"
	"strings"

	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/names"
)

// Reference is a field of an object in namespace From that names an object in another namespace.
type Reference struct {
	// Field is its name as the user knows it, e.g. hostedClusterRef, and Path its path.
	Field, Path string
	// From is the namespace of the object with the field.
	From string
	// Kind as kubectl accepts it, Namespace and Name of the target. A reference to a whole namespace has kind namespace, and the namespace
	// as Name.
	Kind, Namespace, Name string
	// Annotations of the target; nil if it does not exist, which is treated as not granted: nobody learns whether another tenant's object
	// exists.
	Annotations map[string]string
	// AllowedNamespaces are open to From without an annotation.
	AllowedNamespaces []string
}

// Allowed says whether the reference may be followed: its target is in the same namespace or in an allowed one, or has the annotation that
// allows From.
func (r Reference) Allowed() bool {
	if r.Namespace == r.From || slices.Contains(r.AllowedNamespaces, r.Namespace) {
		return true
	}
	for granted := range strings.SplitSeq(r.Annotations[names.AnnotationAllowedNamespaces], ",") {
		if strings.TrimSpace(granted) == r.From && r.From != "" {
			return true
		}
	}
	return false
}

// Check returns a finding for each reference that is not allowed.
func Check(references ...Reference) []finding.Finding {
	var refused []finding.Finding
	for _, r := range references {
		if !r.Allowed() {
			refused = append(refused, r.refusal())
		}
	}
	return refused
}

// rendered adds a hint for a kind that controllers make: OVN-Kubernetes reverts a network's annotations to those of the object that it was
// made from (clustermanager/userdefinednetwork, 1.2 and later). The hint tells neither whether that is so here, nor whether the network
// exists.
var rendered = map[string]string{
	"network-attachment-definition": "; if a ClusterUserDefinedNetwork created it, annotate that instead",
}

// refusal has a command that adds to the list, which may already allow other tenants.
func (r Reference) refusal() finding.Finding {
	target := r.Kind + " " + r.Name
	if r.Kind != "namespace" {
		target = "-n " + r.Namespace + " " + target
	}
	return finding.Refuse("Accepted", "RefNotPermitted").At(r.Path).
		Say(`%s names %s %s, which does not exist or does not allow namespace %s; its owner can allow it with: `+
			`kubectl annotate --overwrite %s %s="$(kubectl get %s -o jsonpath='{.metadata.annotations.%s}'),%s"%s`,
			r.Field, r.Kind, r.Name, r.From, target, names.AnnotationAllowedNamespaces,
			target, strings.ReplaceAll(names.AnnotationAllowedNamespaces, ".", `\.`), r.From, rendered[r.Kind])
}
