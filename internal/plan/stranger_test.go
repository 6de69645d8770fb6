package plan_test

import (
	"maps"
	"os"
	"strings"
	"testing"

	"github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/cldmnky/oooi/internal/plan"
	"github.com/cldmnky/oooi/internal/plan/input"
	"github.com/cldmnky/oooi/internal/testkit/stranger"
)

// victims are Infras that a stranger may want to disturb, before they have children and while they serve.
func victims(t *testing.T) map[string]input.Input {
	t.Helper()
	all := map[string]input.Input{
		"with an IP endpoint": load(t, "testdata/nodeport-with-ip/in.yaml").Inputs(settings())[0],
		"with *.apps":         publishing(t),
	}
	two := all["with an IP endpoint"]
	two.Infra = two.Infra.DeepCopy()
	two.Infra.Spec.InfraComponents.DNS.Replicas = 2
	all["with two name servers"] = two
	for name, in := range maps.Clone(all) {
		in.Infra.CreationTimestamp = metav1.Unix(10, 0)
		in.Children = input.Children{}
		in.Neighbours = nil
		all[name] = in
		in.Children = children(t, plan.Infra(in))
		in.Infra = in.Infra.DeepCopy()
		in.Infra.Status.Addresses = plan.Infra(in).Addresses
		gomega.NewWithT(t).Expect(in.Infra.Status.Addresses).To(gomega.HaveLen(len(input.Instances(in.Infra.Spec.InfraComponents))), name)
		all[name+", serving"] = in
	}
	return all
}

// publishing is an Infra with *.apps whose hosted cluster has an external IP.
func publishing(t *testing.T) input.Input {
	t.Helper()
	text, err := os.ReadFile("testdata/apps/external-ip-changes/case.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var c appsCase
	if err := yaml.UnmarshalStrict(text, &c); err != nil {
		t.Fatal(err)
	}
	return c.input(t)
}

// ground has the names of the victims' objects and the stranger's.
var ground = stranger.Ground{Namespace: "clusters", Cluster: "c1", ControlPlane: "clusters-c1", Network: "vlan100", Own: "tenant", Alike: "cluster"}

// A user without a reference grant to a network, who writes Infras and children, changes nothing for the Infras on that network.
func TestAStrangerToANetworkChangesNothing(t *testing.T) {
	ways := ground.Ways(t)
	for name, victim := range victims(t) {
		alone := said(t, victim)
		gomega.NewWithT(t).Expect(alone).NotTo(gomega.ContainSubstring("frozen: true"), name)
		for way, attack := range ways {
			t.Run(name+"/"+way, func(t *testing.T) {
				n := ground.Neighbour(victim.NAD)
				attack(&n)
				attacked := victim
				attacked.Neighbours = []input.Neighbour{n}
				gomega.NewWithT(t).Expect(said(t, attacked)).To(gomega.Equal(alone))

				theirs := input.Input{Settings: victim.Settings, Infra: n.Infra, NAD: n.NAD, Children: n.Children}
				unaware := said(t, theirs)
				theirs.Neighbours = []input.Neighbour{{Infra: victim.Infra, NAD: victim.NAD, HostedCluster: victim.HostedCluster, Children: victim.Children}}
				gomega.NewWithT(t).Expect(said(t, theirs)).To(gomega.Equal(unaware), "the stranger hears nothing of it")
			})
		}
	}
	gomega.NewWithT(t).Expect(ways).To(gomega.HaveLen(55))
}

func said(t *testing.T, in input.Input) string {
	t.Helper()
	return strings.Join(documents(t, in.Infra, plan.Infra(in)), "---\n")
}
