package plan

import (
	"testing"

	. "github.com/onsi/gomega"
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/nad"
	"github.com/cldmnky/oooi/internal/names"
)

// onVLAN is an Infra's view with NodePools on its VLAN that ask for nodes.
func onVLAN(of ...map[string]string) *view {
	infra := &v1alpha1.Infra{}
	infra.Namespace, infra.Spec.NetworkConfig.NetworkAttachmentDefinition = "clusters", "vlan100"
	in := Input{Infra: infra, NAD: &nad.NetworkAttachmentDefinition{}, HostedCluster: &hyperv1.HostedCluster{}}
	for _, nodes := range of {
		p := hyperv1.NodePool{}
		p.Spec.Platform.Kubevirt = &hyperv1.KubevirtNodePoolPlatform{NodeSelector: nodes, AdditionalNetworks: []hyperv1.KubevirtNetwork{{Name: "clusters/vlan100"}}}
		in.NodePools = append(in.NodePools, p)
	}
	return &view{Input: in}
}

func TestOurPodsGoWhereNodePoolsThatAgreeSay(t *testing.T) {
	a, b := map[string]string{"vlan": "yes", "rack": "a"}, map[string]string{"rack": "b"}
	for name, c := range map[string]struct {
		pools  []map[string]string
		change func(*view)
		nodes  string
		warned bool
	}{
		"one":                      {pools: []map[string]string{a}, nodes: "rack=a,vlan=yes"},
		"two that agree":           {pools: []map[string]string{a, {"rack": "a", "vlan": "yes"}}, nodes: "rack=a,vlan=yes"},
		"two that differ":          {pools: []map[string]string{a, b}, warned: true},
		"one that asks for none":   {pools: []map[string]string{a, b, nil}},
		"none":                     {},
		"one on another VLAN":      {pools: []map[string]string{a, b}, change: func(v *view) { v.NodePools[1].Spec.Platform.Kubevirt.AdditionalNetworks[0].Name = "clusters/other" }, nodes: "rack=a,vlan=yes"},
		"one of bare metal":        {pools: []map[string]string{a, nil}, change: func(v *view) { v.NodePools[1].Spec.Platform.Kubevirt = nil }, nodes: "rack=a,vlan=yes"},
		"bare metal alone":         {pools: []map[string]string{a}, change: func(v *view) { v.NodePools[0].Spec.Platform.Kubevirt = nil }},
		"two, and a resource":      {pools: []map[string]string{a, b}, change: func(v *view) { v.NAD.Annotations = map[string]string{nad.ResourceName: "example.com/br"} }},
		"two, and what is written": {pools: []map[string]string{a, b}, change: everywhereWritten},
		"one, and what is written": {pools: []map[string]string{a}, change: everywhereWritten},
	} {
		t.Run(name, func(t *testing.T) {
			g, v := NewWithT(t), onVLAN(c.pools...)
			if c.change != nil {
				c.change(v)
			}
			g.Expect(v.withNodes(v.Infra.Spec.InfraComponents.DNS.Placement)[names.AnnotationNodes]).To(Equal(c.nodes))
			g.Expect(len(v.placement()) > 0).To(Equal(c.warned))
		})
	}
}

func everywhereWritten(v *view) {
	c, here := &v.Infra.Spec.InfraComponents, map[string]string{"here": "yes"}
	c.DHCP.NodeSelector, c.DNS.NodeSelector, c.Proxy.NodeSelector = here, here, here
}

// An administrator who edits a NodePool or labels a network restarts nobody's DNS: that is the next pod's.
func TestWhereTheVLANIsReplacesNoPod(t *testing.T) {
	for name, change := range map[string]func(*Child[*v1alpha1.DNSServer]){
		"NodePools begin to say it": func(in *Child[*v1alpha1.DNSServer]) {
			in.Server.Annotations = map[string]string{names.AnnotationNodes: "rack=b"}
		},
		"they cease to": func(in *Child[*v1alpha1.DNSServer]) { in.Server.Annotations = nil },
		"the network says it": func(in *Child[*v1alpha1.DNSServer]) {
			in.NAD.Annotations = map[string]string{nad.ResourceName: "example.com/br"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			g, in := NewWithT(t), aServer()
			in.Server.Annotations = map[string]string{names.AnnotationNodes: "rack=a"}
			was := servedOf(serverWorkload(in))
			change(&in)
			in.Running = was.annotations
			now, waits := releases(serverWorkload(in), serverWorkload(in).dns(in.Settings))
			g.Expect(encoded(now.template)).To(MatchJSON(encoded(was.template)))
			g.Expect(waits).To(ConsistOf(HaveField("Reason", "NewerTemplateWaits")))

			in.Server.Spec.Image = "example.com/oooi:mine"
			w := serverWorkload(in)
			w.Image = in.Server.Spec.Image
			newest := w.dns(in.Settings)
			now, _ = releases(w, newest)
			g.Expect(now.template).To(Equal(newest), "a pod that is replaced anyway goes there")

			in.Running = nil
			fresh := serverWorkload(in)
			now, _ = releases(fresh, fresh.dns(in.Settings))
			g.Expect(now.template).To(Equal(fresh.dns(in.Settings)), "so does the first")
		})
	}
}

func TestWhatIsWrittenPlacesAPodAlone(t *testing.T) {
	in := aServer()
	in.Server.Annotations = map[string]string{names.AnnotationNodes: "rack=a"}
	w := serverWorkload(in)
	w.Placement.NodeSelector = map[string]string{"here": "yes"}
	NewWithT(t).Expect(w.dns(in.Settings).Spec.NodeSelector).To(Equal(map[string]string{"here": "yes"}))
}

// Without a webhook that does it nobody else asks for what nodes with the network have; beside one nothing is asked for twice.
func TestAPodAsksForTheNetworksResource(t *testing.T) {
	const br = "bridge.network.kubevirt.io/br100"
	for name, c := range map[string]struct {
		resource  string
		unoffered bool
		written   *corev1.ResourceRequirements
		want      int64
	}{
		"none":                        {resource: "", want: 0},
		"what no node has":            {resource: "br100", want: 0},
		"a resource":                  {resource: br, want: 1},
		"what nobody has counted":     {resource: br, unoffered: true, want: 0},
		"beside what is written":      {resource: br, written: &corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}}, want: 1},
		"one that is written already": {resource: br, written: &corev1.ResourceRequirements{Limits: corev1.ResourceList{br: resource.MustParse("2")}}, want: 2},
	} {
		t.Run(name, func(t *testing.T) {
			g, in := NewWithT(t), aServer()
			in.NAD.Annotations, in.Unoffered = map[string]string{nad.ResourceName: c.resource}, c.unoffered
			w := serverWorkload(in)
			w.Placement.Resources = c.written
			for _, template := range []*podTemplate{w.dns(in.Settings), w.dhcp(in.Settings), w.proxy(in.Settings, "")} {
				var asked int64
				for _, container := range template.Spec.Containers {
					limit := (*container.Resources.Limits)[corev1.ResourceName(c.resource)]
					asked += limit.Value()
					if request, written := (*container.Resources.Limits)[br]; written && c.want == 1 {
						g.Expect(*container.Resources.Requests).To(HaveKeyWithValue(corev1.ResourceName(br), request))
					}
				}
				g.Expect(asked).To(Equal(c.want))
			}
			if c.written != nil {
				g.Expect(len(c.written.Limits)).To(Equal(1), "what is written is not changed")
			}
		})
	}
}
