package nad

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// Each key, added alone to what every localnet has: what we take it to do, and whether our copy keeps it.
func TestWhatOVNKubernetesHonours(t *testing.T) {
	for key, want := range map[string]struct {
		value           string
		assigns, copied bool
	}{
		"subnets":               {`"10.0.0.0/24"`, true, false},
		"excludeSubnets":        {`"10.0.0.0/28"`, false, false},
		"reservedSubnets":       {`"10.0.0.0/28"`, false, false},
		"infrastructureSubnets": {`"10.0.0.0/28"`, false, false},
		"ipam":                  {`{"type":"dhcp"}`, true, false},
		"allowPersistentIPs":    {`true`, false, true},
		"mtu":                   {`9000`, false, true},
		"vlanID":                {`33`, false, true},
		"role":                  {`"secondary"`, false, true},
		"macSecurityMode":       {`"Disabled"`, false, true},
	} {
		g, c := NewWithT(t), parsed(t, `{"cniVersion":"1.0.0","name":"tenant","type":"ovn-k8s-cni-overlay","topology":"localnet","netAttachDefName":"a/b","`+key+`":`+want.value+`}`)
		g.Expect(c.AssignsAddresses()).To(Equal(want.assigns), key)
		ours := c.CopyForOVN("n", "clusters", "c1-oooi")
		g.Expect(strings.Contains(ours.String(), `"`+key+`":`+want.value)).To(Equal(want.copied), key)
		g.Expect(ours.AssignsAddresses()).To(BeFalse(), key)
		g.Expect(ours.PortSecured()).To(Equal(key != "macSecurityMode"), key)
		g.Expect(ours.String()).To(And(ContainSubstring(`"netAttachDefName":"clusters/c1-oooi"`), ContainSubstring(`"physicalNetworkName":"tenant"`), ContainSubstring(`"name":"n"`)))
	}
	NewWithT(t).Expect(parsed(t, `{"name":"x","type":"ovn-k8s-cni-overlay","topology":"localnet","ipam":{}}`).AssignsAddresses()).To(BeFalse())
	for _, k := range ovnKeys {
		NewWithT(t).Expect([]string{k.when, k.source}).NotTo(ContainElement(BeEmpty()), k.key)
	}
	var used []string
	for _, a := range ovnAsks {
		NewWithT(t).Expect([]string{a.when, a.source}).NotTo(ContainElement(BeEmpty()), a.key)
		if a.used {
			used = append(used, a.key)
		}
	}
	NewWithT(t).Expect(asked(t)).To(ConsistOf(used), "what internal/plan asks for")
}

// asked are the keys with which internal/plan attaches a pod to OVN-Kubernetes' network, except those that say which network.
func asked(t *testing.T) []string {
	t.Helper()
	g := NewWithT(t)
	text, err := os.ReadFile("../plan/testdata/documented/openshift-localnet/out.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	var out struct{ Pods map[string]string }
	g.Expect(yaml.Unmarshal(text, &out)).To(Succeed())
	keys := map[string]bool{}
	for _, annotation := range out.Pods {
		var attached []map[string]any
		g.Expect(json.Unmarshal([]byte(annotation), &attached)).To(Succeed())
		for _, a := range attached {
			for key := range a {
				keys[key] = true
			}
		}
	}
	delete(keys, "name")
	delete(keys, "namespace")
	return slices.Collect(maps.Keys(keys))
}

// Such a network exists, but every pod on it waits.
func TestWhatOVNKubernetesRefusesIsUnfit(t *testing.T) {
	for text, want := range map[string]string{
		`{"name":"p","type":"ovn-k8s-cni-overlay","topology":"localnet","netAttachDefName":"a/b"}`:                                 "",
		`{"name":"p","type":"ovn-k8s-cni-overlay","topology":"localnet","netAttachDefName":"a/b","role":"secondary"}`:              "",
		`{"name":"p","plugins":[{"type":"ovn-k8s-cni-overlay","topology":"localnet","netAttachDefName":"a/b"}]}`:                   "",
		`{"name":"p","plugins":[{"type":"ovn-k8s-cni-overlay","topology":"localnet","netAttachDefName":"a/b"},{"type":"tuning"}]}`: "remove tuning",
		`{"name":"p","type":"ovn-k8s-cni-overlay","topology":"localnet","netAttachDefName":"other/b"}`:                             `netAttachDefName is "other/b", but OVN-Kubernetes requires the object's own namespace and name; write "a/b"`,
		`{"name":"p","type":"ovn-k8s-cni-overlay","topology":"localnet"}`:                                                          `netAttachDefName is ""`,
		`{"type":"ovn-k8s-cni-overlay","topology":"localnet","netAttachDefName":"a/b"}`:                                            `requires a "name"`,
		`{"name":"p","type":"ovn-k8s-cni-overlay","topology":"localnet","netAttachDefName":"a/b","role":"primary"}`:                `role is "primary"`,
		`{"name":"p","type":"ovn-k8s-cni-overlay","topology":"layer2","netAttachDefName":"a/b"}`:                                   `topology "layer2"`,
	} {
		unfit := parsed(t, text).Unfit("a", "b")
		NewWithT(t).Expect(unfit).To(ContainSubstring(want), text)
		NewWithT(t).Expect(unfit == "").To(Equal(want == ""), text)
	}
}

// OVN-Kubernetes turns each - and / in the names of switches into a dot; two networks of one name are one switch.
func TestNoTwoInfrasNetworksAreOneSwitch(t *testing.T) {
	g, seen := NewWithT(t), map[string]string{}
	for _, infra := range [][2]string{{"clusters", "a-b"}, {"clusters-a", "b"}, {"clusters", "a.b"}, {"clusters", "c1"}, {"clusters-c1", "c1"}} {
		name := NetworkOnOVN(infra[0], infra[1])
		mapped := strings.NewReplacer("-", ".", "/", ".").Replace(name)
		g.Expect(mapped).To(Equal(name), "nothing of it is mapped")
		g.Expect(seen).NotTo(HaveKey(mapped), "%v", infra)
		seen[mapped] = infra[0]
	}
}

func TestANetworkThatIsRenderedNamesWhatItIsMadeFrom(t *testing.T) {
	controller := true
	of := func(version, kind, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: "net", OwnerReferences: []metav1.OwnerReference{{APIVersion: version, Kind: kind, Name: name, Controller: &controller}}}
	}
	by := func(kind, name string) metav1.ObjectMeta { return of("k8s.ovn.org/v1", kind, name) }
	const localnet = `{"type":"ovn-k8s-cni-overlay","topology":"localnet","name":"NAME"}`
	for name, c := range map[string]struct {
		n    NetworkAttachmentDefinition
		want Renderer
	}{
		"owned by a cluster's":   {NetworkAttachmentDefinition{ObjectMeta: by("ClusterUserDefinedNetwork", "red")}, Renderer{"ClusterUserDefinedNetwork", "red"}},
		"owned by a namespace's": {NetworkAttachmentDefinition{ObjectMeta: by("UserDefinedNetwork", "blue")}, Renderer{"UserDefinedNetwork", "blue"}},
		"owned by OpenShift's":   {NetworkAttachmentDefinition{ObjectMeta: of("operator.openshift.io/v1", "Network", "cluster")}, Renderer{"Network", "cluster"}},
		"named as a cluster's":   {NetworkAttachmentDefinition{Spec: Spec{Config: strings.Replace(localnet, "NAME", "cluster_udn_red", 1)}}, Renderer{"ClusterUserDefinedNetwork", "red"}},
		"labelled":               {NetworkAttachmentDefinition{ObjectMeta: metav1.ObjectMeta{Name: "net", Labels: map[string]string{"k8s.ovn.org/user-defined-network": ""}}, Spec: Spec{Config: strings.Replace(localnet, "NAME", "x", 1)}}, Renderer{"UserDefinedNetwork", "net"}},
		"a user's":               {NetworkAttachmentDefinition{Spec: Spec{Config: strings.Replace(localnet, "NAME", "tenant", 1)}}, Renderer{}},
		"owned by somebody else": {NetworkAttachmentDefinition{ObjectMeta: of("apps/v1", "Deployment", "x"), Spec: Spec{Config: localnet}}, Renderer{}},
	} {
		got, rendered := c.n.Renderer()
		NewWithT(t).Expect(rendered).To(Equal(c.want != Renderer{}), name)
		if rendered {
			NewWithT(t).Expect(got).To(Equal(c.want), name)
		}
	}
}
