package plan_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/component"
	"github.com/cldmnky/oooi/internal/nad"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/plan"
	"github.com/cldmnky/oooi/internal/plan/workload"
	"github.com/cldmnky/oooi/internal/render"
	"github.com/cldmnky/oooi/internal/testkit/golden"
)

// joined is the plan for a network from documentation: its findings, the derived networks, and the networks that each of our pods requests
// from Multus.
type joined struct {
	Findings []string                     `json:"findings,omitempty"`
	Networks map[string]map[string]string `json:"networks,omitempty"`
	Pods     map[string]string            `json:"pods,omitempty"`
}

// Each file is a NetworkAttachmentDefinition with the fields and values of the source that its first lines name.
func TestANetworkAsDocumentationHasIt(t *testing.T) {
	golden.Cases(t, "testdata/documented", []string{"in.yaml"}, func(t *testing.T, dir string) map[string]string {
		p, pods := onDocumented(t, dir)
		out := joined{Networks: map[string]map[string]string{}, Pods: pods}
		for _, f := range p.Findings {
			if f.Condition == v1alpha1.ConditionNetworkReady && f.Reason != "NoTimeSource" {
				out.Findings = append(out.Findings, f.Severity.String()+" "+f.Reason+": "+f.Message)
			}
		}
		for _, o := range readBack(t, p.Objects) {
			if n, ok := o.(*nad.NetworkAttachmentDefinition); ok {
				made := map[string]string{"config": n.Spec.Config}
				for key, value := range n.Annotations {
					if !strings.HasPrefix(key, names.Group+"/") {
						made[key] = value
					}
				}
				out.Networks[n.Namespace+"/"+n.Name] = made
			}
		}
		return map[string]string{"out.yaml": golden.YAML(t, out)}
	})
}

// onDocumented plans an Infra on a network from documentation, and its pods.
func onDocumented(t *testing.T, dir string) (plan.InfraPlan, map[string]string) {
	t.Helper()
	network := load(t, filepath.Join(dir, "in.yaml"))[0].(*nad.NetworkAttachmentDefinition)
	objects := slices.DeleteFunc(load(t, "testdata/nad-ovn-localnet/in.yaml"), func(o runtime.Object) bool {
		_, is := o.(*nad.NetworkAttachmentDefinition)
		return is
	})
	objects = append(objects, network)
	for _, o := range objects {
		if infra, ok := o.(*v1alpha1.Infra); ok {
			infra.Spec.NetworkConfig.NetworkAttachmentDefinition = v1alpha1.ObjectName(network.Name)
			infra.Spec.NetworkConfig.NetworkAttachmentNamespace = v1alpha1.ObjectName(network.Namespace)
		}
	}
	p := plan.Infra(objects.Inputs(settings())[0])
	return p, annotations(t, append(objects, readBack(t, p.Objects)...))
}

// annotations are the Multus requests of the pods of an Infra's children, by component.
func annotations(t *testing.T, objects render.Objects) map[string]string {
	t.Helper()
	attached := func(a v1alpha1.Attachment) *nad.NetworkAttachmentDefinition {
		for _, o := range objects {
			if n, ok := o.(*nad.NetworkAttachmentDefinition); ok && n.Name == string(a.NetworkAttachmentDefinition) && n.Namespace == string(a.NetworkAttachmentNamespace) {
				return n
			}
		}
		return nil
	}
	asked, infra := map[string]string{}, objects.Inputs(settings())[0].Infra
	for _, o := range objects {
		c, is := component.Of(o)
		if !is {
			continue
		}
		server := o.(component.Server)
		around := workload.Surroundings{Settings: settings(), Infra: infra, Instance: workload.Instance{NAD: attached(c.Written(server).Attachment)}, AllowedNamespace: "clusters-c1"}
		p := workload.Of(c.Name, workload.Child[component.Server]{Server: server, Surroundings: around})
		NewWithT(t).Expect(p.Frozen).To(BeFalse(), "%s: %v", c.Name, p.Findings)
		pod, _ := template(t, p)
		asked[string(c.Name)] = pod.Annotations[names.AnnotationNetworks]
	}
	return asked
}

// An older manager gave each component its own copy, with another network name. Pods on such a copy stay there, unchanged; a new component
// joins the copy that all share.
func TestAPodStaysOnTheCopyThatAnOlderManagerMade(t *testing.T) {
	g := NewWithT(t)
	objects := load(t, "testdata/nad-ovn-localnet-with-subnets/in.yaml")
	first := plan.Infra(objects.Inputs(settings())[0])
	for _, o := range readBack(t, first.Objects) {
		switch s := o.(type) { // DHCP is new
		case *v1alpha1.DNSServer:
			s.Spec.NetworkConfig.NetworkAttachmentDefinition = "c1-dns"
		case *v1alpha1.ProxyServer:
			s.Spec.NetworkConfig.NetworkAttachmentDefinition = "c1-proxy"
		default:
			continue
		}
		objects = append(objects, o)
	}
	next := plan.Infra(objects.Inputs(settings())[0])
	networks := map[string]string{}
	for _, o := range readBack(t, next.Objects) {
		if n, ok := o.(*nad.NetworkAttachmentDefinition); ok {
			networks[n.Name] = n.Spec.Config
		}
	}
	const older = `{"cniVersion":"0.4.0","name":"clusters.c1","netAttachDefName":"clusters/%s","physicalNetworkName":"physnet1","topology":"localnet","type":"ovn-k8s-cni-overlay","vlanID":100}`
	g.Expect(networks).To(And(HaveLen(3), HaveKey("c1-oooi"),
		HaveKeyWithValue("c1-dns", strings.Replace(older, "%s", "c1-dns", 1)), HaveKeyWithValue("c1-proxy", strings.Replace(older, "%s", "c1-proxy", 1))))
	for _, o := range readBack(t, next.Objects) {
		switch s := o.(type) {
		case *v1alpha1.DHCPServer:
			g.Expect(s.Spec.NetworkConfig.NetworkAttachmentDefinition).To(BeEquivalentTo("c1-oooi"))
		case *v1alpha1.DNSServer:
			g.Expect(s.Spec.NetworkConfig.NetworkAttachmentDefinition).To(BeEquivalentTo("c1-dns"))
		}
	}
}
