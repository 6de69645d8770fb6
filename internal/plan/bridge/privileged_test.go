package bridge_test

import (
	"testing"

	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cldmnky/oooi/internal/dpf"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/plan/bridge"
)

// It is what openshift-dpf's manifests/post-installation/dpu-services-scc.yaml has users create.
func TestPodsOfDPFGetTheSCCThatTheyNeed(t *testing.T) {
	in := load(t, "testdata/existing/in.yaml")
	in.Templates.Configs = []dpf.DPFOperatorConfig{{ObjectMeta: metav1.ObjectMeta{Namespace: "nvidia", Name: "config"}}}
	b := bridge.Of(in).Approve.Privileged
	g := NewWithT(t)
	g.Expect(b.Name).To(Equal("dpf-system-scc-privileged"))
	g.Expect(b.RoleRef).To(Equal(rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "system:openshift:scc:privileged"}))
	g.Expect(b.Subjects).To(ConsistOf(rbacv1.Subject{APIGroup: "rbac.authorization.k8s.io", Kind: "Group", Name: "system:serviceaccounts:nvidia"}))
	g.Expect(b.Labels).To(Equal(map[string]string{names.LabelManagedBy: "oooi", names.LabelBridge: "b1", names.LabelBridgeNamespace: "dpf"}))
	for want, configs := range map[string][]dpf.DPFOperatorConfig{"DPFOperatorConfigNotFound": nil, "DPFOperatorConfigNotUnique": append(in.Templates.Configs, in.Templates.Configs...)} {
		in.Templates.Configs = configs
		p := bridge.Of(in)
		g.Expect(p.Approve).To(HaveField("Privileged", BeNil()), "CSRs are approved all the same")
		g.Expect(p.Findings).To(ContainElement(And(HaveField("Condition", "PrivilegedPodsAllowed"), HaveField("Reason", want), HaveField("Severity", finding.Waiting))))
	}
	in.Served.DPF, in.DPUCluster = false, nil
	g.Expect(bridge.Of(in).Approve).To(BeNil(), "without DPF nothing needs it")
}

func TestWhatIsSaidOfTheBindingOfPrivilegedPods(t *testing.T) {
	for want, grant := range map[string]bridge.Grant{
		"Connecting":      {},
		"Granted":         {There: true, Ours: true, Grants: true},
		"GrantedByOthers": {There: true, Grants: true},
		"NameTaken":       {There: true},
		"GrantRefused":    {There: true, Ours: true, Refused: "no such right"},
	} {
		f := bridge.Privileged(grant, &rbacv1.ClusterRoleBinding{Subjects: []rbacv1.Subject{{Name: "system:serviceaccounts:nvidia"}}})
		NewWithT(t).Expect(f).To(And(HaveField("Condition", "PrivilegedPodsAllowed"), HaveField("Reason", want), HaveField("Message", ContainSubstring("dpf-system-scc-privileged"))))
		NewWithT(t).Expect(f.Severity == finding.Warning).To(Equal(grant.Grants), want)
	}
}
