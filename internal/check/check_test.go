package check_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/check"
	"github.com/cldmnky/oooi/internal/nad"
	"github.com/cldmnky/oooi/internal/step"
)

var now = time.Date(2026, 11, 27, 8, 0, 0, 0, time.UTC)

// facts of a cluster on which all is well, changed by a case.
func facts(change func(*check.Facts)) check.Facts {
	f := check.Facts{
		Now: now, CLI: "v0.1.0", Namespace: "oooi-system", Kubernetes: "v1.36.3",
		CRDs:    step.Read[map[string]apiextensionsv1.CustomResourceDefinition]{Is: check.Own()},
		Manager: check.Manager{VLAN: true, Bridges: true, Elects: true, Image: "oooi:1", Envoy: "envoy:1"},
	}
	f.Deployment.Is = &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "oooi-system", Name: "operator"}, Spec: appsv1.DeploymentSpec{Replicas: ptr.To(int32(2))},
		Status: appsv1.DeploymentStatus{Replicas: 2, UpdatedReplicas: 2, AvailableReplicas: 2},
	}
	f.Lease.Is = &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{check.LabelVersion: "v0.1.0"}},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: ptr.To("pod-1_a"), RenewTime: ptr.To(metav1.NewMicroTime(now.Add(-5 * time.Second))), LeaseDurationSeconds: ptr.To(int32(15))},
	}
	for _, gvk := range []schema.GroupVersionKind{
		{Group: "hypershift.openshift.io", Version: "v1beta1", Kind: "HostedCluster"},
		{Group: "k8s.cni.cncf.io", Version: "v1", Kind: "NetworkAttachmentDefinition"},
		{Group: "kubevirt.io", Version: "v1", Kind: "VirtualMachineInstance"},
		{Group: "metallb.io", Version: "v1beta1", Kind: "IPAddressPool"},
		{Group: "provisioning.dpu.nvidia.com", Version: "v1alpha1", Kind: "DPU"},
		{Group: "config.openshift.io", Version: "v1", Kind: "Network"},
	} {
		f.APIs.Is = append(f.APIs.Is, check.API{GroupVersionKind: gvk, Served: true})
	}
	change(&f)
	return f
}

// unserved takes a group's kinds away, but for these versions.
func unserved(group string, others ...string) func(*check.Facts) {
	return func(f *check.Facts) {
		for i := range f.APIs.Is {
			if f.APIs.Is[i].Group == group {
				f.APIs.Is[i].Served, f.APIs.Is[i].Others = false, others
			}
		}
	}
}

func TestAStepSaysWhatIsWrongAndWhatToDo(t *testing.T) {
	for name, c := range map[string]struct {
		change         func(*check.Facts)
		step, says, do string
		outcome        step.Outcome
	}{
		"Kubernetes is old":            {func(f *check.Facts) { f.Kubernetes = "v1.29.4+k3s1" }, "kubernetes", "need 1.30", "1.30 or newer", step.Fail},
		"1.30 is not":                  {func(f *check.Facts) { f.Kubernetes = "v1.30.0" }, "kubernetes", "Kubernetes is v1.30.0", "", step.OK},
		"KubeVirt is missed by nobody": {unserved("kubevirt.io"), "kubevirt", "not installed: needed only", "", step.Skip},
		"KubeVirt is missed by a NodePool": {func(f *check.Facts) {
			unserved("kubevirt.io")(f)
			f.NodePools.Is = []hyperv1.NodePool{pool("c1", nil)}
		}, "kubevirt", "KubeVirt is not installed, and NodePool clusters/c1 has virtual machines", "install OpenShift Virtualization", step.Fail},
		"KubeVirt is old": {func(f *check.Facts) {
			unserved("kubevirt.io", "kubevirt.io/v1alpha3")(f)
			f.NodePools.Is = []hyperv1.NodePool{pool("c1", nil)}
		}, "kubevirt", "another version or incomplete, and NodePool clusters/c1 has virtual machines: the API server does not serve VirtualMachineInstance of kubevirt.io/v1, only kubevirt.io/v1alpha3", "install a version", step.Fail},
		"KubeVirt is old, which nobody minds": {unserved("kubevirt.io", "kubevirt.io/v1alpha3"), "kubevirt", "another version", "install a version", step.Warn},
		"Multus is needed only for VLANs": {func(f *check.Facts) {
			unserved("k8s.cni.cncf.io")(f)
			f.Manager.VLAN = false
		}, "multus", "bridges need none", "", step.Skip},
		"MetalLB is missed by a bridge": {func(f *check.Facts) {
			unserved("metallb.io")(f)
			f.Bridges.Is = []check.Bridge{bridge("192.0.2.10", "")}
		}, "metallb", "DPUHCPBridge clusters/dpu1 has metalLBVirtualIP 192.0.2.10", "remove metalLBVirtualIP", step.Fail},
		"MetalLB is not missed by one without a virtual address": {func(f *check.Facts) {
			unserved("metallb.io")(f)
			f.Bridges.Is = []check.Bridge{bridge("", "")}
		}, "metallb", "needed only", "", step.Skip},
		"another namespace has the Infras": {func(f *check.Facts) { f.Only, f.Infras.Is = "typo", nil }, "infra", "there is no Infra in namespace typo, to which -n restricts this", "", step.Skip},
		"DPF is missed by a bridge": {func(f *check.Facts) {
			unserved("provisioning.dpu.nvidia.com")(f)
			f.Bridges.Is = []check.Bridge{bridge("", "")}
		}, "dpf", "DPUHCPBridge clusters/dpu1 connects its DPUs", "DOCA Platform", step.Fail},
		"a version is told":   {func(f *check.Facts) { f.Versions = map[string]string{"dpf": "v26.4.1"} }, "dpf", "DPF v26.4.1 is installed", "", step.OK},
		"kinds are not known": {func(f *check.Facts) { f.APIs = step.Read[[]check.API]{Unread: "it did not answer"} }, "hypershift", "HyperShift: it did not answer", "it is no matter of rights", step.Unread},
		"kinds are forbidden": {func(f *check.Facts) { f.APIs = step.Read[[]check.API]{Unread: "you may not list kinds"} }, "hypershift", "HyperShift: you may not list kinds", "oooi-check", step.Unread},

		"no pod is available": {func(f *check.Facts) {
			f.Deployment.Is.Status.AvailableReplicas, f.PodWaits = 0, "pod p: ImagePullBackOff"
		}, "operator", "no available pod: pod p: ImagePullBackOff", "describe pods", step.Fail},
		"one of two pods is available": {func(f *check.Facts) { f.Deployment.Is.Status.AvailableReplicas = 1 }, "operator", "1 of 2 pods available", "describe pods", step.Warn},
		"an update is not over":        {func(f *check.Facts) { f.Deployment.Is.Status.UpdatedReplicas = 1 }, "operator", "being updated: 1 of 2", "rollout status", step.Fail},
		"an update is not noticed":     {func(f *check.Facts) { f.Deployment.Is.Generation = 2 }, "operator", "being updated", "rollout status", step.Fail},
		"nobody renews the Lease":      {func(f *check.Facts) { f.Now = now.Add(time.Minute) }, "leader", "last renewed 1m5s ago, and lasts 15s", "logs", step.Fail},
		"nobody is elected":            {func(f *check.Facts) { f.Manager.Elects = false }, "leader", "without --leader-elect", "", step.Skip},
		"an older operator":            {func(f *check.Facts) { f.Lease.Is.Labels = nil }, "cli-version", "says no version: it is older", "upgrade the operator", step.Warn},
		"another operator":             {func(f *check.Facts) { f.CLI = "v0.2.0" }, "cli-version", "this oooi is v0.2.0, and the operator is v0.1.0", "operator's image", step.Warn},
		"another build of one release": {func(f *check.Facts) {
			f.CLI, f.Lease.Is.Labels[check.LabelVersion] = "v0.1.0+58df5bce443b", "v0.1.0_5ff13a8c0de1.dirty"
		}, "cli-version", "this oooi is v0.1.0+58df5bce443b, and the operator is v0.1.0_5ff13a8c0de1.dirty", "operator's image", step.Warn},
		"a version with a plus": {func(f *check.Facts) {
			f.CLI, f.Lease.Is.Labels[check.LabelVersion] = "v0.1.1-0+dirty", "v0.1.1-0_dirty"
		}, "cli-version", "both v0.1.1-0+dirty", "", step.OK},
		"OLM has the webhook": {func(f *check.Facts) {
			f.Manager.Webhook, f.Webhook.Is = true, nil
			f.Deployment.Is.Labels = map[string]string{"olm.owner": "oooi.v0.1.0"}
		}, "webhook", "OLM makes the webhook's configurations and certificates: kubectl get validatingwebhookconfigurations -l olm.owner=oooi.v0.1.0", "", step.Skip},
		"OLM has the webhook's certificate": {func(f *check.Facts) {
			f.Manager.Webhook, f.Deployment.Is.Labels = true, map[string]string{"olm.owner": "oooi.v0.1.0"}
		}, "webhook-certificate", "OLM makes them", "", step.Skip},
		"rights are missing":                            {func(f *check.Facts) { f.Denied.Is = []string{"list nodes", "watch nodes"} }, "operator-rights", "may not: list nodes and 1 more", "apply the Roles", step.Fail},
		"rights are missing that another version needs": {func(f *check.Facts) { f.Denied.Is, f.CLI = []string{"list nodes"}, "v0.2.0" }, "operator-rights", "may not: list nodes; this oooi is of another version", "operator's image", step.Warn},
		"a CRD that nobody may need": {func(f *check.Facts) {
			delete(f.CRDs.Is, "dpuhcpbridges.provisioning.dpu.hcp.io")
			f.Deployment = step.Read[*appsv1.Deployment]{Unread: "you may not list deployments.apps"}
		}, "crds", "whether the operator needs these CRDs, which are missing, is not known", "", step.Skip},
		"a CRD is not established": {func(f *check.Facts) {
			crd := f.CRDs.Is["infras.hostedcluster.densityops.com"]
			crd.Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{{Type: apiextensionsv1.NamesAccepted, Status: apiextensionsv1.ConditionFalse, Reason: "ListKindConflict", Message: "taken"}}
			f.CRDs.Is[crd.Name] = crd
		}, "crds", "ListKindConflict: taken", "describe crd", step.Fail},
		"a version is not served": {func(f *check.Facts) {
			crd := f.CRDs.Is["infras.hostedcluster.densityops.com"]
			crd.Spec.Versions[0].Served = false
		}, "crds", "does not serve version v1alpha1", "helm upgrade", step.Fail},
		"a CRD of a group that is off": {func(f *check.Facts) {
			delete(f.CRDs.Is, "dpuhcpbridges.provisioning.dpu.hcp.io")
			f.Manager.Bridges = false
		}, "crds", "5 CRDs", "", step.OK},
		"old CRDs of an old operator": {func(f *check.Facts) {
			crd := f.CRDs.Is["infras.hostedcluster.densityops.com"]
			delete(crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties, "spec")
			f.CLI = "v0.2.0"
		}, "crds", "older than this oooi: it lacks spec", "operator's image", step.Warn},
		"another rule": {func(f *check.Facts) {
			crd := f.CRDs.Is["infras.hostedcluster.densityops.com"]
			spec := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
			spec.Required = nil
			crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"] = spec
		}, "crds", "other rules for spec", "helm upgrade", step.Warn},
		"another description": {func(f *check.Facts) {
			f.CRDs.Is["infras.hostedcluster.densityops.com"].Spec.Versions[0].Schema.OpenAPIV3Schema.Description = "another"
		}, "crds", "6 CRDs", "", step.OK},

		"a daemon is behind": {daemons("oooi:0"), "daemon-images", "1 of 1 workloads run other images than the operator would now (oooi:1, envoy:1): Deployment clusters/c1 has oooi:0", "released-", step.Warn},
		"an owner's image":   {func(f *check.Facts) { daemons("mine:1")(f); f.Overrides = []string{"mine:1"} }, "daemon-images", "has mine:1", "released-", step.Warn},
		"an owner's image is allowed": {func(f *check.Facts) {
			daemons("mine:1")(f)
			f.Overrides, f.Manager.Overrides = []string{"mine:1"}, true
		}, "daemon-images", "1 of 1 workloads run", "", step.OK},

		"an Infra that nobody has seen": {func(f *check.Facts) { f.Infras.Is = []v1alpha1.Infra{infra()} }, "infra", "has not seen its newest spec", "the steps above", step.Fail},
		"an Infra that was Ready before its newest spec": {func(f *check.Facts) {
			i := infra()
			i.Generation, i.Status.Conditions = 2, []metav1.Condition{{Type: "Ready", Status: "True", ObservedGeneration: 1}}
			f.Infras.Is = []v1alpha1.Infra{i}
		}, "infra", "has not seen its newest spec", "the steps above", step.Fail},
		"an Infra that is Degraded": {func(f *check.Facts) {
			i := infra()
			i.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: "True"}, {Type: "Degraded", Status: "True", Reason: "PoolExhausted", Message: "no address is left"}}
			f.Infras.Is = []v1alpha1.Infra{i}
		}, "infra", "Degraded: PoolExhausted: no address is left", "describe infra c1", step.Warn},
		"an Infra that goes": {func(f *check.Facts) {
			i := infra()
			i.DeletionTimestamp = &metav1.Time{Time: now}
			f.Infras.Is = []v1alpha1.Infra{i}
		}, "infra", "being deleted", "describe infra c1", step.Warn},
		"a bridge that is not ready": {func(f *check.Facts) { f.Bridges.Is = []check.Bridge{bridge("", "SecretMissing: …")} }, "bridge", "not ready: SecretMissing: …", "oooi bridge status dpu1 -n clusters", step.Fail},
		"a bridge that is":           {func(f *check.Facts) { f.Bridges.Is = []check.Bridge{bridge("", "")} }, "bridge", "1 of 1 bridges are ready", "", step.OK},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			found := named(check.Installed(facts(c.change)), c.step)
			g.Expect(found).NotTo(BeEmpty())
			g.Expect(found[0].Says).To(ContainSubstring(c.says))
			g.Expect(found[0].Outcome).To(Equal(c.outcome))
			if c.do == "" {
				g.Expect(found[0].Do + found[0].See).To(BeEmpty())
			} else {
				g.Expect(found[0].Do).To(ContainSubstring(c.do))
			}
		})
	}
}

func named(all []step.Step, name string) []step.Step {
	return slices.DeleteFunc(all, func(s step.Step) bool { return s.Name != name })
}

func infra() v1alpha1.Infra {
	i := v1alpha1.Infra{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "c1"}}
	i.Spec.HostedClusterRef = &v1alpha1.HostedClusterReference{Name: "c1"}
	i.Spec.NetworkConfig.NetworkAttachmentDefinition, i.Spec.NetworkConfig.NetworkAttachmentNamespace = "vlan100", "default"
	return i
}

// pool has virtual machines on the VLAN, on nodes with these labels.
func pool(name string, nodes map[string]string) hyperv1.NodePool {
	return hyperv1.NodePool{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: name}, Spec: hyperv1.NodePoolSpec{ClusterName: "c1", Platform: hyperv1.NodePoolPlatform{
		Kubevirt: &hyperv1.KubevirtNodePoolPlatform{NodeSelector: nodes, AdditionalNetworks: []hyperv1.KubevirtNetwork{{Name: "default/vlan100"}}},
	}}}
}

func bridge(virtualIP, because string) check.Bridge {
	b := check.Bridge{Because: because}
	b.Namespace, b.Name, b.Spec.MetalLBVirtualIP = "clusters", "dpu1", v1alpha1.IPAddress(virtualIP)
	return b
}

func daemons(image string) func(*check.Facts) {
	return func(f *check.Facts) {
		f.Daemons.Is = []check.Workload{{Kind: "Deployment", Namespace: "clusters", Name: "c1", Images: []string{"envoy:1", image}}}
	}
}

func node(name string, labels map[string]string, ready bool) corev1.Node {
	n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	status := map[bool]corev1.ConditionStatus{true: corev1.ConditionTrue, false: corev1.ConditionFalse}[ready]
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status}}
	n.Status.Allocatable = corev1.ResourceList{}
	return n
}

func tainted(n corev1.Node, effect corev1.TaintEffect) corev1.Node {
	n.Spec.Taints = []corev1.Taint{{Key: "infra", Value: "only", Effect: effect}}
	return n
}

// What says which nodes have the VLAN is what planning reads, too.
func TestNodesWithTheVLAN(t *testing.T) {
	racked := map[string]string{"vlan": "100"}
	network := func(resource string) nad.NetworkAttachmentDefinition {
		n := nad.NetworkAttachmentDefinition{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "vlan100", Annotations: map[string]string{nad.ResourceName: resource}}}
		n.Spec.Config = `{"cniVersion":"0.3.1","name":"vlan100","type":"bridge","bridge":"br100"}`
		return n
	}
	with := func(n corev1.Node, name string) corev1.Node {
		n.Status.Allocatable[corev1.ResourceName(name)] = resource.MustParse("1k")
		return n
	}
	for name, c := range map[string]struct {
		change  func(*check.Facts)
		says    string
		outcome step.Outcome
	}{
		"nothing says":     {func(f *check.Facts) { f.Nodes.Is = []corev1.Node{node("n1", nil, true)} }, "find Ready nodes", step.OK},
		"no node is Ready": {func(f *check.Facts) { f.Nodes.Is = []corev1.Node{node("n1", nil, false)} }, "Infra clusters/c1: no node is Ready and takes pods, so no pod of dhcp starts", step.Fail},
		"NodePools say, and a node has it": {func(f *check.Facts) {
			f.NodePools.Is, f.Nodes.Is = []hyperv1.NodePool{pool("a", racked)}, []corev1.Node{node("n1", racked, true), node("n2", racked, true)}
		}, "find Ready nodes", step.OK},
		"NodePools say, and no node has it": {func(f *check.Facts) {
			f.NodePools.Is, f.Nodes.Is = []hyperv1.NodePool{pool("a", racked)}, []corev1.Node{node("n1", nil, true)}
		}, "no Ready node has labels vlan=100, so no pod of dhcp starts", step.Fail},
		"NodePools say, and the node that has it is not Ready": {func(f *check.Facts) {
			f.NodePools.Is, f.Nodes.Is = []hyperv1.NodePool{pool("a", racked)}, []corev1.Node{node("n1", racked, false), node("n2", nil, true)}
		}, "no Ready node has labels vlan=100", step.Fail},
		"NodePools say, and one node of two has it": {func(f *check.Facts) {
			f.NodePools.Is, f.Nodes.Is = []hyperv1.NodePool{pool("a", racked)}, []corev1.Node{node("n1", racked, true), node("n2", nil, true)}
		}, "of 2 Ready nodes only n1 has labels vlan=100", step.Warn},
		"NodePools differ": {func(f *check.Facts) {
			f.NodePools.Is, f.Nodes.Is = []hyperv1.NodePool{pool("a", racked), pool("b", map[string]string{"gpu": "1"})}, []corev1.Node{node("n1", racked, true)}
		}, "select different nodes (gpu=1; vlan=100)", step.Warn},
		"NodePools of another cluster say nothing": {func(f *check.Facts) {
			other := pool("a", racked)
			other.Spec.ClusterName = "c2"
			f.NodePools.Is, f.Nodes.Is = []hyperv1.NodePool{other}, []corev1.Node{node("n1", nil, true)}
		}, "find Ready nodes", step.OK},
		"the Infra says": {func(f *check.Facts) {
			f.Infras.Is[0].Spec.InfraComponents.DNS.NodeSelector = map[string]string{"dns": "here"}
			f.Nodes.Is = []corev1.Node{node("n1", nil, true)}
		}, "no Ready node has labels dns=here, so no pod of dns starts", step.Fail},
		"the network names a resource": {func(f *check.Facts) {
			f.Networks.Is = []nad.NetworkAttachmentDefinition{network("bridge.network.kubevirt.io/br100")}
			f.Nodes.Is = []corev1.Node{with(node("n1", nil, true), "bridge.network.kubevirt.io/br100"), node("n2", nil, true)}
		}, "of 2 Ready nodes only n1 has resource bridge.network.kubevirt.io/br100", step.Warn},
		"the network names a resource that no node has": {func(f *check.Facts) {
			f.Networks.Is = []nad.NetworkAttachmentDefinition{network("bridge.network.kubevirt.io/br100")}
			f.Nodes.Is = []corev1.Node{node("n1", nil, true)}
		}, "find Ready nodes", step.OK},
		"a taint keeps our pods from each node": {func(f *check.Facts) {
			f.Nodes.Is = []corev1.Node{tainted(node("n1", nil, true), corev1.TaintEffectNoSchedule), tainted(node("n2", nil, true), corev1.TaintEffectNoExecute)}
		}, "each of its 2 Ready nodes has a taint that no pod of dhcp tolerates, such as infra=only:NoExecute, so none starts", step.Fail},
		"a taint keeps our pods from all nodes but one": {func(f *check.Facts) {
			f.Nodes.Is = []corev1.Node{tainted(node("n1", nil, true), corev1.TaintEffectNoSchedule), node("n2", nil, true)}
		}, "of its 2 Ready nodes only n2 has no taint, so both pods of dhcp end with it; another has infra=only:NoSchedule", step.Warn},
		"our pods tolerate the taint": {func(f *check.Facts) {
			c := &f.Infras.Is[0].Spec.InfraComponents
			tolerates := []corev1.Toleration{{Key: "infra", Operator: corev1.TolerationOpEqual, Value: "only", Effect: corev1.TaintEffectNoSchedule}}
			c.DHCP.Placement.Tolerations, c.DNS.Placement.Tolerations, c.Proxy.Placement.Tolerations = tolerates, tolerates, tolerates
			f.Nodes.Is = []corev1.Node{tainted(node("n1", nil, true), corev1.TaintEffectNoSchedule)}
		}, "find Ready nodes", step.OK},
		"a taint that only discourages": {func(f *check.Facts) {
			f.Nodes.Is = []corev1.Node{tainted(node("n1", nil, true), corev1.TaintEffectPreferNoSchedule)}
		}, "find Ready nodes", step.OK},
		"nodes are not read": {func(f *check.Facts) { f.Nodes.Unread = "you may not list nodes" }, "which nodes have the VLANs: you may not list nodes", step.Unread},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			found := named(check.Installed(facts(func(f *check.Facts) {
				f.Infras.Is, f.Networks.Is = []v1alpha1.Infra{infra()}, []nad.NetworkAttachmentDefinition{network("")}
				f.HostedClusters.Is = []hyperv1.HostedCluster{{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "c1"}}}
				c.change(f)
			})), "nodes")
			g.Expect(found).To(HaveLen(1))
			g.Expect(found[0].Says).To(ContainSubstring(c.says))
			g.Expect(found[0].Outcome).To(Equal(c.outcome))
		})
	}
}

// The page has an anchor for each name that a step may have, and no other.
func TestThePageExplainsEachCheck(t *testing.T) {
	g := NewWithT(t)
	page, err := os.ReadFile("../../docs/CHECK.md")
	g.Expect(err).NotTo(HaveOccurred())
	var anchors []string
	for _, m := range regexp.MustCompile(`(?m)^### (.*)$`).FindAllSubmatch(page, -1) {
		anchors = append(anchors, string(m[1]))
	}
	g.Expect(anchors).To(ConsistOf(check.Names()))
	g.Expect(string(page)).To(ContainSubstring("\n## Your rights\n"), "steps that are not read lead to #your-rights")
}

// What is needed is what the manifests give: in this many rights no file was passed over.
func TestTheRightsOfTheOperatorAreThoseOfItsRoles(t *testing.T) {
	g := NewWithT(t)
	all := func(m check.Manager) (text []string) {
		for _, r := range m.Needed("oooi-system") {
			text = append(text, r.String())
		}
		return text
	}
	everything := all(check.Manager{VLAN: true, Bridges: true, Elects: true, Webhook: true, OwnCertificate: true})
	g.Expect(everything).To(ContainElements("list infras.hostedcluster.densityops.com", "list dpuhcpbridges.provisioning.dpu.hcp.io",
		"update leases.coordination.k8s.io/oooi-manager -n oooi-system", "update secrets/oooi-webhook-keys -n oooi-system", "patch validatingwebhookconfigurations.admissionregistration.k8s.io/oooi-webhook"))
	g.Expect(all(check.Manager{VLAN: true})).NotTo(ContainElement(Or(ContainSubstring("dpuhcpbridges"), ContainSubstring("secrets"), ContainSubstring("leases.coordination"))))
	g.Expect(all(check.Manager{Bridges: true})).NotTo(ContainElement(ContainSubstring("infras")))
}

// kinds of the manifests, as resources: of these the API server makes what it is asked to make.
var resources = map[string]string{
	"Namespace": "namespaces", "ServiceAccount": "serviceaccounts", "Service": "services", "Secret": "secrets", "Deployment": "deployments", "Lease": "leases",
	"ClusterRole": "clusterroles", "ClusterRoleBinding": "clusterrolebindings", "Role": "roles", "RoleBinding": "rolebindings", "NetworkPolicy": "networkpolicies",
	"PodDisruptionBudget": "poddisruptionbudgets", "CustomResourceDefinition": "customresourcedefinitions", "ValidatingWebhookConfiguration": "validatingwebhookconfigurations",
}

// An installation creates the kinds of objects that the manifests have.
func TestTheRightsToInstallAreForAllManifests(t *testing.T) {
	g := NewWithT(t)
	var made, asked []string
	for _, dir := range []string{"crd/bases", "rbac", "manager", "webhook"} {
		files, err := filepath.Glob("../../config/" + dir + "/*.yaml")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(files).NotTo(BeEmpty())
		for _, file := range files {
			text, err := os.ReadFile(file)
			g.Expect(err).NotTo(HaveOccurred())
			for _, m := range regexp.MustCompile(`(?m)^apiVersion: (\S+)\nkind: (\w+)$`).FindAllStringSubmatch(string(text), -1) {
				g.Expect(resources).To(HaveKey(m[2]), file)
				group, version, _ := strings.Cut(m[1], "/")
				if version == "" {
					group = ""
				}
				made = append(made, check.Right{Verb: "create", Group: group, Resource: resources[m[2]]}.String())
			}
		}
	}
	for _, r := range check.Installing("") {
		asked = append(asked, r.String())
	}
	slices.Sort(made)
	g.Expect(asked).To(ConsistOf(slices.Compact(made)))
}

// A log keeps the words, and each line says which step it is.
func TestLinesAreASCIIButForWhatOthersSay(t *testing.T) {
	g := NewWithT(t)
	var text bytes.Buffer
	g.Expect(step.Lines(&text, check.Installed(facts(unserved("kubevirt.io"))))).To(Succeed())
	g.Expect(strings.Trim(text.String(), "\n\t abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.,:;/()-'_=")).To(BeEmpty())
}
