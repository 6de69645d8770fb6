package render_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf16"

	. "github.com/onsi/gomega"
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"github.com/cldmnky/oooi/internal/plan/input"
	"github.com/cldmnky/oooi/internal/render"
)

// place writes files into a new directory.
func place(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		NewWithT(t).Expect(os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700)).To(Succeed())
		NewWithT(t).Expect(os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600)).To(Succeed())
	}
	return dir
}

func TestADirectoryIsReadWithAllBelowIt(t *testing.T) {
	g := NewWithT(t)
	dir := place(t, map[string]string{
		"a.yaml":       "apiVersion: v1\nkind: Service\nmetadata: {name: a, namespace: n1}\n",
		"b.yml":        "apiVersion: v1\nkind: Service\nmetadata: {name: a, namespace: n2}\n",
		"c.json":       `{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "c"}}`,
		"notes.md":     "just words",
		"below/d.yaml": "apiVersion: v1\nkind: Service\nmetadata: {name: d}\n",
	})
	objects, notes, err := render.Files(nil, []string{dir})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(objects).To(HaveLen(4))
	g.Expect(notes).To(BeEmpty())

	_, _, err = render.Files(nil, []string{place(t, map[string]string{"notes.md": ""})})
	g.Expect(err).To(MatchError(HaveSuffix("holds no *.yaml, *.yml or *.json")))
}

// The paths and forms are those of oc adm inspect, which must-gather runs: lists of one kind whose items may omit it, single objects, one
// object in two files, and much else.
func TestAMustGatherIsRead(t *testing.T) {
	const service = "metadata: {name: kube-apiserver, namespace: clusters-c1, uid: u1, resourceVersion: %q}\nspec: {ports: [{port: %s}]}\n"
	files := map[string]string{
		"version":              "must-gather 4.21",
		"event-filter.html.gz": "\x1f\x8b",
		"quay/namespaces/clusters-c1/core/services.yaml":                             "---\napiVersion: v1\nitems:\n- metadata: {name: kube-apiserver, namespace: clusters-c1, uid: u1, resourceVersion: '9'}\n  spec: {ports: [{port: 6443}]}\nkind: ServiceList\nmetadata: {resourceVersion: '10'}\n",
		"quay/namespaces/clusters-c1/core/pods.yaml":                                 "apiVersion: v1\nkind: PodList\nitems: [{metadata: {name: x}}]\n",
		"quay/namespaces/clusters-c1/services/kube-apiserver.yaml":                   "apiVersion: v1\nkind: Service\n" + fmt.Sprintf(service, "8", "443"),
		"quay/namespaces/clusters-c1/clusters-c1.yaml":                               "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: clusters-c1}\n",
		"quay/namespaces/clusters/hypershift.openshift.io/nodepools/c1.yaml":         "---\napiVersion: hypershift.openshift.io/v1beta1\nkind: NodePool\nmetadata: {name: c1, namespace: clusters}\n",
		"quay/cluster-scoped-resources/apiextensions.k8s.io/customresources/hc.yaml": "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: hostedclusters.hypershift.openshift.io}\nspec: {names: {kind: HostedCluster}}\n",
		"quay/namespaces/clusters-c1/pods/etcd-0/etcd.yaml":                          "a: [torn off",
		"quay/namespaces/clusters-c1/core/torn.yaml":                                 "kind: EndpointSlice\na: [torn off",
		"quay/hostedcluster-c1/namespaces/default/core/services.yaml":                "apiVersion: v1\nkind: Service\nmetadata: {name: of-the-hosted-cluster, namespace: default}\n",
	}
	g := NewWithT(t)
	dir := place(t, files)
	objects, notes, err := render.Files(nil, []string{dir})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(objects).To(HaveLen(3))
	g.Expect(objects).To(ContainElement(And(BeAssignableToTypeOf(&corev1.Service{}), HaveField("Spec.Ports", HaveExactElements(HaveField("Port", int32(6443)))))), "the newer of two")
	g.Expect(notes).To(HaveExactElements(
		"passed over: "+filepath.Join(dir, "quay/hostedcluster-c1")+": it is of the hosted cluster itself",
		HavePrefix("passed over: "+filepath.Join(dir, "quay/namespaces/clusters-c1/core/torn.yaml")+": ")))
}

// On OpenShift, a missing allow-list does not allow everything: its operator keeps the list on the nodes. HyperShift alone is not
// OpenShift.
func TestOpenShiftIsKnownByItsNetwork(t *testing.T) {
	const ofConfig = "cluster-scoped-resources/config.openshift.io/networks.yaml"
	for name, c := range map[string]struct {
		path, text string
		want       bool
	}{
		"as it is printed":   {"network.yaml", "apiVersion: config.openshift.io/v1\nkind: Network\nmetadata: {name: cluster}\nspec: {networkType: OVNKubernetes, newerThanWeAre: true}\n", true},
		"in a must-gather":   {ofConfig, "---\napiVersion: config.openshift.io/v1\nitems:\n- metadata: {name: cluster, uid: u2, resourceVersion: '7'}\nkind: NetworkList\n", true},
		"of another name":    {ofConfig, "apiVersion: config.openshift.io/v1\nkind: Network\nmetadata: {name: other}\n", false},
		"of another group":   {ofConfig, "apiVersion: example.com/v1\nkind: Network\nmetadata: {name: cluster}\n", false},
		"a HostedCluster's?": {"hc.yaml", "apiVersion: hypershift.openshift.io/v1beta1\nkind: HostedCluster\nmetadata: {name: c1}\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			objects, notes, err := render.Files(nil, []string{place(t, map[string]string{
				c.path: c.text, "infra.yaml": vlan("v1", "br1") + infraOn("a", "v1"),
				"cluster-scoped-resources/operator.openshift.io/networks.yaml": "apiVersion: operator.openshift.io/v1\nkind: Network\nmetadata: {name: cluster, uid: u1, resourceVersion: '8'}\n",
			})})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(notes).To(BeEmpty())
			g.Expect(objects.Inputs(planSettings)).To(ConsistOf(HaveField("OpenShift", c.want)))
		})
	}
}

// A kind is found in every spelling that YAML allows, and under every path.
func TestAnObjectIsFoundHoweverItIsWritten(t *testing.T) {
	for file, kind := range map[string]string{
		"plain.yaml": `kind: Infra`, "single.yaml": `kind: 'Infra'`, "double.yaml": `"kind": "Infra"`, "spaced.yml": `"kind" : "Infra"`, "anchored.yaml": `kind: &k Infra`, "tagged.yaml": `kind: !!str Infra`, "UPPER.YAML": `kind: Infra`,
	} {
		objects, _, err := render.Files(nil, []string{place(t, map[string]string{file: kind + "\napiVersion: hostedcluster.densityops.com/v1alpha1\nmetadata: {name: c1, namespace: clusters}\n"})})
		NewWithT(t).Expect(err).NotTo(HaveOccurred(), file)
		NewWithT(t).Expect(objects).To(HaveLen(1), file)
	}
}

// An object that must not be missed is not skipped.
func TestAFileOfADirectoryThatDecidesAndCannotBeReadIsRefused(t *testing.T) {
	dir := place(t, map[string]string{"deep/infra.yaml": "apiVersion: hostedcluster.densityops.com/v1alpha1\nkind: Infra\nmetadata: {name: c1}\nspec: {cidr: x}\n"})
	_, _, err := render.Files(nil, []string{dir})
	NewWithT(t).Expect(err).To(MatchError(And(HavePrefix(filepath.Join(dir, "deep/infra.yaml")), ContainSubstring(`unknown field "spec.cidr"`))))
}

// Files that people keep beside their objects: none of these is an object, and only those that may hide one are noted.
func TestWhatIsNoObjectOfOursIsPassedOver(t *testing.T) {
	const pool = "apiVersion: hypershift.openshift.io/v1beta1\nkind: NodePool\nmetadata: {name: c1, namespace: clusters}\n"
	for name, c := range map[string]struct {
		files map[string]string
		notes []string
	}{
		"Karpenter's NodePool": {map[string]string{"k.yaml": "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: default}\n"}, nil},
		"a kustomization":      {map[string]string{"kustomization.yaml": "resources: [pool.yaml]\npatches:\n- target: {kind: HostedCluster}\n"}, []string{"kustomization.yaml"}},
		"values of Helm":       {map[string]string{"values.yaml": "extra:\n- apiVersion: hypershift.openshift.io/v1beta1\n  kind: HostedCluster\n"}, []string{"values.yaml"}},
		"a playbook":           {map[string]string{"play.yml": "- hosts: all\n  tasks:\n  - k8s: {definition: {kind: HostedCluster}}\n"}, []string{"play.yml"}},
		"a mounted ConfigMap":  {map[string]string{"..2026_11_22/pool.yaml": pool}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			c.files["pool.yaml"] = pool
			objects, notes, err := render.Files(nil, []string{place(t, c.files)})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(objects).To(HaveLen(1))
			g.Expect(notes).To(HaveLen(len(c.notes)))
			for i, file := range c.notes {
				g.Expect(notes[i]).To(And(HavePrefix("passed over: "), ContainSubstring(file), ContainSubstring("not a Kubernetes object")))
			}
		})
	}
}

func TestADirectoryOfAnAdminsOwnIsReadWhateverItsName(t *testing.T) {
	objects, notes, err := render.Files(nil, []string{place(t, map[string]string{"hostedcluster-c1/hc.yaml": "apiVersion: hypershift.openshift.io/v1beta1\nkind: HostedCluster\nmetadata: {name: c1}\n"})})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(notes).To(BeEmpty())
	NewWithT(t).Expect(objects).To(HaveLen(1))
}

func TestAPipeInADirectoryKeepsNobodyWaiting(t *testing.T) {
	dir := place(t, map[string]string{"a.yaml": "apiVersion: v1\nkind: Service\nmetadata: {name: a}\n"})
	NewWithT(t).Expect(unix.Mkfifo(filepath.Join(dir, "b.yaml"), 0o600)).To(Succeed())
	objects, notes, err := render.Files(nil, []string{dir})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(notes).To(HaveExactElements(HaveSuffix("b.yaml: it is no regular file")))
	NewWithT(t).Expect(objects).To(HaveLen(1))
}

// PowerShell redirects in UTF-16.
func TestUTF16IsRead(t *testing.T) {
	const text = "apiVersion: v1\nkind: Service\nmetadata: {name: a}\n---\napiVersion: v1\nkind: Service\nmetadata: {name: b}\n"
	for name, order := range map[string]binary.AppendByteOrder{"little": binary.LittleEndian, "big": binary.BigEndian} {
		t.Run(name, func(t *testing.T) {
			var utf []byte
			for _, unit := range utf16.Encode([]rune("\ufeff" + text)) {
				utf = order.AppendUint16(utf, unit)
			}
			dir := place(t, map[string]string{"a.yaml": string(utf)})
			for _, from := range []string{dir, filepath.Join(dir, "a.yaml"), "-"} {
				objects, _, err := render.Files(bytes.NewReader(utf), []string{from})
				NewWithT(t).Expect(err).NotTo(HaveOccurred())
				NewWithT(t).Expect(objects).To(HaveLen(2), from)
			}
		})
	}
}

// Without a flag, the networks are the cluster's, as they are for the operator.
func TestTheClustersNetworksAreThoseOfItsNetwork(t *testing.T) {
	const network = "apiVersion: config.openshift.io/v1\nkind: Network\nmetadata: {name: cluster}\nstatus: {clusterNetwork: [{cidr: 10.1.0.0/16}], serviceNetwork: [10.2.0.0/16]}\n---\n"
	objects, err := render.Read(strings.NewReader(network + vlan("v1", "br1") + infraOn("a", "v1")))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	of := func(s input.Settings) input.Settings { return objects.Inputs(s)[0].Settings }
	said := []netip.Prefix{netip.MustParsePrefix("10.9.0.0/16")}
	NewWithT(t).Expect(of(input.Settings{ServiceCIDRs: said})).To(And(HaveField("PodCIDRs", input.Prefixes("10.1.0.0/16")), HaveField("ServiceCIDRs", said)))
	NewWithT(t).Expect(of(input.Settings{PodCIDRs: said})).To(And(HaveField("PodCIDRs", said), HaveField("ServiceCIDRs", input.Prefixes("10.2.0.0/16"))))
}

// The HostedControlPlane names its HostedCluster; before it exists, its namespace does.
func TestAControlPlaneThatIsYetToBeMadeIsFound(t *testing.T) {
	const hc = "apiVersion: hypershift.openshift.io/v1beta1\nkind: HostedCluster\nmetadata: {name: c1, namespace: clusters}\n---\n"
	infra := strings.Replace(infraOn("a", "v1"), "spec: {", "spec: {infraComponents: {proxy: {controlPlaneNamespace: clusters-c1}}, ", 1)
	objects, err := render.Read(strings.NewReader(hc + vlan("v1", "br1") + infra))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(objects.Inputs(planSettings)[0].HostedCluster).To(HaveField("Name", "c1"))
}

// HyperShift's webhook fills in what a NodePool of VirtualMachines leaves out.
func TestANodePoolOfVirtualMachinesSaysNoMore(t *testing.T) {
	objects, err := render.Read(strings.NewReader("apiVersion: hypershift.openshift.io/v1beta1\nkind: NodePool\nmetadata: {name: c1}\nspec: {platform: {type: KubeVirt}}\n"))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(objects).To(HaveExactElements(HaveField("Spec.Platform.Kubevirt", Not(BeNil()))))
}

func TestAnObjectIsGivenOnce(t *testing.T) {
	g := NewWithT(t)
	const infra = "apiVersion: hostedcluster.densityops.com/v1alpha1\nkind: Infra\n"
	dir := place(t, map[string]string{"a.yaml": infra + "metadata: {name: c1}\n"})
	again := strings.NewReader(infra + "metadata: {name: c2}\n---\n" + infra + "metadata: {name: c1, namespace: default}\n")
	_, _, err := render.Files(again, []string{dir, "-"})
	g.Expect(err).To(MatchError("-: Infra default/c1 is given twice, first in " + filepath.Join(dir, "a.yaml") + "; give it once"))
}

func TestAFileThatCannotBeReadIsNamed(t *testing.T) {
	file := filepath.Join(place(t, map[string]string{"a.yaml": "just words"}), "a.yaml")
	_, _, err := render.Files(nil, []string{file})
	NewWithT(t).Expect(err).To(MatchError(HavePrefix(file + ": document 1: not a Kubernetes object")))
}

// If every Infra were a neighbour of every other, a few thousand would take minutes.
func TestAPlanIsGivenOnlyTheNeighboursOnItsVLAN(t *testing.T) {
	g := NewWithT(t)
	objects, err := render.Read(strings.NewReader(vlan("v1", "br1") + vlan("v2", "br1") + vlan("v3", "br3") +
		infraOn("a", "v1") + infraOn("b", "v2") + infraOn("c", "v3") + infraOn("d", "missing") + infraOn("e", "missing")))
	g.Expect(err).NotTo(HaveOccurred())
	beside := map[string][]string{}
	for _, in := range objects.Inputs(input.Settings{}) {
		for _, n := range in.Neighbours {
			beside[in.Infra.Name] = append(beside[in.Infra.Name], n.Infra.Name)
		}
	}
	g.Expect(beside).To(Equal(map[string][]string{"a": {"b"}, "b": {"a"}}))
}

func vlan(name, bridge string) string {
	return "apiVersion: k8s.cni.cncf.io/v1\nkind: NetworkAttachmentDefinition\nmetadata: {name: " + name + ", namespace: default}\n" +
		`spec: {config: '{"cniVersion": "0.3.1", "name": "n", "type": "bridge", "bridge": "` + bridge + `"}'}` + "\n---\n"
}

func infraOn(name, nad string) string {
	return "apiVersion: hostedcluster.densityops.com/v1alpha1\nkind: Infra\nmetadata: {name: " + name + "}\n" +
		"spec: {networkConfig: {cidr: 192.168.100.0/24, networkAttachmentDefinition: " + nad + "}}\n---\n"
}
