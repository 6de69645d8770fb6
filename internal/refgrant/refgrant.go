// Package refgrant answers one question for every reference that leaves its namespace: may it?
package refgrant

import (
	"slices"
	"strings"

	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/names"
)

// Reference is one field of an object in namespace From that names an object in another namespace.
type Reference struct {
	// Field as the user knows it, e.g. hostedClusterRef, and its path.
	Field, Path string
	// From is the namespace of the object with the field.
	From string
	// Kind as kubectl takes it, Namespace and Name of the target. A reference to a whole namespace has kind namespace
	// and the namespace as Name.
	Kind, Namespace, Name string
	// Annotations of the target; nil when it does not exist, which looks the same as not being granted: whether
	// another tenant's object exists is not told.
	Annotations map[string]string
	// AllowedNamespaces are namespaces that are open to From without an annotation.
	AllowedNamespaces []string
}

// Allowed says whether the reference may be followed: its target lies in our namespace or in an allowed one, or grants
// our namespace by annotation.
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

// Check is Allowed as findings.
func Check(references ...Reference) []finding.Finding {
	var refused []finding.Finding
	for _, r := range references {
		if !r.Allowed() {
			refused = append(refused, r.refusal())
		}
	}
	return refused
}

// rendered says what else is to be done of a kind that controllers make: OVN-Kubernetes puts a network's annotations back to those of
// the object that it made it from (clustermanager/userdefinednetwork, 1.2 and later). Whether that is so here is not told, nor is
// whether the network exists.
var rendered = map[string]string{
	"network-attachment-definition": "; if a ClusterUserDefinedNetwork created it, annotate that instead",
}

// refusal carries a command that adds to the list: what it grants already may be other tenants.
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
