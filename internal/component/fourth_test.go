package component_test

import (
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/component"
	"github.com/cldmnky/oooi/internal/ipam"
	"github.com/cldmnky/oooi/internal/plan"
	"github.com/cldmnky/oooi/internal/plan/input"
	"github.com/cldmnky/oooi/internal/plan/permission"
	"github.com/cldmnky/oooi/internal/render"
	"github.com/cldmnky/oooi/internal/status"
)

// A fourth component, here an NTP relay, is described once, and gets all that the three have. Its Server is a DNSServer.
func TestAFourthComponentIsRangedOver(t *testing.T) {
	before := component.All
	t.Cleanup(func() { component.All = before })
	fourth := before[1]
	fourth.Name, fourth.Ready = "ntp", "NTPReady"
	fourth.Wanted = func(v1alpha1.InfraComponents) component.Wanted {
		return component.Wanted{Enabled: true, ServerIP: "192.168.100.9", Images: map[string]string{"image": "example.com/ntp"}}
	}
	component.All = append(slices.Clone(before), fourth)

	infra, at := &v1alpha1.Infra{}, netip.MustParseAddr("192.168.100.9")
	infra.Namespace, infra.Name = "clusters", "c1"
	server := &v1alpha1.DNSServer{Status: v1alpha1.DNSServerStatus{Conditions: []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: "PodNotReady"}}}}
	server.Namespace, server.Name, server.Spec.NetworkConfig.ServerIP, server.Spec.NetworkConfig.NetworkAttachmentDefinition = "clusters", "c1-ntp", "192.168.100.9", "own"
	children := input.Children{"ntp": server}
	assigned := ipam.Assign(ipam.Request{CIDR: netip.MustParsePrefix("192.168.100.0/24"), Enabled: input.SwitchedOn(infra.Spec.InfraComponents)})
	read := render.Objects{infra, server}.Inputs(input.Settings{})[0].Children
	stands := status.Infra(infra, plan.InfraPlan{}, children, status.Outcome{}, time.Now())

	for place, ranges := range map[string]bool{
		"ipam gives it an address":             assigned.Addresses["ntp"].IsValid() && !assigned.Pool.Contains(assigned.Addresses["ntp"]),
		"input knows that it is on":            input.SwitchedOn(infra.Spec.InfraComponents)["ntp"],
		"input reads its address of the Infra": input.Written(infra)["ntp"] == at,
		"input reads its address of its child": children.Addresses()["ntp"] == at,
		"input reads the network of its child": children.Network("c1-ntp") == "own",
		"permission judges its image":          permission.WrittenImages(infra)["infraComponents.ntp.image"] == "example.com/ntp",
		"render reads its child":               read["ntp"] == component.Server(server),
		"status hands its Ready up":            meta.IsStatusConditionFalse(stands.Conditions, "NTPReady"),
		"status is about what does not serve":  status.PatienceEnds(stands, time.Now()) > 0,
	} {
		NewWithT(t).Expect(ranges).To(BeTrue(), place)
	}
}

// What a component and its kind both say is the same.
func TestAComponentIsItsKind(t *testing.T) {
	g := NewWithT(t)
	for _, c := range component.All {
		server := c.New()
		of, is := component.Of(server)
		g.Expect(is).To(BeTrue())
		g.Expect(of.Name).To(Equal(c.Name))
		_, want := c.Status(server, component.Report{Conditions: []metav1.Condition{{Type: "Ready"}}, Instances: []v1alpha1.Instance{{Workload: "w"}}})
		g.Expect(want).To(And(HaveField("Conditions", HaveLen(1)), HaveField("Instances", HaveLen(1))), c.Kind)
	}
}

// No code can range over manifests.
func TestManifestsNameEveryComponent(t *testing.T) {
	for _, name := range []string{"rbac/vlan_role.yaml", "webhook/validating.yaml", "crd/kustomization.yaml"} {
		text, err := os.ReadFile("../../config/" + name)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range component.All {
			if !strings.Contains(string(text), c.Resource) {
				t.Errorf("config/%s does not name %s", name, c.Resource)
			}
		}
	}
}
