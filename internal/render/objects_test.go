package render_test

import (
	"os"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/cldmnky/oooi/internal/plan/input"
	"github.com/cldmnky/oooi/internal/render"
)

func TestReadTakesListsAndPassesOverWhatPlanningDoesNotKnow(t *testing.T) {
	g := NewWithT(t)
	objects, err := render.Read(strings.NewReader(`# nothing but a comment
---
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Service, metadata: {name: a}}
- {apiVersion: example.com/v1, kind: Other, metadata: {name: b}}
---
apiVersion: example.com/v1
kind: Other
---
apiVersion: serving.knative.dev/v1
kind: Service
---
apiVersion: hypershift.openshift.io/v1beta1
kind: HostedCluster
metadata: {name: c1}
spec: {newerThanWeAre: true}
`))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(objects).To(HaveLen(2))
}

func TestReadSaysWhatItCannotTake(t *testing.T) {
	for text, want := range map[string]string{
		"a: b: c": "document 1: ",
		"apiVersion: v1\nkind: Namespace\n---\napiVersion: v1\nkind: Service\nspec: 5\n":                                                    "document 2: Service: ",
		"apiVersion: hostedcluster.densityops.com/v1alpha1\nkind: Infra\nspec: {networkConfg: {}}\n":                                        `unknown field "spec.networkConfg"`,
		"apiVersion: hostedcluster.densityops.com/v1alpha1\nkind: Infraa\n":                                                                 `hostedcluster.densityops.com has no kind "Infraa"`,
		"apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: Service}, {apiVersion: v1, kind: Service, metadata: {name: 5}}]\n":      "document 1: item 2: Service: ",
		"apiVersion: hostedcluster.densityops.com/v1beta1\nkind: Infra\n":                                                                   `Infra of apiVersion "hostedcluster.densityops.com/v1beta1" is not read; write apiVersion: hostedcluster.densityops.com/v1alpha1`,
		"apiVersion: hostedcluster.density.com/v1alpha1\nkind: Infra\n":                                                                     "write apiVersion: hostedcluster.densityops.com/v1alpha1",
		"apiVersion: v1\nkind: Service\n---\napiVersion: hypershift.openshift.io/v1alpha1\nkind: HostedCluster\n":                           "document 2: HostedCluster of apiVersion \"hypershift.openshift.io/v1alpha1\" is not read; write apiVersion: hypershift.openshift.io/v1beta1",
		"apiVersion: discovery.k8s.io/v1beta1\nkind: EndpointSlice\n":                                                                       "write apiVersion: discovery.k8s.io/v1",
		"apiVersion: hostedcluster.densityops.com/v1alpha1\nmetadata: {name: a}":                                                            "not a Kubernetes object",
		"apiVersion: hostedcluster.densityops.com/v1alpha1\nkind: Infra\nmetadata: {namespace: a}\n":                                        "document 1: Infra: it has no metadata.name; give it one",
		"apiVersion: k8s.cni.cncf.io/v1\nkind: NetworkAttachmentDefinition\nspec: {config: {type: bridge}}\n":                               "document 1: NetworkAttachmentDefinition: spec.config is an object, and takes text",
		"apiVersion: hypershift.openshift.io/v1beta1\nkind: HostedCluster\nspec: {services: {apiserver: {type: Route}}}\n":                  "document 1: HostedCluster: spec.services is an object, and takes a list",
		"apiVersion: hostedcluster.densityops.com/v1alpha1\nkind: Infra\nspec: {appsIngress: {metallb: {ipAddressPoolRange: 10.0.0.0/24}}}": "document 1: Infra: spec.appsIngress.metallb.ipAddressPoolRange is text, and takes a list",
		"apiVersion: k8s.ovn.org/v1\nkind: ClusterUserDefinedNetwork\nspec: {network: {localnet: {mtu: \"1500\"}}}\n":                       "document 1: ClusterUserDefinedNetwork: spec.network.localnet.mtu is text, and takes a whole number; write it without quotes",
		"apiVersion: hypershift.openshift.io/v1beta1\nkind: Hostedcluster\nmetadata: {name: c1}\n":                                          "hypershift.openshift.io has no kind Hostedcluster; write kind: HostedCluster",
		"apiVersion: hypershift.openshift.io/v1beta1\nkind: Nodepool\nmetadata: {name: c1}\n":                                               "write kind: NodePool",
		"apiVersion: hypershift.openshift.io/v1beta1\nkind: NodePool\nmetadata: {}\n":                                                       "document 1: NodePool: it has no metadata.name; give it one",
		"kind: Infra\nmetadata: {name: a}": "not a Kubernetes object",
		"just words":                       "document 1: not a Kubernetes object: it must start with apiVersion and kind, e.g. apiVersion: v1, kind: Service",
	} {
		_, err := render.Read(strings.NewReader(text))
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring(want)), text)
	}
}

func FuzzRead(f *testing.F) {
	f.Add("apiVersion: v1\nkind: List\nitems: [null, {kind: Service, apiVersion: v1}]\n")
	f.Add("apiVersion: hostedcluster.densityops.com/v1alpha1\nkind: Infra\nmetadata: {name: a}\nspec: {networkConfig: {cidr: 10.0.0.0/33, networkAttachmentDefinition: x}}\n---\n")
	f.Add("apiVersion: hostedcluster.densityops.com/v1alpha1\nkind: Infra\nmetadata: {name: a}\nspec: {networkConfig: {cidr: '::/0', gateway: x, networkAttachmentDefinition: x, clientCIDRs: [y]}, infraComponents: {dhcp: {rangeStart: z, excludeRanges: [{start: 10.0.0.9, end: '::'}]}}}\n")
	for _, seed := range []string{"../plan/testdata/everything-is-written/in.yaml", "../../examples/hostedcluster-auto.yaml"} {
		text, err := os.ReadFile(seed)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	f.Fuzz(func(_ *testing.T, text string) {
		if objects, err := render.Read(strings.NewReader(text)); err == nil {
			objects.Render(planSettings)
		}
	})
}

// As with kubectl, objects without a namespace are all in the same one.
func TestWhatSaysNoNamespaceIsFoundByItsNeighbours(t *testing.T) {
	g := NewWithT(t)
	objects, err := render.Read(strings.NewReader(`
apiVersion: hypershift.openshift.io/v1beta1
kind: HostedCluster
metadata: {name: c1, namespace: default, annotations: {hostedcluster.densityops.com/infra: auto}}
---
apiVersion: hypershift.openshift.io/v1beta1
kind: NodePool
metadata: {name: c1}
spec: {clusterName: c1}
---
apiVersion: hostedcluster.densityops.com/v1alpha1
kind: Infra
metadata: {name: c1}
spec: {hostedClusterRef: {name: c1}, networkConfig: {cidr: 192.168.100.0/24, networkAttachmentDefinition: vlan}}
---
apiVersion: k8s.cni.cncf.io/v1
kind: NetworkAttachmentDefinition
metadata: {name: vlan}
---
apiVersion: v1
kind: Namespace
metadata: {name: default}
`))
	g.Expect(err).NotTo(HaveOccurred())
	asked := objects.Provisionings(input.Settings{})
	g.Expect(asked).To(HaveLen(1))
	g.Expect(asked[0].Infra).NotTo(BeNil(), "one that is in the files is not made anew")
	g.Expect(asked[0].NodePools).To(HaveLen(1))
	in := objects.Inputs(planSettings)[0]
	g.Expect(in.HostedCluster).NotTo(BeNil())
	g.Expect(in.NAD).NotTo(BeNil())
	g.Expect(objects[4].(*corev1.Namespace).Namespace).To(BeEmpty())
}
