package controller_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/internal/change"
	"github.com/cldmnky/oooi/internal/diffcli"
	"github.com/cldmnky/oooi/internal/dpf"
	"github.com/cldmnky/oooi/internal/metallb"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/testkit/golden"
)

// bridgeBefore is what a bridge is changed from.
const bridgeBefore = `apiVersion: provisioning.dpu.hcp.io/v1alpha1
kind: DPUHCPBridge
metadata: {name: b1, namespace: NS}
spec:
  dpuClusterRef: {name: d1}
  baseDomain: example.com
  sshKey: ssh
  pullSecret: pull
  exposeThroughLoadBalancer: true
  metalLBVirtualIP: 192.0.2.10
  ocpReleaseImage: ` + release + "\n"

// anotherFlavor is one with which the DPUDeployment has DPUs installed from then on.
const anotherFlavor = `apiVersion: provisioning.dpu.nvidia.com/v1alpha1
kind: DPUFlavor
metadata: {name: other, namespace: NS, annotations: {` + dpf.AnnotationSkipSizeCheck + `: ""}}
spec: {ovs: {rawConfigScript: "false"}}
---
apiVersion: svc.dpu.nvidia.com/v1alpha1
kind: DPUDeployment
metadata: {name: ovn, namespace: NS}
spec:
  dpus: {bfb: rhcos, flavor: other}
  services: {}
  serviceChains: {switches: [{ports: [{serviceInterface: {matchLabels: {a: b}}}]}]}
---
`

const releaseLine = "  ocpReleaseImage: " + release + "\n"

// bridgeEdits are made one after the other, as edits are.
var bridgeEdits = []struct {
	edit
	then func(templateWorld) // what HyperShift and DPF do afterwards
}{
	{edit{"availability", releaseLine, releaseLine + "  infrastructureAvailabilityPolicy: SingleReplica\n"}, templateWorld.catchesUp},
	{edit{"deployment", releaseLine, releaseLine + "  dpuDeploymentRef: {name: ovn}\n"}, templateWorld.installsOne},
	{edit{"services", releaseLine, releaseLine + "  manageDPUServiceTemplates: true\n"}, nil},
	{edit{"services off", "  manageDPUServiceTemplates: true\n", ""}, nil},
	{edit{"pull secret", "pullSecret: pull\n", "pullSecret: other\n"}, templateWorld.rendersAnew},
	{edit{"release without image", release, strings.Replace(release, "4.20.4", "4.20.9", 1)}, templateWorld.waitsForAnImage},
	{edit{"release with its own image", strings.Replace(release, "4.20.4", "4.20.9", 1) + "\n", release + "\n  machineOSImage: quay.io/example/own:1\n"}, nil},
	{edit{"pause", "namespace: NS}", `namespace: NS, annotations: {hostedcluster.densityops.com/paused: "true"}}`}, nil},
	{edit{"image while paused", "  machineOSImage: quay.io/example/own:1\n", ""}, nil},
	{edit{"pause ends", `, annotations: {hostedcluster.densityops.com/paused: "true"}`, ""}, nil},
	{edit{"flavor", "apiVersion: provisioning.dpu.hcp.io/v1alpha1\n", anotherFlavor + "apiVersion: provisioning.dpu.hcp.io/v1alpha1\n"}, nil},
	{edit{"flavor back", "flavor: other", "flavor: plain"}, nil},
	{edit{"release", release, newRelease}, templateWorld.rollsOut},
}

// Each change of a bridge is foretold, made with kubectl, and compared with what the operator then wrote.
func TestWhatIsForetoldOfABridgeComesToPass(t *testing.T) {
	w := newTemplateWorld(t)
	w.grants()
	w.creates(w.dpuCluster("d1", "example.com/hosted"), w.secret("other", corev1.DockerConfigJsonKey, `{"auths":{"quay.io":{"auth":"y"}}}`))
	manifest := strings.ReplaceAll(bridgeBefore, "NS", w.ns)
	w.makes(0, "created", manifest)
	w.hyperShift("b1", "first")
	w.appliesRole("dpu-bridge", w.ignites("b1"))
	w.rolledOut("b1", release, "1a2b3c4d")
	w.saysOf("b1", dpuv1.ConditionKubeconfigInjected, metav1.ConditionTrue, "Injected")
	w.silent()
	w.unchanged(manifest)
	for n, e := range bridgeEdits {
		from := strings.ReplaceAll(e.from, "NS", w.ns)
		w.Expect(manifest).To(ContainSubstring(from), e.what)
		manifest = strings.Replace(manifest, from, strings.ReplaceAll(e.to, "NS", w.ns), 1)
		w.makes(n+1, e.what, manifest)
		if e.then != nil {
			e.then(w)
			w.silent()
		}
		w.unchanged(manifest)
	}
	w.refused(strings.Replace(manifest, "192.0.2.10", "192.0.2.11", 1), "metalLBVirtualIP is set once")
}

// unchanged foretells nothing of a manifest that is applied already.
func (w templateWorld) unchanged(manifest string) {
	w.t.Helper()
	r := w.foretells(manifest)
	w.Expect(r.None()).To(BeTrue(), "%s", w.printed(r))
}

// makes a change that is foretold.
func (w templateWorld) makes(number int, what, manifest string) {
	w.t.Helper()
	foretold := w.foretells(manifest)
	was := w.ofBridges()
	w.kubectl(manifest)
	w.silent()
	w.cameToPass(what, foretold, was, w.ofBridges())
	w.Expect(text(foretold)).NotTo(Or(ContainSubstring("auths"), ContainSubstring("1a2b3c4d"), ContainSubstring("ssh-ed25519")), "what Secrets and templates have")
	golden.Compare(w.t, fmt.Sprintf("testdata/foretold/bridge-%02d-%s.txt", number, strings.ReplaceAll(what, " ", "-")), w.printed(foretold))
}

// ofBridges is everything that a bridge may write, and the bridge.
func (w templateWorld) ofBridges() map[string]string {
	w.t.Helper()
	all := map[string]string{}
	for _, list := range []client.ObjectList{
		&dpuv1.DPUHCPBridgeList{}, &hyperv1.HostedClusterList{}, &hyperv1.NodePoolList{}, &corev1.SecretList{}, &corev1.ConfigMapList{},
		&metallb.IPAddressPoolList{}, &metallb.L2AdvertisementList{}, &dpf.DPUServiceTemplateList{}, &dpf.DPUClusterList{}, &dpf.DPUFlavorList{}, &dpf.DPUDeploymentList{},
	} {
		for _, namespace := range []string{w.ns, w.dpf, "metallb-system"} {
			w.Expect(w.api.List(w.ctx, list, client.InNamespace(namespace))).To(Succeed())
			for _, o := range items(list) {
				kind, err := w.api.GroupVersionKindFor(o)
				w.Expect(err).NotTo(HaveOccurred())
				all[kind.Kind+" "+o.GetName()] = written(o)
			}
		}
	}
	return all
}

// refused is a change that is not accepted, by the API server's own word.
func (w templateWorld) refused(manifest, because string) {
	w.t.Helper()
	objects, err := diffcli.Manifests(strings.NewReader(manifest), []string{"-"})
	w.Expect(err).NotTo(HaveOccurred())
	_, err = diffcli.Of(w.ctx, w.api, diffcli.Settings{Input: w.settings, Bridges: w.groups.Bridges, Now: time.Now}, objects, w.ns)
	w.Expect(err).To(MatchError(And(ContainSubstring("the API server would refuse DPUHCPBridge b1"), ContainSubstring(because))))
	b := w.bridge()
	w.Expect(w.api.Get(w.ctx, client.ObjectKeyFromObject(b), b)).To(Succeed())
	b.Spec.MetalLBVirtualIP = "192.0.2.11"
	w.Expect(w.api.Update(w.ctx, b)).To(MatchError(ContainSubstring(because)))
}

// catchesUp has HyperShift say that the control plane is as the HostedCluster is now.
func (w templateWorld) catchesUp() {
	w.t.Helper()
	hc := sees(w.world, named(&hyperv1.HostedCluster{}, w.ns, "b1"), there)
	w.reports(hc, func() {
		meta.SetStatusCondition(&hc.Status.Conditions, metav1.Condition{Type: string(hyperv1.HostedClusterProgressing), Status: metav1.ConditionFalse, Reason: "AsExpected", ObservedGeneration: hc.Generation})
	})
}

// installsOne has DPF install a DPU from the template.
func (w templateWorld) installsOne() {
	w.t.Helper()
	w.template(func(g Gomega, m corev1.ConfigMap) { g.Expect(m.Data[dpf.TemplateKey]).To(ContainSubstring("1a2b3c4d")) })
	card := w.dpu("card", "d1")
	spec := card.Object["spec"].(map[string]any)
	spec["bfb"], spec["dpuFlavor"] = "rhcos", "plain"
	w.creates(card)
}

// rendersAnew has HyperShift render the ignition anew, which was foretold to change the template.
func (w templateWorld) rendersAnew() {
	w.t.Helper()
	w.rolledOut("b1", release, "9d8c7b6a")
	w.template(func(g Gomega, m corev1.ConfigMap) { g.Expect(m.Data[dpf.TemplateKey]).To(ContainSubstring("9d8c7b6a")) })
}

// waitsForAnImage is what the bridge says, as it was foretold.
func (w templateWorld) waitsForAnImage() {
	w.t.Helper()
	w.saysOf("b1", dpuv1.ConditionBlueFieldContainerImageAvailable, metav1.ConditionFalse, "ImageNotMapped")
	w.template(func(g Gomega, m corev1.ConfigMap) {
		g.Expect(m.Annotations).To(HaveKeyWithValue(names.AnnotationTemplateRelease, release))
	})
}

// rollsOut has HyperShift bring the control plane to the new release, which was foretold to bring a template.
func (w templateWorld) rollsOut() {
	w.t.Helper()
	w.saysOf("b1", dpuv1.ConditionIgnitionConfigured, metav1.ConditionFalse, "ControlPlaneProgressing")
	w.rolledOut("b1", newRelease, "5e6f7a8b")
	w.template(func(g Gomega, m corev1.ConfigMap) { g.Expect(m.Data[dpf.TemplateKey]).To(ContainSubstring("5e6f7a8b")) })
}

// Who may not read Secrets is told what that leaves unknown, and sees the rest.
func TestABridgeIsForetoldAsFarAsItsSecretsMayBeRead(t *testing.T) {
	w := newDPUWorld(t)
	w.bridged()
	sees(w.world, named(&hyperv1.HostedCluster{}, w.ns, "b1"), there)
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "bert"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"*"}, Resources: []string{"dpuhcpbridges", "nodes", "namespaces", "storageclasses", "hostedclusters", "nodepools", "configmaps"}, Verbs: []string{"*"}},
	}}
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "bert"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "bert"}}
	binding.Subjects = []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "bert"}}
	w.creates(role, binding)
	as := rest.CopyConfig(w.cluster.Admin)
	as.Impersonate.UserName = "bert"
	manifest := strings.Replace(strings.ReplaceAll(bridgeBefore, "NS", w.ns), release, newRelease, 1)
	objects, err := diffcli.Manifests(strings.NewReader(manifest), []string{"-"})
	w.Expect(err).NotTo(HaveOccurred())
	r, err := diffcli.Of(w.ctx, w.clientOf(as), diffcli.Settings{Input: w.settings, Bridges: w.groups.Bridges, Now: time.Now}, objects, w.ns)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(r.NotJudged).To(ContainElement("DPUHCPBridge " + w.ns + "/b1: which objects are written: you may not get its Secrets, from which it is planned"))
	w.Expect(r.Bridges).To(ConsistOf(HaveField("BridgeChange.Objects", ConsistOf(And(HaveField("Kind", "DPUHCPBridge"), HaveField("Verb", change.Update))))))
}
