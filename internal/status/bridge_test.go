package status

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/observe"
	"github.com/cldmnky/oooi/internal/plan/bridge"
)

func TestAnEndSaysNothingOfWhatIsGone(t *testing.T) {
	b := &dpuv1.DPUHCPBridge{ObjectMeta: metav1.ObjectMeta{Name: "b1", Namespace: "dpf", UID: "u1"}}
	own := []string{dpuv1.ConditionDPUClusterBound, dpuv1.ConditionKubeconfigInjected, dpuv1.ConditionMetalLBConfigured, dpuv1.ConditionBlueFieldContainerImageAvailable, dpuv1.ConditionReady}
	for _, kind := range own {
		b.Status.Conditions = append(b.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: "Before"})
	}
	for _, m := range bridge.Mirrored {
		b.Status.Conditions = append(b.Status.Conditions, metav1.Condition{Type: m.Ours, Status: metav1.ConditionTrue, Reason: "Before"})
	}
	hc := &hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{
		names.LabelManagedBy: names.ManagedBy, names.LabelBridge: "b1", names.LabelBridgeNamespace: "dpf", names.LabelOwnerUID: "u1",
	}}}
	hc.Status.Conditions = []metav1.Condition{{Type: string(hyperv1.HostedClusterAvailable), Status: metav1.ConditionFalse, Reason: "EtcdDown"}}
	told := func(read bool, hc *hyperv1.HostedCluster) (all []string) {
		in := bridge.Input{Bridge: b, HostedCluster: hc}
		for _, c := range Ending(in, read, metav1.ConditionFalse, "InProgress", "it goes", time.Now()).Conditions {
			all = append(all, c.Type+"="+c.Reason)
		}
		return all
	}
	g := NewWithT(t)
	ends := []any{"HostedClusterCleanup=InProgress", "CSRAutoApprovalActive=Deleting", "Ready=Deleting"}
	still := func(says string) OmegaMatcher {
		return And(HaveLen(len(own)+len(bridge.Mirrored)+2), ContainElements(append(ends, "KubeconfigInjected=Before", "HostedClusterAvailable="+says)...))
	}
	g.Expect(told(true, hc)).To(still("EtcdDown"))
	g.Expect(told(true, hc)).To(ContainElement("EtcdAvailable=NotReported"))
	g.Expect(told(true, nil)).To(ConsistOf(append(ends, "DPUClusterBound=Before", "BlueFieldContainerImageAvailable=Before")...))
	g.Expect(told(false, nil)).To(still("Before"))
	g.Expect(b.Status.Conditions).To(HaveLen(len(own)+len(bridge.Mirrored)), "what was read is not changed")
}

func TestApprovalStaysAsItIsUntilTheHostedClusterIsLookedInto(t *testing.T) {
	watching := metav1.Condition{Type: dpuv1.ConditionCSRAutoApprovalActive, Status: metav1.ConditionTrue, Reason: "Watching", Message: "as before"}
	for name, c := range map[string]struct {
		before []metav1.Condition
		reason string
		want   metav1.ConditionStatus
	}{
		"the first time":              {nil, "Connecting", metav1.ConditionFalse},
		"after a restart":             {[]metav1.Condition{watching}, "Connecting", metav1.ConditionTrue},
		"what is found is said":       {[]metav1.Condition{watching}, "HostedClusterUnreachable", metav1.ConditionFalse},
		"what was wrong is not known": {[]metav1.Condition{{Type: watching.Type, Status: metav1.ConditionFalse, Reason: "NotGranted"}}, "Connecting", metav1.ConditionFalse},
	} {
		t.Run(name, func(t *testing.T) {
			b := &dpuv1.DPUHCPBridge{Status: dpuv1.DPUHCPBridgeStatus{Conditions: c.before}}
			out := Outcome{Findings: []finding.Finding{finding.Wait(watching.Type, c.reason).Say("of this pass")}}
			got := Bridge(observe.Bridge{Input: bridge.Input{Bridge: b}}, bridge.Plan{Approve: &bridge.Approval{}}, out, time.Now())
			NewWithT(t).Expect(got.Conditions).To(ContainElement(And(HaveField("Type", watching.Type), HaveField("Status", c.want))))
		})
	}
}

func TestApprovalSaysWhyThereIsNone(t *testing.T) {
	for want, findings := range map[string][]finding.Finding{
		"WaitingForKubeconfig":     nil,
		"HostedClusterTerminating": {finding.Wait(dpuv1.ConditionCSRAutoApprovalActive, "HostedClusterTerminating").Say("it goes")},
		"DPFNotInstalled":          {finding.Wait(dpuv1.ConditionDPUClusterBound, "DPFNotInstalled").Say("install it")},
	} {
		t.Run(want, func(t *testing.T) {
			got := Bridge(observe.Bridge{Input: bridge.Input{Bridge: &dpuv1.DPUHCPBridge{}}}, bridge.Plan{}, Outcome{Findings: findings}, time.Now())
			NewWithT(t).Expect(got.Conditions).To(ContainElement(And(HaveField("Type", dpuv1.ConditionCSRAutoApprovalActive), HaveField("Reason", want))))
		})
	}
}

func TestPrivilegedPodsAreSaidApartFromReady(t *testing.T) {
	const kind = dpuv1.ConditionPrivilegedPodsAllowed
	granted := metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: "Granted", Message: "as before"}
	reported := func(reason string) []metav1.Condition {
		return []metav1.Condition{{Type: kind, Status: metav1.ConditionFalse, Reason: reason, Message: "as before"}}
	}
	for name, c := range map[string]struct {
		before []metav1.Condition
		grant  bridge.Grant
		want   string
	}{
		"the first time":            {nil, bridge.Grant{}, "Connecting"},
		"after a restart":           {[]metav1.Condition{granted}, bridge.Grant{}, "Granted"},
		"others' after a restart":   {reported("GrantedByOthers"), bridge.Grant{}, "GrantedByOthers"},
		"foreign after a restart":   {reported("NameTaken"), bridge.Grant{}, "NameTaken"},
		"refused after a restart":   {reported("GrantRefused"), bridge.Grant{}, "GrantRefused"},
		"what lacked is there":      {reported("DPFOperatorConfigNotFound"), bridge.Grant{}, "Connecting"},
		"it is there":               {nil, bridge.Grant{There: true, Ours: true, Grants: true}, "Granted"},
		"it is refused":             {[]metav1.Condition{granted}, bridge.Grant{Refused: "no"}, "GrantRefused"},
		"a foreign one is replaced": {reported("NameTaken"), bridge.Grant{There: true, Ours: true, Grants: true}, "Granted"},
	} {
		t.Run(name, func(t *testing.T) {
			b := &dpuv1.DPUHCPBridge{ObjectMeta: metav1.ObjectMeta{Name: "b1", Namespace: "dpf", UID: "u1"}, Status: dpuv1.DPUHCPBridgeStatus{Conditions: c.before}}
			hc := &hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{
				names.LabelManagedBy: names.ManagedBy, names.LabelBridge: "b1", names.LabelBridgeNamespace: "dpf", names.LabelOwnerUID: "u1",
			}}}
			hc.Status.Conditions = []metav1.Condition{{Type: string(hyperv1.HostedClusterAvailable), Status: metav1.ConditionTrue, Reason: "AsExpected"}}
			out := Outcome{Findings: []finding.Finding{finding.Warn(dpuv1.ConditionBlueFieldContainerImageAvailable, "Mapped").Say("it is"), bridge.Privileged(c.grant, &rbacv1.ClusterRoleBinding{Subjects: []rbacv1.Subject{{Name: "system:serviceaccounts:dpf"}}})}}
			p := bridge.Plan{Approve: &bridge.Approval{}, Inject: &bridge.Injection{}}
			NewWithT(t).Expect(Bridge(observe.Bridge{Input: bridge.Input{Bridge: b, HostedCluster: hc}}, p, out, time.Now()).Conditions).To(ContainElements(
				And(HaveField("Type", kind), HaveField("Reason", c.want)),
				And(HaveField("Type", dpuv1.ConditionReady), HaveField("Status", metav1.ConditionTrue)))) // DPUs join all the same
		})
	}
}
