package diagnosecli_test

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/controller"
	"github.com/cldmnky/oooi/internal/diagnose"
	"github.com/cldmnky/oooi/internal/diagnosecli"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/step"
	"github.com/cldmnky/oooi/internal/testkit/envtest"
)

const canary = "canary-of-a-token"

// ground is a management cluster with an Infra, its lease, and a Secret of Ignition's.
type ground struct {
	Gomega
	*envtest.Cluster
	t *testing.T
}

func newGround(t *testing.T) ground {
	t.Helper()
	g := ground{NewWithT(t), nil, t}
	cluster, err := envtest.Start(false)
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { g.Expect(cluster.Stop()).To(Succeed()) })
	g.Cluster = cluster
	return g
}

func (g ground) as(user string) client.Client {
	config := rest.CopyConfig(g.Admin)
	config.Impersonate.UserName = user
	api, err := client.New(config, client.Options{Scheme: controller.Scheme()})
	g.Expect(err).NotTo(HaveOccurred())
	return api
}

func (g ground) create(all ...client.Object) {
	g.t.Helper()
	for _, o := range all {
		g.Expect(g.as("").Create(g.t.Context(), o)).To(Succeed())
	}
}

func infra() *v1alpha1.Infra {
	i := &v1alpha1.Infra{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "c1"}}
	i.Spec.HostedClusterRef = &v1alpha1.HostedClusterReference{Name: "c1"}
	i.Spec.NetworkConfig.CIDR, i.Spec.NetworkConfig.NetworkAttachmentDefinition = "192.168.100.0/24", "vlan100"
	return i
}

// event is one on a Secret of Ignition's.
func event(name, reason, kind string) *corev1.Event {
	return &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-c1", Name: name}, Reason: reason, Type: kind,
		InvolvedObject: corev1.ObjectReference{Kind: "Secret", Namespace: "clusters-c1", Name: "token-c1-91bf131f"}}
}

func TestWhatAWorkerDependsOnIsRead(t *testing.T) {
	g, ctx := newGround(t), t.Context()
	second := infra()
	second.Name, second.Spec.NetworkConfig.NetworkAttachmentDefinition = "c1-gpu", "vlan200"
	g.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "clusters"}}, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "clusters-c1"}}, infra(), second,
		&v1alpha1.DHCPLease{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "c1-dhcp-192.168.100.60", Labels: map[string]string{names.LabelInfra: "c1"}},
			Spec: v1alpha1.DHCPLeaseSpec{IP: "192.168.100.60", MAC: "52:54:00:00:01:01", ServerRef: v1alpha1.ServerReference{Name: "c1-dhcp"}, State: v1alpha1.LeaseBound, DurableUntilTime: metav1.NowMicro()}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-c1", Name: "token-c1-91bf131f"}, Data: map[string][]byte{"token": []byte(canary)}},
		event("refused", "GetPayloadFailed", corev1.EventTypeWarning), event("answered", "GetPayload", corev1.EventTypeNormal), event("mounted", "FailedMount", corev1.EventTypeWarning),
		&networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-c1", Name: "same-namespace"}})

	all, meant, err := diagnosecli.Infras(ctx, g.as(""), types.NamespacedName{Namespace: "clusters", Name: "c1"})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(all).To(ConsistOf(HaveField("Name", "c1"), HaveField("Name", "c1-gpu")))
	g.Expect(meant).To(ConsistOf(HaveField("Name", "c1")))
	f := diagnosecli.See(ctx, g.as(""), &meant[0], time.Now())
	g.Expect(f.Leases).To(And(HaveField("Unread", BeEmpty()), HaveField("Is", HaveLen(1))))
	g.Expect(f.Policies.Is).To(ConsistOf("same-namespace"))
	g.Expect(f.Tokens.Is).To(ConsistOf(HaveField("Name", "token-c1-91bf131f")))
	g.Expect(f.Refusals.Is).To(ConsistOf(HaveField("Name", "refused")))
	g.Expect(f.DHCP).To(Equal(step.Read[*v1alpha1.DHCPServer]{}), "none is there")
	g.Expect(f.Machines.Unread).To(Equal("the cluster does not serve them"))
	g.Expect(f.Hosted.Unread).To(Equal("HostedCluster clusters/c1 does not exist"))
	g.Expect(fmt.Sprintf("%+v", f)).NotTo(ContainSubstring(canary))
	g.Expect(fmt.Sprint(diagnose.Infra(f))).NotTo(ContainSubstring(canary))

	_, meant, err = diagnosecli.Infras(ctx, g.as(""), types.NamespacedName{Namespace: "clusters", Name: "worker-1"})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(meant).To(HaveLen(2), "either may have a worker of that name")
}

func TestWhichRightIsMissingIsSaid(t *testing.T) {
	g, ctx := newGround(t), t.Context()
	one := infra()
	g.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "clusters"}}, one,
		&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "leases"}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: []string{"dhcpleases"}, Verbs: []string{"list"}}}},
		&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "leases"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "leases"}, Subjects: []rbacv1.Subject{{Kind: "User", Name: "reader"}}})
	_, _, err := diagnosecli.Infras(ctx, g.as("reader"), client.ObjectKeyFromObject(one))
	g.Expect(err).To(MatchError(ContainSubstring(`cannot list resource "infras"`)))

	var f diagnose.Facts
	g.Eventually(func() string { // RBAC is cached
		f = diagnosecli.See(ctx, g.as("reader"), one, time.Now())
		return f.Leases.Unread
	}).Should(BeEmpty())
	g.Expect(f.HostedCluster.Unread).To(Equal("you may not get hostedclusters.hypershift.openshift.io in namespace clusters"))
	g.Expect(f.DHCP.Unread).To(Equal("you may not get dhcpservers.hostedcluster.densityops.com in namespace clusters"))
	g.Expect(f.NodePools.Unread).To(Equal("you may not list nodepools.hypershift.openshift.io in namespace clusters"))
	g.Expect(f.Networks.Unread).To(Equal("you may not list network-attachment-definitions.k8s.cni.cncf.io in all namespaces"))
	g.Expect(f.Tokens.Unread).To(Equal("you may not list secrets in namespace clusters-c1"))
	g.Expect(f.Refusals.Unread).To(Equal("you may not list events in namespace clusters-c1"))
	g.Expect(f.Policies.Unread).To(Equal("you may not list networkpolicies.networking.k8s.io in namespace clusters-c1"))
	g.Expect(f.Hosted.Unread).To(Equal("its HostedCluster is not read: " + f.HostedCluster.Unread))
}
