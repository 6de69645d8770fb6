package standin

import (
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// accounts are those of the control plane's pods that use the management cluster, each with its permissions there.
func (c Cluster) accounts() []client.Object {
	allow := func(group string, verbs []string, resources ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: verbs}
	}
	read, write := []string{"get", "list", "watch"}, []string{"get", "list", "watch", "patch"}
	var all []client.Object
	all = append(all, c.account(ignitionServer, allow("", write, "secrets"), allow("", []string{"create", "patch"}, "events"))...)
	if !c.hasMachines() {
		return all
	}
	all = append(all, c.account("machine-approver", allow("cluster.x-k8s.io", read, "machines"))...)
	return append(all, c.account("capi-provider",
		allow("cluster.x-k8s.io", write, "machines", "machines/status"),
		allow("kubevirt.io", write, "virtualmachineinstances", "virtualmachineinstances/status"))...)
}

func (c Cluster) account(name string, rules ...rbacv1.PolicyRule) []client.Object {
	return []client.Object{
		&corev1.ServiceAccount{ObjectMeta: c.meta(name)},
		&rbacv1.Role{ObjectMeta: c.meta(name), Rules: rules},
		&rbacv1.RoleBinding{ObjectMeta: c.meta(name),
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: name, Namespace: c.Namespace()}}},
	}
}
