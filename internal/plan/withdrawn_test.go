package plan_test

import (
	"testing"

	. "github.com/onsi/gomega"
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/endpoint"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/plan/input"
	"github.com/cldmnky/oooi/internal/plan/permission"
)

func TestWhoAdmitsAnInfraNoMore(t *testing.T) {
	grants := map[string]string{names.AnnotationAllowedNamespaces: "other, tenant"}
	others := map[string]string{names.AnnotationAllowedNamespaces: "other"}
	namespace := func(annotations map[string]string) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "clusters-c1", Annotations: annotations}}
	}
	cluster := func(annotations map[string]string) *hyperv1.HostedCluster {
		return &hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "c1", Annotations: annotations}}
	}
	going := namespace(others)
	going.DeletionTimestamp = &metav1.Time{}
	hcp := &hyperv1.HostedControlPlane{}
	for name, c := range map[string]struct {
		other     permission.OtherNamespace
		names     string // the HostedCluster that spec.hostedClusterRef names
		named     *hyperv1.HostedCluster
		withdrawn bool
	}{
		"the namespace grants":                              {permission.OtherNamespace{Namespace: namespace(grants)}, "", nil, false},
		"the namespace grants others":                       {permission.OtherNamespace{Namespace: namespace(others)}, "", nil, true},
		"the namespace says nothing":                        {permission.OtherNamespace{Namespace: namespace(nil)}, "", nil, true},
		"the namespace is gone":                             {permission.OtherNamespace{}, "", nil, false},
		"the namespace goes":                                {permission.OtherNamespace{Namespace: going}, "", nil, false},
		"the HostedCluster grants":                          {permission.OtherNamespace{Namespace: namespace(nil), HostedControlPlane: hcp, HostedCluster: cluster(grants)}, "c1", nil, false},
		"the HostedCluster grants others":                   {permission.OtherNamespace{Namespace: namespace(nil), HostedControlPlane: hcp, HostedCluster: cluster(others)}, "c1", nil, true},
		"the HostedCluster says nothing":                    {permission.OtherNamespace{Namespace: namespace(nil), HostedControlPlane: hcp, HostedCluster: cluster(nil)}, "", nil, true},
		"the HostedCluster does not, its namespace does":    {permission.OtherNamespace{Namespace: namespace(grants), HostedControlPlane: hcp, HostedCluster: cluster(nil)}, "c1", nil, false},
		"the HostedCluster is not there":                    {permission.OtherNamespace{Namespace: namespace(nil), HostedControlPlane: hcp}, "", nil, false},
		"nothing of the named control plane is there":       {permission.OtherNamespace{Namespace: namespace(nil)}, "c1", nil, false},
		"only the HostedCluster is there, and grants":       {permission.OtherNamespace{Namespace: namespace(nil)}, "c1", cluster(grants), false},
		"only the HostedCluster is there, and does not":     {permission.OtherNamespace{Namespace: namespace(nil)}, "c1", cluster(others), true},
		"nothing is there, and another HostedCluster named": {permission.OtherNamespace{Namespace: namespace(nil)}, "c2", nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			infra := &v1alpha1.Infra{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant", Name: "i"}}
			if c.names != "" {
				infra.Spec.HostedClusterRef = &v1alpha1.HostedClusterReference{Namespace: "clusters", Name: v1alpha1.ObjectName(c.names)}
			}
			NewWithT(t).Expect(permission.Withdrawn(input.Input{Infra: infra, HostedCluster: c.named}, c.other)).To(Equal(c.withdrawn))
		})
	}
}

// An Infra that names a namespace finds its HostedCluster through the HostedControlPlane, which a restore brings back later.
func TestAControlPlaneThatIsOnlyAwayIsAwaited(t *testing.T) {
	infra := &v1alpha1.Infra{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant", Name: "i"}}
	infra.Spec.InfraComponents.Proxy.ControlPlaneNamespace = "clusters-c1"
	there := permission.OtherNamespace{Namespace: &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "clusters-c1"}}}
	NewWithT(t).Expect(permission.Withdrawn(input.Input{Infra: infra}, there)).To(BeFalse())
}

// Without HostedControlPlanes in it, a shared control-plane namespace belongs to the oldest HostedCluster.
func TestWhoCameLaterIsAdmittedNoMore(t *testing.T) {
	infra := &v1alpha1.Infra{ObjectMeta: metav1.ObjectMeta{Namespace: "a-b", Name: "i"}}
	infra.Spec.HostedClusterRef = &v1alpha1.HostedClusterReference{Name: "c"}
	cluster := func(namespace, name string, made int64) *hyperv1.HostedCluster {
		return &hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, CreationTimestamp: metav1.Unix(made, 0)}}
	}
	there := func(name string) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}
	for name, c := range map[string]struct {
		made      int64
		other     permission.OtherNamespace
		written   v1alpha1.ObjectName
		withdrawn bool
	}{
		"the other is older":                              {10, permission.OtherNamespace{Namespace: there("a-b-c")}, "", true},
		"the other is newer":                              {30, permission.OtherNamespace{Namespace: there("a-b-c")}, "", false},
		"the other is older, and only ours is running":    {10, permission.OtherNamespace{Namespace: there("a-b-c"), HostedCluster: cluster("a-b", "c", 20)}, "", false},
		"the other is older, and another namespace meant": {10, permission.OtherNamespace{Namespace: there("a-b-c")}, "x", false},
	} {
		t.Run(name, func(t *testing.T) {
			in := input.Input{Infra: infra.DeepCopy(), HostedCluster: cluster("a-b", "c", 20), Sharing: []*hyperv1.HostedCluster{cluster("a", "b-c", c.made)}}
			in.Infra.Spec.InfraComponents.Proxy.ControlPlaneNamespace = c.written
			NewWithT(t).Expect(permission.Withdrawn(in, c.other)).To(Equal(c.withdrawn))
		})
	}
}

// Of two HostedClusters with one control-plane namespace, the later one's Infra does not wait there for the older one's control plane.
func TestWhoCameLaterWaitsForNoControlPlane(t *testing.T) {
	infra := &v1alpha1.Infra{ObjectMeta: metav1.ObjectMeta{Namespace: "a-b", Name: "i"}}
	infra.Spec.HostedClusterRef = &v1alpha1.HostedClusterReference{Name: "c"}
	cluster := func(namespace, name string, made int64) *hyperv1.HostedCluster {
		return &hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, CreationTimestamp: metav1.Unix(made, 0)}}
	}
	marked := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a-b-c", Labels: map[string]string{endpoint.ControlPlaneLabel: "true"}}}
	for made, want := range map[int64]finding.Severity{10: finding.Refused, 30: finding.Waiting} {
		in := input.Input{Infra: infra.DeepCopy(), HostedCluster: cluster("a-b", "c", 20), Sharing: []*hyperv1.HostedCluster{cluster("a", "b-c", made)}, MadeNamespace: marked}
		NewWithT(t).Expect(finding.Worst(permission.Check(in), v1alpha1.ConditionAccepted)).To(Equal(want), "the other was made at %d", made)
	}
}
