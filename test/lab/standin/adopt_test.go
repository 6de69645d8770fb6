package standin

import (
	"slices"
	"strings"
	"testing"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ofOthers is a HostedCluster for machines that somebody else provisions.
func ofOthers(s Strategy) *hyperv1.HostedCluster {
	services := published(s).services()
	slices.Reverse(services)
	return &hyperv1.HostedCluster{
		ObjectMeta: metav1.ObjectMeta{Name: "dpu1", Namespace: HostedClusterNamespace, UID: "1", Labels: map[string]string{"made-by": "others"}},
		Spec:       hyperv1.HostedClusterSpec{Platform: hyperv1.PlatformSpec{Type: hyperv1.NonePlatform}, DNS: hyperv1.DNSSpec{BaseDomain: testCluster.BaseDomain}, Services: services},
	}
}

func TestAnAdoptedHostedClusterIsPublishedAsItsSpecSays(t *testing.T) {
	for _, s := range Strategies() {
		c, err := Cluster{Name: testCluster.Name, IngressDomain: testCluster.IngressDomain}.as(ofOthers(s))
		if err != nil || c.Strategy != s {
			t.Errorf("%s is read as %q: %v", s, c.Strategy, err)
		}
		if s == NodePort && c.NodeAddress != testCluster.NodeAddress {
			t.Errorf("node ports are on %q, want %s", c.NodeAddress, testCluster.NodeAddress)
		}
		if c.LBAddress != "" {
			t.Errorf("%s: the load balancer's address is known to be %s", s, c.LBAddress)
		}
	}
	four := ofOthers(LoadBalancer).Spec.Services
	for _, services := range [][]hyperv1.ServicePublishingStrategyMapping{four[1:], append(slices.Clone(four), hyperv1.ServicePublishingStrategyMapping{Service: hyperv1.OVNSbDb})} {
		odd := ofOthers(LoadBalancer)
		odd.Spec.Services = services
		if _, err := (Cluster{}).as(odd); err == nil || !strings.Contains(err.Error(), "dpu1") {
			t.Errorf("%d services are taken for a way to publish four: %v", len(services), err)
		}
	}
}

// Only the product approves certificates of machines that HyperShift does not provision.
func TestNobodyApprovesCertificatesOnPlatformNone(t *testing.T) {
	ours, others := testCluster, Cluster{adopted: ofOthers(LoadBalancer), Name: "dpu1"}
	for c, want := range map[*Cluster]bool{&ours: true, &others: false} {
		var all []string
		for _, p := range c.deployments() {
			all = append(all, p.name)
		}
		for _, o := range c.accounts() {
			all = append(all, o.GetName())
		}
		for _, name := range []string{"machine-approver", "capi-provider"} {
			if has := slices.Contains(all, name); has != want {
				t.Errorf("%s of %s runs: %v, want %v", name, c.Name, has, want)
			}
		}
	}
}

// HyperShift does so in hostedcluster_controller.go.
func TestLabelsOfAHostedClusterGoWhereHyperShiftCopiesThem(t *testing.T) {
	c := Cluster{Name: "dpu1", adopted: ofOthers(LoadBalancer)}
	beside := c.kubeconfigBeside(nil)
	if beside.Labels["made-by"] != "others" || len(beside.OwnerReferences) != 1 || c.hostedControlPlane().Labels["made-by"] != "others" {
		t.Errorf("kubeconfig %+v, HostedControlPlane %+v", beside.ObjectMeta, c.hostedControlPlane().ObjectMeta)
	}
	const controller = "hypershift-operator/controllers/hostedcluster/hostedcluster_controller.go"
	h := hypershift(t)
	if !strings.Contains(string(h.text(controller)), "dest.Labels = hcluster.Labels") {
		t.Error("HyperShift does not copy labels onto the kubeconfig's Secret")
	}
	if got := h.constant(controller, "HostedClusterFinalizer"); got != finalizer {
		t.Errorf("HyperShift's finalizer is %s, ours %s", got, finalizer)
	}
}
