package bridge

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rbacv1 "k8s.io/api/rbac/v1"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/names"
)

// The pods of DPF's services need OpenShift's SCC privileged in the hosted cluster. The name of the binding is that of the manifest that
// users apply by hand (openshift-dpf, manifests/post-installation/dpu-services-scc.yaml), so that theirs counts.
const (
	privilegedName = "dpf-system-scc-privileged"
	privilegedRole = "system:openshift:scc:privileged"
)

// privileged is the binding for the service accounts of DPF's namespace, which has the same name in the hosted cluster. It has no UID of the
// bridge's, which changes with a restore: the hosted cluster has one bridge.
func (in Input) privileged(p *Plan) *rbacv1.ClusterRoleBinding {
	config, missing := in.onlyConfig(dpuv1.ConditionPrivilegedPodsAllowed)
	if config == nil {
		p.Find(missing...)
		return nil
	}
	return &rbacv1.ClusterRoleBinding{
		TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRoleBinding"},
		ObjectMeta: metav1.ObjectMeta{Name: privilegedName, Labels: map[string]string{
			names.LabelManagedBy: names.ManagedBy, names.LabelBridge: in.Bridge.Name, names.LabelBridgeNamespace: in.Bridge.Namespace,
		}},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: privilegedRole},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "system:serviceaccounts:" + config.Namespace}},
	}
}

// Grant is what is known of the binding in the hosted cluster.
type Grant struct {
	// There: it was seen. Ours: it has the bridge's labels. Grants: it grants what is wanted.
	There, Ours, Grants bool
	// Refused is how the hosted cluster refused our request; empty if it did not.
	Refused string
}

// GrantBy says what a binding is; live is nil if there is none.
func GrantBy(live, want *rbacv1.ClusterRoleBinding) Grant {
	if live == nil {
		return Grant{}
	}
	ours := true
	for key, value := range want.Labels {
		ours = ours && live.Labels[key] == value
	}
	return Grant{There: true, Ours: ours, Grants: live.RoleRef == want.RoleRef && equality.Semantic.DeepEqual(live.Subjects, want.Subjects)}
}

// Privileged says whether pods of DPF's services may be privileged in the hosted cluster, as a binding is to let them. DPUs join it all the same.
func Privileged(g Grant, want *rbacv1.ClusterRoleBinding) finding.Finding {
	const kind = dpuv1.ConditionPrivilegedPodsAllowed
	switch {
	case g.Refused != "":
		return finding.Fail(kind, grantRefused).Say("the hosted cluster refuses ClusterRoleBinding %s, which pods of DPF's services need; the operator tries again: %s", privilegedName, g.Refused)
	case g.There && !g.Ours && !g.Grants:
		return finding.Fail(kind, nameTaken).Say("ClusterRoleBinding %s in the hosted cluster is not this bridge's, which does not touch it, and does not give %s to group %s alone: correct or delete it", privilegedName, privilegedRole, want.Subjects[0].Name)
	case g.There && !g.Ours:
		return finding.Warn(kind, "GrantedByOthers").Say("ClusterRoleBinding %s is not this bridge's, which does not touch it", privilegedName)
	case g.There && g.Grants:
		return finding.Warn(kind, "Granted").Say("ClusterRoleBinding %s gives %s to group %s", privilegedName, privilegedRole, want.Subjects[0].Name)
	}
	return finding.Wait(kind, "Connecting").Say("ClusterRoleBinding %s in the hosted cluster is not yet as it has to be", privilegedName)
}

// grantRefused is the reason of a finding about a binding that the hosted cluster refuses.
const grantRefused = "GrantRefused"

// WasSeen says whether a reason of PrivilegedPodsAllowed tells what the hosted cluster has, and not what is missing to look there.
func WasSeen(reason string) bool {
	return slices.Contains([]string{"Granted", "GrantedByOthers", nameTaken, grantRefused}, reason)
}
