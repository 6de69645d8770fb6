package render_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cldmnky/oooi/internal/nad"
	"github.com/cldmnky/oooi/internal/render"
)

// networks maps the NetworkAttachmentDefinitions among objects, as namespace/name, to their configuration.
func networks(objects render.Objects) map[string]string {
	all := map[string]string{}
	for _, o := range objects {
		if n, ok := o.(*nad.NetworkAttachmentDefinition); ok {
			all[n.Namespace+"/"+n.Name] = n.Spec.Config
		}
	}
	return all
}

func clusterNetwork(selector string) string {
	return fmt.Sprintf(`apiVersion: k8s.ovn.org/v1
kind: ClusterUserDefinedNetwork
metadata: {name: vlan100}
spec:
  namespaceSelector: %s
  network: {topology: Localnet, localnet: {role: Secondary, physicalNetworkName: physnet1, ipam: {mode: Disabled}, vlan: {mode: Access, access: {id: 100}}}}
---
`, selector)
}

const somebodyOn = `apiVersion: hypershift.openshift.io/v1beta1
kind: HostedCluster
metadata: {name: c1, namespace: clusters}
---
apiVersion: hypershift.openshift.io/v1beta1
kind: NodePool
metadata: {name: c1, namespace: clusters}
spec: {clusterName: c1, platform: {type: KubeVirt, kubevirt: {additionalNetworks: [{name: tenants/vlan100}, {name: elsewhere/vlan200}]}}}
---
`

func namespace(labels string) string {
	return "apiVersion: v1\nkind: Namespace\nmetadata: {name: tenants, labels: " + labels + "}\n---\n"
}

// OVN-Kubernetes makes the NetworkAttachmentDefinition in each selected namespace; the files need not have it.
func TestTheNamespacesOfAClusterUserDefinedNetworkAreSelectedAsItSays(t *testing.T) {
	for name, c := range map[string]struct {
		selector, namespace string
		made, assumed       bool
	}{
		"its name":                           {`{matchLabels: {kubernetes.io/metadata.name: tenants}}`, "", true, false},
		"one of several names":               {`{matchExpressions: [{key: kubernetes.io/metadata.name, operator: In, values: [a, tenants]}]}`, "", true, false},
		"another name":                       {`{matchLabels: {kubernetes.io/metadata.name: other}}`, "", false, false},
		"all":                                {`{}`, "", true, false},
		"all but it":                         {`{matchExpressions: [{key: kubernetes.io/metadata.name, operator: NotIn, values: [tenants]}]}`, "", false, false},
		"a label that it has":                {`{matchLabels: {localnet: "true"}}`, namespace(`{localnet: "true"}`), true, false},
		"a label that it has not":            {`{matchLabels: {localnet: "true"}}`, namespace(`{}`), false, false},
		"a label that nobody told of":        {`{matchLabels: {localnet: "true"}}`, "", true, true},
		"that, and another name":             {`{matchLabels: {localnet: "true", kubernetes.io/metadata.name: other}}`, "", false, false},
		"what is no selector":                {`{matchExpressions: [{key: a, operator: Is}]}`, "", false, false},
		"its name, which a Namespace has so": {`{matchLabels: {kubernetes.io/metadata.name: tenants}}`, namespace(`{}`), true, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			dir := place(t, map[string]string{"network.yaml": clusterNetwork(c.selector), "cluster.yaml": somebodyOn + c.namespace})
			objects, notes, err := render.Files(nil, []string{dir})
			g.Expect(err).NotTo(HaveOccurred())
			made := networks(objects)
			g.Expect(made).To(HaveLen(map[bool]int{true: 1}[c.made]))
			if c.made {
				g.Expect(made["tenants/vlan100"]).To(And(ContainSubstring(`"netAttachDefName":"tenants/vlan100"`), ContainSubstring(`"vlanID":100`)))
			}
			if c.assumed {
				g.Expect(notes).To(ConsistOf("ClusterUserDefinedNetwork vlan100 is taken to select namespace tenants: the files hold no such Namespace, whose labels say it"))
			} else {
				g.Expect(notes).To(BeEmpty())
			}
		})
	}
}

// In mode DHCP, OVN-Kubernetes asks for an address instead of the worker.
func TestAClusterUserDefinedNetworkSaysWhoGivesAddresses(t *testing.T) {
	for mode, asks := range map[string]bool{"Disabled": false, "DHCP": true} {
		text := namespace("{}") + somebodyOn + strings.Replace(clusterNetwork("{matchLabels: {kubernetes.io/metadata.name: tenants}}"), "mode: Disabled", "mode: "+mode, 1)
		objects, err := render.Read(strings.NewReader(text))
		g := NewWithT(t)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(strings.Contains(networks(objects)["tenants/vlan100"], `"ipam":{"type":"dhcp"}`)).To(Equal(asks), mode)
	}
}

func TestAClusterUserDefinedNetworkSaysWhetherItsPortsAreSecured(t *testing.T) {
	for wrote, want := range map[string]string{"mode: Disabled": "", "mode: Disabled}, macSecurity: {mode: Disabled": `"macSecurityMode":"Disabled"`} {
		text := namespace("{}") + somebodyOn + strings.Replace(clusterNetwork("{matchLabels: {kubernetes.io/metadata.name: tenants}}"), "mode: Disabled", wrote, 1)
		objects, err := render.Read(strings.NewReader(text))
		g := NewWithT(t)
		g.Expect(err).NotTo(HaveOccurred())
		rendered := networks(objects)["tenants/vlan100"]
		g.Expect(rendered).To(ContainSubstring(want))
		g.Expect(strings.Contains(rendered, "macSecurityMode")).To(Equal(want != ""))
	}
}

func TestWhatTheClusterHasIsNotMadeAgain(t *testing.T) {
	g := NewWithT(t)
	there := strings.Replace(vlan("vlan100", "br1"), "namespace: default", "namespace: tenants", 1)
	for _, text := range []string{there + clusterNetwork("{}") + somebodyOn, clusterNetwork("{}") + somebodyOn + there} {
		objects, err := render.Read(strings.NewReader(text))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(networks(objects)).To(And(HaveLen(1), HaveKeyWithValue("tenants/vlan100", ContainSubstring("br1"))))
	}
}

// A network that does not leave the cluster is found, and unfit; were it missing, workers would seem to be on none.
func TestOverlaysAreMadeToo(t *testing.T) {
	g := NewWithT(t)
	overlay := strings.NewReplacer("topology: Localnet", "topology: Layer2", "localnet:", "layer2:").Replace(clusterNetwork("{}")) + somebodyOn +
		"apiVersion: k8s.ovn.org/v1\nkind: UserDefinedNetwork\nmetadata: {name: own, namespace: clusters}\nspec: {topology: Layer3, layer3: {role: Primary, subnets: [{cidr: 10.0.0.0/16}]}}\n"
	objects, err := render.Read(strings.NewReader(overlay))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(networks(objects)).To(And(HaveLen(2),
		HaveKeyWithValue("tenants/vlan100", ContainSubstring(`"topology":"layer2"`)), HaveKeyWithValue("clusters/own", ContainSubstring(`"topology":"layer3"`))))
}

// OpenShift's network operator makes the networks that its configuration lists; one without a namespace is in default.
func TestNetworksOfOpenShiftsNetworkOperatorAreMade(t *testing.T) {
	g := NewWithT(t)
	file := filepath.Join(place(t, map[string]string{"network.yaml": `apiVersion: operator.openshift.io/v1
kind: Network
metadata: {name: cluster}
spec:
  additionalNetworks:
  - {name: vlan100, type: Raw, rawCNIConfig: '{"cniVersion":"0.3.1","name":"vlan100","type":"bridge","bridge":"br1"}'}
  - {name: vlan200, namespace: nets, type: Raw, rawCNIConfig: '{"cniVersion":"0.3.1","name":"vlan200","type":"bridge","bridge":"br2"}'}
  - {name: macvlan, type: SimpleMacvlan, simpleMacvlanConfig: {master: eth1, mode: Private, mtu: 9000}}
---
apiVersion: config.openshift.io/v1
kind: Network
metadata: {name: cluster}
`}), "network.yaml")
	objects, notes, err := render.Files(nil, []string{file})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(notes).To(BeEmpty())
	g.Expect(networks(objects)).To(And(HaveLen(3), HaveKeyWithValue("default/macvlan", ContainSubstring(`"master":"eth1","mode":"private","mtu":9000`)), HaveKeyWithValue("default/vlan100", ContainSubstring("br1")), HaveKeyWithValue("nets/vlan200", ContainSubstring("br2"))))
}
