package check

import (
	"io/fs"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/cldmnky/oooi/config"
	"github.com/cldmnky/oooi/internal/step"
)

// Right is one verb on one resource. In no namespace it is for all of them.
type Right struct{ Verb, Group, Resource, Name, Namespace string }

// String is a right as `kubectl auth can-i` takes it.
func (r Right) String() string {
	text := r.Verb + " " + r.Resource
	if r.Group != "" {
		text += "." + r.Group
	}
	if r.Name != "" {
		text += "/" + r.Name
	}
	if r.Namespace != "" {
		text += " -n " + r.Namespace
	}
	return text
}

// Split is the resource and its subresource, which rules write as one.
func (r Right) Split() (resource, sub string) {
	resource, sub, _ = strings.Cut(r.Resource, "/")
	return resource, sub
}

// Needed are the rights that the Roles of this version give the operator in its namespace, or everywhere.
func (m Manager) Needed(namespace string) (all []Right) {
	files := []string{"rbac/role.yaml"}
	for file, is := range map[string]bool{
		"rbac/vlan_role.yaml": m.VLAN, "rbac/bridge_role.yaml": m.Bridges, "rbac/leader_election.yaml": m.Elects, "webhook/keys.yaml": m.Webhook && m.OwnCertificate,
	} {
		if is {
			files = append(files, file)
		}
	}
	for _, file := range files {
		text, err := fs.ReadFile(config.Files, file)
		if err != nil {
			panic(err) // it is embedded
		}
		for document := range strings.SplitSeq(string(text), "\n---\n") {
			all = append(all, granted(document, namespace)...)
		}
	}
	slices.SortFunc(all, func(a, b Right) int { return strings.Compare(a.String(), b.String()) })
	return slices.Compact(all)
}

// granted are the rights of a Role in a namespace, or of a ClusterRole; none of another kind.
func granted(document, namespace string) (all []Right) {
	var role rbacv1.ClusterRole // a Role has the same rules
	if err := yaml.Unmarshal([]byte(document), &role); err != nil {
		panic(err) // it is embedded
	}
	if role.Kind == "ClusterRole" {
		namespace = ""
	}
	for _, rule := range role.Rules {
		names := rule.ResourceNames
		if len(names) == 0 {
			names = []string{""}
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					for _, name := range names {
						all = append(all, Right{verb, group, resource, name, namespace})
					}
				}
			}
		}
	}
	return all
}

func operatorRights(f Facts) []step.Step {
	switch lacks := f.Denied.Is; {
	case f.Deployment.Is == nil:
		return one(skip("the operator's rights are not checked: %s", f.absent()))
	case f.Denied.Unread != "":
		return one(unread("the operator's rights", f.Denied.Unread))
	case len(lacks) > 0 && f.skewed(): // another version may need others
		return one(warn(theSame, "the operator's ServiceAccount may not: %s; this oooi is of another version, whose operator needs it", first(lacks)))
	case len(lacks) > 0:
		return one(fail("apply the Roles of the operator's version: helm upgrade, or make deploy, from its tree", "the operator's ServiceAccount may not: %s", first(lacks)))
	}
	return one(ok("the operator's ServiceAccount has its cluster-wide rights"))
}

// Creates is what an installation creates.
var Creates = []Right{
	{Group: "", Resource: "namespaces"},
	{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"},
	{Group: "rbac.authorization.k8s.io", Resource: "clusterroles"},
	{Group: "rbac.authorization.k8s.io", Resource: "clusterrolebindings"},
	{Group: "admissionregistration.k8s.io", Resource: "validatingwebhookconfigurations"},
	{Resource: "serviceaccounts", Namespace: "*"},
	{Resource: "services", Namespace: "*"},
	{Resource: "secrets", Namespace: "*"},
	{Group: "apps", Resource: "deployments", Namespace: "*"},
	{Group: "policy", Resource: "poddisruptionbudgets", Namespace: "*"},
	{Group: "networking.k8s.io", Resource: "networkpolicies", Namespace: "*"},
	{Group: "coordination.k8s.io", Resource: "leases", Namespace: "*"},
	{Group: "rbac.authorization.k8s.io", Resource: "roles", Namespace: "*"},
	{Group: "rbac.authorization.k8s.io", Resource: "rolebindings", Namespace: "*"},
}

// Installing are the rights that an installation into a namespace needs, beside Escalate or all that it grants.
func Installing(namespace string) (all []Right) {
	for _, r := range Creates {
		if r.Verb = "create"; r.Namespace == "*" {
			r.Namespace = namespace
		}
		all = append(all, r)
	}
	return all
}

// Escalate lets somebody grant rights that he has not; without it, Kubernetes lets him grant only his own.
var Escalate = Right{"escalate", "rbac.authorization.k8s.io", "clusterroles", "", ""}

// Granted are the rights that an installation with all its parts grants the operator.
func Granted(namespace string) []Right {
	return Manager{VLAN: true, Bridges: true, Elects: true, Webhook: true, OwnCertificate: true}.Needed(namespace)
}

func installRights(f Facts) []step.Step {
	switch lacks := f.Refused.Is; {
	case f.Refused.Unread != "":
		return one(unread("your rights to install", f.Refused.Unread))
	case len(lacks) > 0:
		return one(fail("install it as a cluster administrator", "you may not: %s", first(lacks)))
	}
	return one(ok("you may create all that an installation creates in namespace %s", f.Namespace))
}

// leftovers are CRDs that an installation would change, or that are others'.
func leftovers(f Facts) []step.Step {
	if f.CRDs.Unread != "" {
		return one(unread("CRDs of an earlier installation", f.CRDs.Unread))
	}
	var all []step.Step
	for name, want := range Own() {
		if got, there := f.CRDs.Is[name]; there {
			if s := compare(want, got, false); s.Outcome != step.OK {
				s.Of = "CustomResourceDefinition " + name
				s.Outcome, s.Do = step.Warn, "read docs/CHECK.md#leftovers before you install over it"
				all = append(all, s)
			}
		}
	}
	slices.SortFunc(all, func(a, b step.Step) int { return strings.Compare(a.Of, b.Of) })
	if len(all) > 0 {
		return all
	}
	if len(f.CRDs.Is) > 0 {
		return one(ok("CRDs of an earlier installation have the schema that this oooi knows"))
	}
	return one(ok("no CRD of an earlier installation is left"))
}
