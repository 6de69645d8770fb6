package bridge_test

import (
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/dpf"
	"github.com/cldmnky/oooi/internal/metallb"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/plan/bridge"
	"github.com/cldmnky/oooi/internal/testkit/golden"
)

func load(t *testing.T, path string) bridge.Input {
	t.Helper()
	in := bridge.Input{}
	text, err := os.ReadFile(path)
	if err == nil {
		err = yaml.UnmarshalStrict(text, &in)
	}
	if err != nil {
		t.Fatal(err)
	}
	in.Exists = func(uid types.UID) bool { return uid == "u1" || uid == "u2" }
	return in
}

func TestABridgeBecomes(t *testing.T) {
	golden.Cases(t, "testdata", []string{"in.yaml"}, func(t *testing.T, dir string) map[string]string {
		p := bridge.Of(load(t, filepath.Join(dir, "in.yaml")))
		NewWithT(t).Expect(p.Frozen).To(BeFalse(), "%v", p.Findings)
		said := []string{golden.YAML(t, map[string]any{"findings": told(p), "key": p.Key})}
		for _, o := range p.Objects {
			said = append(said, golden.YAML(t, o))
		}
		return map[string]string{"out.yaml": strings.Join(said, "---\n")}
	})
}

// told are the reasons of a plan's findings, by condition.
func told(p bridge.Plan) (all []string) {
	for _, f := range p.Findings {
		all = append(all, f.Condition+"/"+f.Reason)
	}
	return all
}

func ours(b *dpuv1.DPUHCPBridge) map[string]string {
	return map[string]string{names.LabelManagedBy: names.ManagedBy, names.LabelBridge: b.Name, names.LabelBridgeNamespace: b.Namespace, names.LabelOwnerUID: string(b.UID)}
}

// made adds the hosted cluster as HyperShift makes it, with its kubeconfig.
func made(in *bridge.Input) {
	in.HostedCluster = &hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Name: "b1", Namespace: "dpf", Labels: ours(in.Bridge)}}
	in.HostedCluster.Status.KubeConfig = &corev1.LocalObjectReference{Name: "b1-admin-kubeconfig"}
	in.NodePool = &hyperv1.NodePool{ObjectMeta: in.HostedCluster.ObjectMeta}
	in.Key.Secret = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Labels: ours(in.Bridge)}, Data: map[string][]byte{"key": make([]byte, bridge.KeyLength)}}
	in.Kubeconfig = bridge.Kubeconfig{Secret: bridge.Secret{Secret: &corev1.Secret{}}, Content: []byte("kubeconfig")}
}

// rival is another bridge for b1's DPUCluster, older or younger, that has created nothing yet.
func rival(namespace, created string) bridge.Rival {
	at := metav1.Time{}
	if err := at.UnmarshalQueryParameter(created); err != nil {
		panic(err)
	}
	return bridge.Rival{DPUHCPBridge: &dpuv1.DPUHCPBridge{
		ObjectMeta: metav1.ObjectMeta{Name: "b2", Namespace: namespace, UID: "u2", CreationTimestamp: at},
		Spec:       dpuv1.DPUHCPBridgeSpec{DPUClusterRef: dpuv1.DPUClusterReference{Name: "d1", Namespace: "dpf"}},
	}}
}

// These are creation times of rivals of b1.
const older, sameSecond, younger = "2025-01-01T00:00:00Z", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"

// working adds a HostedCluster that the rival created.
func working(r bridge.Rival) bridge.Rival {
	r.HostedCluster = &hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Name: r.Name, Namespace: r.Namespace, Labels: ours(r.DPUHCPBridge)}}
	return r
}

func TestWhetherNodesMayBootstrapAgainIsSaidByTheBridge(t *testing.T) {
	for policy, none := range map[dpuv1.RebootstrapPolicy]bool{dpuv1.AllowRebootstrap: false, dpuv1.NeverRebootstrap: true, "": false} {
		in := load(t, "testdata/loadbalancer/in.yaml")
		made(&in)
		in.Bridge.Spec.Rebootstrap = policy
		NewWithT(t).Expect(bridge.Of(in).Approve).To(HaveField("NoRebootstrap", none), "%q", policy)
	}
}

func TestWhatHoldsABridgeBack(t *testing.T) {
	const bound, valid, image, metal, ready, injected = "DPUClusterBound/", "SecretsValid/", "BlueFieldContainerImageAvailable/", "MetalLBConfigured/", "Ready/", "KubeconfigInjected/"
	for name, c := range map[string]struct {
		is   func(*bridge.Input)
		want string
		// These are for a hosted cluster that exists already.
		injects, approves bool
	}{
		"DPF is not installed":                  {func(in *bridge.Input) { in.Served.DPF, in.DPUCluster = false, nil }, bound + "DPFNotInstalled", false, false},
		"HyperShift is not installed":           {func(in *bridge.Input) { in.Served.HyperShift = false }, ready + "HyperShiftNotInstalled", true, true},
		"MetalLB is not installed":              {func(in *bridge.Input) { in.Served.MetalLB = false }, metal + "MetalLBNotInstalled", true, true},
		"no such DPUCluster any more":           {func(in *bridge.Input) { in.DPUCluster = nil }, bound + "DPUClusterDeleted", false, false},
		"a DPUCluster that is going":            {func(in *bridge.Input) { in.DPUCluster.DeletionTimestamp = &metav1.Time{} }, bound + "DPUClusterDeleted", false, false},
		"kamaji":                                {func(in *bridge.Input) { in.DPUCluster.Spec.Type = "kamaji" }, bound + "TypeUnsupported", false, false},
		"another type":                          {func(in *bridge.Input) { in.DPUCluster.Spec.Type = "static" }, bound + "TypeMismatch", false, false},
		"another cluster's kubeconfig":          {func(in *bridge.Input) { in.DPUCluster.Spec.Kubeconfig = "mine" }, bound + "KubeconfigTaken", false, false},
		"an older bridge that has made as much": {func(in *bridge.Input) { in.Rivals = []bridge.Rival{working(rival("dpf", older))} }, bound + "DPUClusterTaken", false, false},
		"a younger bridge whose kubeconfig DPF has": {func(in *bridge.Input) {
			in.Rivals, in.DPUCluster.Spec.Kubeconfig = []bridge.Rival{rival("dpf", younger)}, names.BridgeKubeconfig("dpf", "b2")
		}, bound + "DPUClusterTaken", false, false},
		"another type than that of the DPUCluster before": {func(in *bridge.Input) {
			in.Bridge.Spec.ClusterType, in.HostedCluster.Annotations = "", map[string]string{names.AnnotationClusterType: "static"}
		}, bound + "TypeMismatch", false, false},
		"a stranger's reference": {func(in *bridge.Input) {
			in.Bridge.Spec.DPUClusterRef.Namespace, in.DPUCluster.Namespace = "theirs", "theirs"
		}, bound + "RefNotPermitted", false, false},
		"Secrets that may not be read": {func(in *bridge.Input) { in.PullSecret = bridge.Secret{Denied: true} }, valid + "NamespaceNotGranted", true, true},
		"no pull secret":               {func(in *bridge.Input) { in.PullSecret = bridge.Secret{} }, valid + "SecretNotFound", true, true},
		"an empty pull secret": {func(in *bridge.Input) {
			in.PullSecret.Data = map[string][]byte{bridge.PullSecretKey: []byte(`{"auths":{}}`)}
		}, valid + "SecretInvalid", true, true},
		"a key that is gone":                     {func(in *bridge.Input) { in.Key = bridge.Secret{} }, valid + "EncryptionKeyLost", true, true},
		"a key that was cut":                     {func(in *bridge.Input) { in.Key.Data["key"] = []byte("short") }, valid + "EncryptionKeyInvalid", true, true},
		"a key without our labels":               {func(in *bridge.Input) { in.Key.Labels = nil }, valid + "EncryptionKeyLost", true, true},
		"a key that may not be read":             {func(in *bridge.Input) { in.Key = bridge.Secret{Denied: true} }, valid + "NamespaceNotGranted", true, true},
		"no mapping":                             {func(in *bridge.Input) { in.Mapping = nil }, image + "MappingNotFound", true, true},
		"a release that is not mapped":           {func(in *bridge.Input) { in.Mapping.Data = nil }, image + "ImageNotMapped", true, true},
		"a HostedCluster of somebody":            {func(in *bridge.Input) { in.HostedCluster.Labels = nil }, ready + "HostedClusterTaken", false, false},
		"a HostedCluster of a bridge that lives": {func(in *bridge.Input) { in.HostedCluster.Labels[names.LabelOwnerUID] = "u2" }, ready + "HostedClusterTaken", false, false},
		"a HostedCluster that somebody deletes":  {func(in *bridge.Input) { in.HostedCluster.DeletionTimestamp = &metav1.Time{} }, ready + "HostedClusterTerminating", true, false},
		"a NodePool of somebody":                 {func(in *bridge.Input) { in.NodePool.Labels = nil }, ready + "NodePoolTaken", true, true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			in := load(t, "testdata/loadbalancer/in.yaml")
			made(&in)
			in.HostedCluster.Labels, in.NodePool.Labels = ours(in.Bridge), ours(in.Bridge)
			g.Expect(bridge.Of(in)).To(And(HaveField("Frozen", false), HaveField("Inject", Not(BeNil())), HaveField("Approve", Not(BeNil()))))
			c.is(&in)
			p := bridge.Of(in)
			g.Expect(told(p)).To(ContainElement(c.want))
			g.Expect(p.Frozen).To(BeTrue())
			g.Expect(p.Objects).To(BeEmpty())
			g.Expect(p.Inject != nil).To(Equal(c.injects), "injects: %v", told(p))
			g.Expect(p.Approve != nil).To(Equal(c.approves), "approves")
			g.Expect(told(p)).To(Or(Not(ContainElement("Ready/HostedClusterTerminating")), ContainElement("CSRAutoApprovalActive/HostedClusterTerminating")))
		})
	}
}

func TestAKeyOfSomebodyIsNotTakenForANewHostedCluster(t *testing.T) {
	in := load(t, "testdata/loadbalancer/in.yaml")
	made(&in)
	in.HostedCluster, in.NodePool, in.Key.Labels = nil, nil, nil
	NewWithT(t).Expect(told(bridge.Of(in))).To(ContainElement("SecretsValid/NameTaken"))
}

func TestNoKeyIsMissedOfAHostedClusterOfSomebody(t *testing.T) {
	in := load(t, "testdata/loadbalancer/in.yaml")
	made(&in)
	in.HostedCluster.Labels, in.Key = nil, bridge.Secret{}
	p := bridge.Of(in)
	g := NewWithT(t)
	g.Expect(told(p)).To(And(ContainElement("Ready/HostedClusterTaken"), Not(ContainElement("SecretsValid/EncryptionKeyLost"))))
	g.Expect(p.Key).To(BeNil())
	g.Expect(in.Mirror()).To(BeEmpty(), "it says nothing of ours")
}

func TestWhatHoldsNoBridgeBack(t *testing.T) {
	for name, is := range map[string]func(*bridge.Input){
		"a younger bridge":                   func(in *bridge.Input) { in.Rivals = []bridge.Rival{working(rival("dpf", younger))} },
		"a bridge of the same second":        func(in *bridge.Input) { in.Rivals = []bridge.Rival{working(rival("dpf", sameSecond))} },
		"an older one that may not refer":    func(in *bridge.Input) { in.Rivals = []bridge.Rival{working(rival("theirs", older))} },
		"an older one that has made nothing": func(in *bridge.Input) { in.Rivals = []bridge.Rival{rival("dpf", older)} },
		"an older one beside somebody's HostedCluster": func(in *bridge.Input) {
			in.Rivals = []bridge.Rival{working(rival("dpf", older))}
			in.Rivals[0].HostedCluster.Labels = nil
		},
		"an older one of whose kubeconfig DPF knows nothing": func(in *bridge.Input) {
			in.Rivals, in.DPUCluster.Spec.Kubeconfig = []bridge.Rival{working(rival("dpf", older))}, bridge.InjectedKey(in.Bridge).Name
		},
		"a type that is not said":            func(in *bridge.Input) { in.Bridge.Spec.ClusterType = "" },
		"its own kubeconfig":                 func(in *bridge.Input) { in.DPUCluster.Spec.Kubeconfig = bridge.InjectedKey(in.Bridge).Name },
		"a storage class that went":          func(in *bridge.Input) { in.StorageClasses = nil },
		"its own objects after a restore":    func(in *bridge.Input) { in.HostedCluster.Labels[names.LabelOwnerUID] = "dead" },
		"no Node is Ready any more":          func(in *bridge.Input) { in.Bridge.Spec.ExposeThroughLoadBalancer = false },
		"an image of the user's, no mapping": func(in *bridge.Input) { in.Mapping, in.Bridge.Spec.MachineOSImage = nil, "quay.io/example/os:1" },
	} {
		t.Run(name, func(t *testing.T) {
			in := load(t, "testdata/loadbalancer/in.yaml")
			made(&in)
			is(&in)
			NewWithT(t).Expect(bridge.Of(in)).To(And(HaveField("Frozen", false), HaveField("Key", BeNil())))
		})
	}
}

func TestABridgeWhoseSecretsAreNotWatchedSaysSo(t *testing.T) {
	in := load(t, "testdata/loadbalancer/in.yaml")
	made(&in)
	in.Polled = true
	p := bridge.Of(in)
	NewWithT(t).Expect(p.Frozen).To(BeFalse())
	NewWithT(t).Expect(told(p)).To(ContainElement("SecretsValid/SecretsPolled"))
}

func TestHyperShiftKnowsAReleaseBetterThanItsTag(t *testing.T) {
	in := load(t, "testdata/loadbalancer/in.yaml")
	made(&in)
	in.Bridge.Spec.OCPReleaseImage += "-amd64"
	g := NewWithT(t)
	const says = "Ready/ReleaseNotForARM64"
	g.Expect(told(bridge.Of(in))).To(ContainElement(says))
	in.NodePool.Status.Conditions = []hyperv1.NodePoolCondition{{Type: hyperv1.NodePoolValidArchPlatform, Status: "True"}}
	g.Expect(told(bridge.Of(in))).To(ContainElement(says), "that was the release before")
	in.NodePool.Spec.Release.Image = string(in.Bridge.Spec.OCPReleaseImage)
	g.Expect(told(bridge.Of(in))).NotTo(ContainElement(says))
}

func TestThePolicyDecidesWhatADPUClusterTakesAlong(t *testing.T) {
	g := NewWithT(t)
	in := load(t, "testdata/loadbalancer/in.yaml")
	made(&in)
	in.DPUCluster = nil
	bound := []metav1.Condition{{Type: dpuv1.ConditionDPUClusterBound, Status: metav1.ConditionTrue}}
	in.Bridge.Status.Conditions = bound
	g.Expect(bridge.Of(in).End).To(BeFalse(), "Retain")
	in.Bridge.Spec.DPUClusterDeletionPolicy = dpuv1.DeleteHostedCluster
	g.Expect(bridge.Of(in).End).To(BeTrue())
	in.Bridge.Status.Conditions = nil
	g.Expect(bridge.Of(in).End).To(BeFalse(), "restored before its DPUCluster")
	in.Bridge.Status.Conditions, in.Served.DPF = bound, false
	g.Expect(bridge.Of(in).End).To(BeFalse(), "DPF's kinds are not seen")
	in.Served.DPF, in.DPUCluster = true, &dpf.DPUCluster{}
	g.Expect(bridge.Of(in).End).To(BeFalse(), "the DPUCluster is there")
}

func TestInjectionDoesOnlyWhatIsMissing(t *testing.T) {
	g := NewWithT(t)
	in := load(t, "testdata/loadbalancer/in.yaml")
	made(&in)
	g.Expect(*bridge.Of(in).Inject).To(And(HaveField("Refer", true), HaveField("Created", true)))
	in.DPUCluster.Spec.Kubeconfig = bridge.InjectedKey(in.Bridge).Name
	in.DPUCluster.Status.Conditions = []metav1.Condition{{Type: dpf.ConditionCreated, Status: metav1.ConditionTrue}}
	g.Expect(*bridge.Of(in).Inject).To(And(HaveField("Refer", false), HaveField("Created", false)))
	in.Bridge.Spec.ClusterType, in.DPUCluster.Spec.Type, in.DPUCluster.Status.Conditions = "", dpf.TypeStatic, nil
	g.Expect(bridge.Of(in).Inject.Created).To(BeFalse(), "DPF's own manager of static ones sets it")
}

func TestNothingIsInjectedWhile(t *testing.T) {
	for name, c := range map[string]struct {
		is   func(*bridge.Input)
		want string
	}{
		"HyperShift names no kubeconfig":    {func(in *bridge.Input) { in.HostedCluster.Status.KubeConfig = nil }, "WaitingForKubeconfig"},
		"the kubeconfig is not there":       {func(in *bridge.Input) { in.Kubeconfig = bridge.Kubeconfig{} }, "WaitingForKubeconfig"},
		"the kubeconfig may not be read":    {func(in *bridge.Input) { in.Kubeconfig.Secret = bridge.Secret{Denied: true} }, "NamespaceNotGranted"},
		"the kubeconfig is not harmless":    {func(in *bridge.Input) { in.Kubeconfig.Refused = "NoCommand" }, "KubeconfigRefused"},
		"our own Secret may not be read":    {func(in *bridge.Input) { in.Injected = bridge.Secret{Denied: true} }, "NamespaceNotGranted"},
		"a Secret of its name is another's": {func(in *bridge.Input) { in.Injected.Secret = &corev1.Secret{} }, "NameTaken"},
	} {
		t.Run(name, func(t *testing.T) {
			g, in := NewWithT(t), load(t, "testdata/loadbalancer/in.yaml")
			made(&in)
			c.is(&in)
			p := bridge.Of(in)
			g.Expect(p.Inject).To(BeNil())
			g.Expect(told(p)).To(ContainElement("KubeconfigInjected/" + c.want))
		})
	}
}

// Nobody learns to whom else a DPUCluster's owner gave a reference grant, nor the name of that tenant's Secret.
func TestARefusalNamesNoBridgeOfAnotherNamespace(t *testing.T) {
	told := func(namespace string, change func(*bridge.Input)) string {
		in := load(t, "testdata/loadbalancer/in.yaml")
		in.Bridge.Namespace, in.Bridge.Spec.DPUClusterRef = namespace, dpuv1.DPUClusterReference{Name: "d1", Namespace: "dpf"}
		in.DPUCluster.Annotations = map[string]string{names.AnnotationAllowedNamespaces: "clusters,rival"}
		change(&in)
		refused, _ := bridge.Judge(in, nil)
		NewWithT(t).Expect(refused).To(HaveLen(1))
		return refused[0].Message
	}
	taken := func(in *bridge.Input) { in.Rivals = []bridge.Rival{working(rival("rival", older))} }
	keyed := func(in *bridge.Input) { in.DPUCluster.Spec.Kubeconfig = "rivals" }
	g := NewWithT(t)
	g.Expect(told("clusters", taken)).To(HavePrefix("another DPUHCPBridge already has DPUCluster dpf/d1"))
	g.Expect(told("rival", taken)).To(HavePrefix("DPUHCPBridge b2 already has"))
	g.Expect(told("clusters", keyed)).To(And(ContainSubstring("already has a kubeconfig, which"), Not(ContainSubstring("rivals"))))
	g.Expect(told("dpf", keyed)).To(ContainSubstring("a kubeconfig, Secret rivals, which"))
}

func TestWhatIsOfABridge(t *testing.T) {
	for name, c := range map[string]struct {
		label, value string
		owned        bool
	}{
		"made by it":                               {names.LabelOwnerUID, "u1", true},
		"made before a restore":                    {names.LabelOwnerUID, "dead", true},
		"made by one that lives":                   {names.LabelOwnerUID, "u2", false},
		"made by nobody":                           {names.LabelOwnerUID, "", false},
		"of another name, before a restore":        {names.LabelBridge, "b2", false},
		"of another namespace, before a restore":   {names.LabelBridgeNamespace, "theirs", false},
		"labelled by somebody else, whoever it is": {names.LabelManagedBy, "theirs", false},
	} {
		t.Run(name, func(t *testing.T) {
			in := load(t, "testdata/loadbalancer/in.yaml")
			labels := ours(in.Bridge)
			labels[names.LabelOwnerUID] = "dead"
			labels[c.label] = c.value
			NewWithT(t).Expect(in.Owns(&metav1.ObjectMeta{Labels: labels})).To(Equal(c.owned))
		})
	}
}

func TestEtcdNeedsAStorageClass(t *testing.T) {
	const missing = "Ready/StorageClassNotFound"
	for name, c := range map[string]struct {
		change func(*bridge.Input)
		told   OmegaMatcher
	}{
		"the named one":             {func(*bridge.Input) {}, Not(ContainElement(missing))},
		"another than the named":    {func(in *bridge.Input) { in.StorageClasses[0].Name = "slow" }, ContainElement(missing)},
		"any, though none is named": {func(in *bridge.Input) { in.Bridge.Spec.EtcdStorageClass = "" }, ContainElement(missing)},
		"the default, if none is named": {func(in *bridge.Input) {
			in.Bridge.Spec.EtcdStorageClass = ""
			in.StorageClasses[0].Annotations = map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}
		}, Not(ContainElement(missing))},
	} {
		t.Run(name, func(t *testing.T) {
			in := load(t, "testdata/loadbalancer/in.yaml")
			c.change(&in)
			NewWithT(t).Expect(told(bridge.Of(in))).To(c.told)
		})
	}
}

func TestANodesExternalAddressIsTakenFirst(t *testing.T) {
	in := load(t, "testdata/nodeports/in.yaml")
	in.Nodes[1].Status.Addresses = append(in.Nodes[1].Status.Addresses, corev1.NodeAddress{Type: corev1.NodeExternalIP, Address: "198.51.100.3"})
	NewWithT(t).Expect(golden.YAML(t, bridge.Of(in).Objects)).To(And(ContainSubstring("address: 198.51.100.3"), Not(ContainSubstring("10.0.0."))))
}

func TestAControlPlaneIsReachedOnlyWhereItWasPublished(t *testing.T) {
	in := load(t, "testdata/nodeports/in.yaml")
	made(&in)
	in.HostedCluster.Spec.Services = []hyperv1.ServicePublishingStrategyMapping{{Service: hyperv1.APIServer, ServicePublishingStrategy: hyperv1.ServicePublishingStrategy{
		Type: hyperv1.NodePort, NodePort: &hyperv1.NodePortPublishingStrategy{Address: "10.0.0.2"},
	}}}
	g, away := NewWithT(t), ContainElement("Ready/NodeAddressNotFound")
	g.Expect(told(bridge.Of(in))).NotTo(away)
	in.Nodes[2].Status.Conditions[0].Status = corev1.ConditionFalse
	g.Expect(told(bridge.Of(in))).To(away, "it is there, and not Ready")
	in.Nodes = in.Nodes[:2]
	p := bridge.Of(in)
	g.Expect(told(p)).To(away, "it is gone")
	g.Expect(p.Frozen).To(BeFalse(), "all else goes on")
}

func TestADeletionIsTakenInItsOrder(t *testing.T) {
	in := load(t, "testdata/loadbalancer/in.yaml")
	made(&in)
	in.DPUCluster.Spec.Kubeconfig = bridge.InjectedKey(in.Bridge).Name
	key := bridge.InjectedKey(in.Bridge)
	secret := func(namespace, name string, labels map[string]string) corev1.Secret {
		return corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels}}
	}
	r := bridge.Remains{
		Input: in, DPUs: []dpf.DPU{{ObjectMeta: metav1.ObjectMeta{Namespace: "dpf", Name: "card"}, Spec: dpf.DPUSpec{Cluster: dpf.Reference{Name: "d1", Namespace: "dpf"}}}},
		Secrets: []corev1.Secret{secret(key.Namespace, key.Name, ours(in.Bridge)), secret("dpf", "copy", ours(in.Bridge)), secret("dpf", "theirs", nil)},
	}
	g := NewWithT(t)
	in.Bridge.Annotations = map[string]string{names.AnnotationForceDelete: "false"}
	g.Expect(bridge.End(r)).To(And(HaveField("Reason", dpuv1.ReasonCleanupDPUsAttached), HaveField("Message", And(ContainSubstring("DPUs dpf/card of"), Not(ContainSubstring("ask who")))), HaveField("Cluster", BeNil()), HaveField("Inject.Refer", false)))

	strange := r
	strange.Bridge = in.Bridge.DeepCopy()
	strange.DPUs = slices.Clone(r.DPUs)
	strange.DPUs[0].Namespace = "theirs"
	g.Expect(bridge.End(strange)).To(And(HaveField("Reason", dpuv1.ReasonCleanupDPUsAttached), HaveField("Message", HaveSuffix("; ask who made theirs/card, which are in a namespace of neither the DPUCluster nor the DPUDeployment"))))
	strange.Bridge.Spec.DPUDeploymentRef = &dpuv1.DPUDeploymentReference{Namespace: "theirs", Name: "ovn"}
	g.Expect(bridge.End(strange)).To(HaveField("Message", Not(ContainSubstring("ask who"))))

	forced := r
	forced.Bridge = in.Bridge.DeepCopy()
	forced.Bridge.Annotations = map[string]string{names.AnnotationForceDelete: "true"}
	g.Expect(bridge.End(forced)).To(And(HaveField("Cluster", Not(BeNil())), HaveField("Pool", Not(BeNil()))))

	r.DPUs[0].Spec.Cluster.Name = "another"
	g.Expect(bridge.End(r)).To(And(HaveField("Cluster", Not(BeNil())), HaveField("Unrefer", false), HaveField("Secrets", BeEmpty()), HaveField("Inject", BeNil())))
	r.HostedCluster = nil
	g.Expect(bridge.End(r)).To(And(HaveField("Cluster", BeNil()), HaveField("Pool", Not(BeNil()))))
	r.NodePool = nil
	g.Expect(bridge.End(r)).To(And(HaveField("Unrefer", true), HaveField("Secrets", ConsistOf(r.Secrets[0]))))
	r.DPUCluster.Spec.Kubeconfig, r.Secrets = "another-bridges", r.Secrets[1:]
	g.Expect(bridge.End(r)).To(And(HaveField("Unrefer", false), HaveField("Secrets", ConsistOf(r.Secrets[0])), HaveField("Others", BeEmpty())))
	ignition, theirs := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Labels: ours(in.Bridge)}}, &corev1.ConfigMap{}
	r.Secrets, r.Others = r.Secrets[1:], []bridge.Object{ignition, theirs}
	g.Expect(bridge.End(r)).To(And(HaveField("Reason", dpuv1.ReasonCleanupInProgress), HaveField("Others", ConsistOf(BeIdenticalTo(ignition)))))
	r.Others = []bridge.Object{theirs}
	g.Expect(bridge.End(r)).To(Equal(bridge.Ending{}))
}

// Somebody who changes the labels of a hosted cluster does not have us delete the key of its etcd.
func TestAKeyIsKeptAsLongAsAHostedClusterReadsIt(t *testing.T) {
	g, in := NewWithT(t), load(t, "testdata/loadbalancer/in.yaml")
	made(&in)
	key := corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "dpf", Name: names.BridgeKey("b1"), Labels: ours(in.Bridge)}}
	other := corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "dpf", Name: "copy", Labels: ours(in.Bridge)}}
	in.Key.Secret, in.NodePool = &key, nil
	in.HostedCluster.Labels = nil
	r := bridge.Remains{Input: in, Secrets: []corev1.Secret{key, other}}
	g.Expect(bridge.End(r)).NotTo(HaveField("Reason", dpuv1.ReasonCleanupFailed), "of somebody, who reads nothing of ours")
	g.Expect(bridge.Of(in).Findings).To(ContainElement(And(HaveField("Reason", "HostedClusterTaken"), HaveField("Message", ContainSubstring("another name")))))

	in.HostedCluster.Spec.SecretEncryption = &hyperv1.SecretEncryptionSpec{AESCBC: &hyperv1.AESCBCSpec{ActiveKey: corev1.LocalObjectReference{Name: key.Name}}}
	labels := "kubectl -n dpf label --overwrite hostedcluster b1 app.kubernetes.io/managed-by=oooi"
	g.Expect(bridge.End(r)).To(And(HaveField("Reason", dpuv1.ReasonCleanupFailed), HaveField("Secrets", BeEmpty()), HaveField("Message", And(ContainSubstring(labels), ContainSubstring(key.Name)))))
	g.Expect(bridge.Of(in).Findings).To(ContainElement(And(HaveField("Reason", "HostedClusterTaken"), HaveField("Message", ContainSubstring(labels)))))
	in.Key.Secret = nil // admission reads no Secret
	in.Bridge.Status.Conditions = []metav1.Condition{{Type: dpuv1.ConditionHostedClusterAvailable}}
	g.Expect(bridge.Of(in).Findings).To(ContainElement(And(HaveField("Reason", "HostedClusterTaken"), HaveField("Message", ContainSubstring(labels)))))
	in.Bridge.Status.Conditions = nil
	g.Expect(bridge.Of(in).Findings).To(ContainElement(And(HaveField("Reason", "HostedClusterTaken"), HaveField("Message", ContainSubstring("another name")))), "HyperShift's command line names keys alike")
	r.Bridge = in.Bridge.DeepCopy()
	r.Bridge.Annotations = map[string]string{names.AnnotationForceDelete: "true"}
	g.Expect(bridge.End(r)).To(HaveField("Secrets", ConsistOf(other)), "all but the key")
	r.Secrets = []corev1.Secret{key}
	g.Expect(bridge.End(r)).To(Equal(bridge.Ending{}), "and it ends")
}

// MetalLB announces whatever it is given.
func TestABridgeHasOnlyWhatItMayAnnounced(t *testing.T) {
	for name, c := range map[string]struct {
		vip  v1alpha1.IPAddress
		want string
	}{
		"of an allowed network":       {"2001:db8::10", ""},
		"of another allowed network":  {"192.0.2.10", ""},
		"mapped into IPv6":            {"::ffff:192.0.2.10", ""},
		"the gateway's":               {"198.51.100.1", "VirtualIPNotAllowed"},
		"mapped, of no such network":  {"::ffff:198.51.100.1", "VirtualIPNotAllowed"},
		"the service network's":       {"172.30.0.1", "VirtualIPNotAllowed"},
		"a Node's":                    {"192.0.2.20", "VirtualIPInUse"},
		"a Node's, written otherwise": {"::ffff:192.0.2.20", "VirtualIPInUse"},
		"a Node's that is not Ready":  {"192.0.2.21", "VirtualIPInUse"},
	} {
		t.Run(name, func(t *testing.T) {
			g, in := NewWithT(t), load(t, "testdata/loadbalancer/in.yaml")
			in.Nodes = append(in.Nodes, corev1.Node{Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Address: "192.0.2.20"}, {Address: "192.0.2.21"}, {Address: "a-name"}}}})
			in.Bridge.Spec.MetalLBVirtualIP = c.vip
			p := bridge.Of(in)
			g.Expect(p.Frozen).To(Equal(c.want != ""), "%v", p.Findings)
			if c.want != "" {
				g.Expect(told(p)).To(ContainElement("MetalLBConfigured/" + c.want))
			}
			in.Settings.VirtualIPs = nil
			g.Expect(told(bridge.Of(in))).To(ContainElement("MetalLBConfigured/VirtualIPNotAllowed"), "by default none is")
		})
	}
}

// announcing sets a rival's virtual IP to another bridge's.
func announcing(r bridge.Rival, of bridge.Input) bridge.Rival {
	r.Spec.ExposeThroughLoadBalancer, r.Spec.MetalLBVirtualIP = true, of.Bridge.Spec.MetalLBVirtualIP
	return r
}

func TestAVirtualIPIsThatOfTheBridgeThatWorks(t *testing.T) {
	g, in := NewWithT(t), load(t, "testdata/loadbalancer/in.yaml")
	waits := announcing(rival("theirs", older), in)
	in.Rivals = []bridge.Rival{waits}
	g.Expect(bridge.Of(in).Frozen).To(BeFalse(), "one that has nothing yet, and may never have, is in nobody's way")
	in.Rivals = []bridge.Rival{waits, working(waits)}
	g.Expect(told(bridge.Of(in))).To(ContainElement("MetalLBConfigured/VirtualIPInUse"))
	made(&in)
	in.HostedCluster.Labels, in.NodePool.Labels = ours(in.Bridge), ours(in.Bridge)
	g.Expect(bridge.Of(in).Frozen).To(BeFalse(), "nor is one that comes when ours works")
	g.Expect(told(bridge.Of(in))).NotTo(ContainElement("MetalLBConfigured/VirtualIPInUse"))
	in.Settings.VirtualIPs = nil
	g.Expect(bridge.Of(in)).To(And(HaveField("Frozen", false), HaveField("Findings", ContainElement(HaveField("Reason", "VirtualIPNotAllowed")))), "an upgrade says so, and stops nothing")
}

// A bridge's author can create a HostedCluster with our labels, but not MetalLB's pool.
func TestNoAddressIsAnnouncedForAHostedClustersLabels(t *testing.T) {
	g, in := NewWithT(t), load(t, "testdata/loadbalancer/in.yaml")
	made(&in)
	pools := func() int {
		p := bridge.Of(in)
		g.Expect(p.Frozen).To(BeFalse(), "%v", p.Findings)
		return len(slices.DeleteFunc(p.Objects, func(o runtime.ApplyConfiguration) bool {
			return !strings.Contains(golden.YAML(t, o), "apiVersion: metallb.io/")
		}))
	}
	g.Expect(pools()).To(Equal(2), "both are there")
	pool := &metallb.IPAddressPool{Spec: metallb.PoolSpec{Addresses: []string{netip.PrefixFrom(bridge.VirtualIP(in.Bridge), 128).String()}}}
	for what, refuse := range map[string]func(*bridge.Input){
		"not allowed": func(in *bridge.Input) { in.Settings.VirtualIPs = nil },
		"a Node's": func(in *bridge.Input) {
			in.Nodes = append(in.Nodes, corev1.Node{Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Address: bridge.VirtualIP(in.Bridge).String()}}}})
		},
		"announced for another": func(in *bridge.Input) {
			theirs := announcing(rival("theirs", younger), *in)
			theirs.Pool = pool
			in.Rivals = []bridge.Rival{theirs}
		},
	} {
		in = load(t, "testdata/loadbalancer/in.yaml")
		made(&in)
		refuse(&in)
		g.Expect(pools()).To(BeZero(), what)
		in.Pool = &metallb.IPAddressPool{Spec: metallb.PoolSpec{Addresses: []string{"192.0.2.99/32"}}}
		g.Expect(pools()).To(BeZero(), "%s, and he has another", what)
		in.Pool = pool
		g.Expect(pools()).To(Equal(2), "%s, and it is his", what)
	}
}

// By a HostedCluster of their own, a bridge's author learns nothing about a DPUCluster that it never had: neither whether it exists, nor its
// DPUs.
func TestABridgeHearsNothingOfADPUClusterThatItMayNotReferTo(t *testing.T) {
	g, in := NewWithT(t), load(t, "testdata/loadbalancer/in.yaml")
	made(&in)
	in.Bridge.Spec.DPUClusterRef.Namespace, in.DPUCluster.Namespace = "theirs", "theirs"
	there := in.DPUCluster
	end := func() bridge.Ending {
		return bridge.End(bridge.Remains{Input: in, DPUs: []dpf.DPU{{ObjectMeta: metav1.ObjectMeta{Name: "card"}, Spec: dpf.DPUSpec{Cluster: dpf.Reference{Name: "d1", Namespace: "theirs"}}}}})
	}
	for _, cluster := range []*dpf.DPUCluster{there, nil} {
		in.DPUCluster = cluster
		g.Expect(told(bridge.Of(in))).To(ContainElement("DPUClusterBound/RefNotPermitted"))
		g.Expect(end()).To(HaveField("Reason", dpuv1.ReasonCleanupInProgress))
	}
	injected := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "theirs", Name: bridge.InjectedKey(in.Bridge).Name, Labels: ours(in.Bridge), Annotations: map[string]string{names.AnnotationDPUCluster: "d1"}}}
	for _, reason := range []string{"Bound", "DPUClusterDeleted"} {
		in.Bridge.Status.Conditions = []metav1.Condition{{Type: dpuv1.ConditionDPUClusterBound, Reason: reason}}
		in.Injected.Secret = injected
		g.Expect(told(bridge.Of(in))).To(ContainElement("DPUClusterBound/DPUClusterDeleted"), "it was its own")
		g.Expect(end()).To(HaveField("Reason", dpuv1.ReasonCleanupDPUsAttached))
		in.Injected.Secret = nil
	}
	in.Bridge.Status.Conditions, in.DPUCluster = nil, there
	there.Spec.Kubeconfig = bridge.InjectedKey(in.Bridge).Name
	g.Expect(end()).To(HaveField("Reason", dpuv1.ReasonCleanupDPUsAttached), "DPF reaches it, though permission was withdrawn")
}

// Whoever may also write the status of a bridge learns no more: its deletion and its messages do not depend on the DPUCluster.
func TestAForgedStatusTellsNothingOfADPUCluster(t *testing.T) {
	card := dpf.DPU{ObjectMeta: metav1.ObjectMeta{Name: "card"}, Spec: dpf.DPUSpec{Cluster: dpf.Reference{Name: "d1", Namespace: "theirs"}}}
	strangers := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "theirs", Name: names.BridgeKubeconfig("dpf", "b1"), Labels: map[string]string{"by": "a stranger"}}}
	earlier := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{ // of a bridge with this name that referred to another DPUCluster there
		Namespace: "theirs", Name: names.BridgeKubeconfig("dpf", "b1"), Labels: ours(load(t, "testdata/loadbalancer/in.yaml").Bridge), Annotations: map[string]string{names.AnnotationDPUCluster: "d0"},
	}}
	for _, reason := range []string{"Bound", "DPUClusterDeleted"} {
		for _, policy := range []dpuv1.DPUClusterDeletionPolicy{dpuv1.RetainHostedCluster, dpuv1.DeleteHostedCluster} {
			for _, secret := range []*corev1.Secret{nil, strangers, earlier} {
				for _, works := range []bool{false, true} {
					said := map[string]bool{}
					for _, is := range []func(*bridge.Input){
						func(*bridge.Input) {},
						func(in *bridge.Input) { in.DPUCluster = nil },
						func(in *bridge.Input) { in.DPUCluster.DeletionTimestamp = &metav1.Time{} },
					} {
						in := load(t, "testdata/loadbalancer/in.yaml")
						if works {
							made(&in)
						}
						in.Bridge.Spec.DPUClusterRef.Namespace, in.DPUCluster.Namespace, in.Bridge.Spec.DPUClusterDeletionPolicy = "theirs", "theirs", policy
						in.Bridge.Status.Conditions = []metav1.Condition{{Type: dpuv1.ConditionDPUClusterBound, Status: metav1.ConditionTrue, Reason: reason}}
						in.Injected.Secret = secret
						is(&in)
						p := bridge.Of(in)
						remains := bridge.Remains{Input: in, DPUs: []dpf.DPU{card}}
						if secret != nil {
							remains.Secrets = []corev1.Secret{*secret}
						}
						end := bridge.End(remains)
						said[golden.YAML(t, []any{p.Findings, p.End, end.Reason, end.Message})] = true
					}
					NewWithT(t).Expect(said).To(HaveLen(1), "%s %s", reason, policy)
				}
			}
		}
	}
}

// The Secret that we created in another namespace proves that the DPUCluster there was the bridge's, so that the bridge may say what became
// of it.
func TestABridgeGoesWithADPUClusterThatItHad(t *testing.T) {
	for name, c := range map[string]struct {
		is   func(*bridge.Input)
		goes bool
	}{
		"it is gone":                           {func(in *bridge.Input) { in.DPUCluster = nil }, true},
		"it is going":                          {func(in *bridge.Input) { in.DPUCluster.DeletionTimestamp = &metav1.Time{} }, true},
		"it is there":                          {func(*bridge.Input) {}, false},
		"it is gone, and nothing was injected": {func(in *bridge.Input) { in.DPUCluster, in.Injected.Secret = nil, nil }, false},
		"it is going, and admits the bridge": {func(in *bridge.Input) {
			in.DPUCluster.DeletionTimestamp, in.DPUCluster.Annotations, in.Injected.Secret = &metav1.Time{}, map[string]string{names.AnnotationAllowedNamespaces: "dpf"}, nil
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			in := load(t, "testdata/loadbalancer/in.yaml")
			made(&in)
			in.Bridge.Spec.DPUClusterRef.Namespace, in.DPUCluster.Namespace, in.Bridge.Spec.DPUClusterDeletionPolicy = "theirs", "theirs", dpuv1.DeleteHostedCluster
			in.Bridge.Status.Conditions = []metav1.Condition{{Type: dpuv1.ConditionDPUClusterBound, Status: metav1.ConditionTrue, Reason: "Bound"}}
			in.Injected.Secret = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Labels: ours(in.Bridge), Annotations: map[string]string{names.AnnotationDPUCluster: "d1"}}}
			c.is(&in)
			NewWithT(t).Expect(bridge.Of(in).End).To(Equal(c.goes))
		})
	}
}

// The Secret exists from the moment that the bridge has the DPUCluster, because that may be deleted before there is a kubeconfig.
func TestABridgeThatHasADPUClusterIsKnownBeforeItsKubeconfig(t *testing.T) {
	for name, c := range map[string]struct {
		is     func(*bridge.Input)
		marked bool
	}{
		"it is bound":                   {func(*bridge.Input) {}, true},
		"its DPUCluster is not granted": {func(in *bridge.Input) { in.DPUCluster.Annotations = nil }, false},
		"its DPUCluster is beside it": {func(in *bridge.Input) {
			in.Bridge.Spec.DPUClusterRef.Namespace, in.DPUCluster.Namespace = "", in.Bridge.Namespace
		}, false},
		"no Secret may be read there": {func(in *bridge.Input) { in.Injected.Denied = true }, false},
		"its Secret is there":         {func(in *bridge.Input) { in.Injected.Secret = &corev1.Secret{} }, false},
		"DPF has a kubeconfig of it":  {func(in *bridge.Input) { in.DPUCluster.Spec.Kubeconfig = bridge.InjectedKey(in.Bridge).Name }, false},
	} {
		t.Run(name, func(t *testing.T) {
			g, in := NewWithT(t), load(t, "testdata/loadbalancer/in.yaml")
			in.Bridge.Spec.DPUClusterRef.Namespace, in.DPUCluster.Namespace = "theirs", "theirs"
			in.DPUCluster.Annotations = map[string]string{names.AnnotationAllowedNamespaces: "dpf"}
			in.Kubeconfig, in.HostedCluster = bridge.Kubeconfig{}, nil
			c.is(&in)
			i := bridge.Of(in).Inject
			g.Expect(i != nil).To(Equal(c.marked))
			if c.marked {
				g.Expect(i.Refer || i.Created).To(BeFalse(), "DPF is told when there is a kubeconfig")
				g.Expect(i.Secret).To(And(HaveField("Data", BeEmpty()), HaveField("Namespace", HaveValue(Equal("theirs"))), HaveField("Annotations", HaveKeyWithValue(names.AnnotationDPUCluster, "d1"))))
			}
		})
	}
}

// HyperShift puts a control plane into the namespace with the joined names, whosever that is. A bridge's author does not learn whose.
func TestABridgeGetsNoControlPlaneOfAnother(t *testing.T) {
	taken := ContainElement(And(HaveField("Condition", dpuv1.ConditionReady), HaveField("Reason", "NamespaceTaken")))
	namespace := func(labels, annotations map[string]string) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "dpf-b1", Labels: labels, Annotations: annotations}}
	}
	said := map[string]bool{}
	theirs := []*hyperv1.HostedCluster{{ObjectMeta: metav1.ObjectMeta{Namespace: "dpf-b1", Name: "x", CreationTimestamp: metav1.Unix(20, 0)}}}
	for name, c := range map[string]struct {
		is    func(*bridge.Input)
		taken bool
	}{
		"nobody's":                {func(*bridge.Input) {}, false},
		"another HostedCluster's": {func(in *bridge.Input) { in.Neighbours = theirs }, true},
		"somebody's":              {func(in *bridge.Input) { in.Namespace = namespace(nil, nil) }, true},
		"somebody's, for others": {func(in *bridge.Input) {
			in.Namespace = namespace(nil, map[string]string{names.AnnotationAllowedNamespaces: "dpf2"})
		}, true},
		"somebody's, for us": {func(in *bridge.Input) {
			in.Namespace = namespace(nil, map[string]string{names.AnnotationAllowedNamespaces: "dpf"})
		}, false},
		"labelled by somebody": {func(in *bridge.Input) {
			in.Namespace = namespace(map[string]string{"hypershift.openshift.io/hosted-control-plane": "true"}, nil)
		}, true},
		"of an earlier hosted cluster": {func(in *bridge.Input) {
			in.Bridge.Status.Conditions = []metav1.Condition{{Type: dpuv1.ConditionHostedClusterAvailable}}
			in.Namespace = namespace(map[string]string{"hypershift.openshift.io/hosted-control-plane": "true"}, nil)
		}, false},
		"another's, by its label": {func(in *bridge.Input) {
			in.Namespace, in.Neighbours = namespace(map[string]string{"hypershift.openshift.io/hosted-control-plane": "true"}, nil), theirs
		}, true},
		"ours, before another came": {func(in *bridge.Input) {
			made(in)
			in.HostedCluster.CreationTimestamp, in.Neighbours = metav1.Unix(10, 0), theirs
		}, false},
		"another's, and ours by its labels": {func(in *bridge.Input) {
			made(in)
			in.HostedCluster.CreationTimestamp, in.Neighbours = metav1.Unix(30, 0), theirs
		}, true},
		"another's of the same second, and ours by its labels": {func(in *bridge.Input) {
			made(in)
			in.HostedCluster.CreationTimestamp, in.HostedCluster.UID, in.Neighbours = metav1.Unix(20, 0), "ours", theirs
		}, true},
		"somebody's, and ours by its labels": {func(in *bridge.Input) {
			made(in)
			in.HostedCluster.CreationTimestamp, in.Namespace = metav1.Unix(30, 0), namespace(nil, nil)
		}, true},
		"made for ours": {func(in *bridge.Input) {
			made(in)
			in.HostedCluster.CreationTimestamp, in.Namespace = metav1.Unix(10, 0), namespace(nil, nil)
			in.Namespace.CreationTimestamp = in.HostedCluster.CreationTimestamp
		}, false},
		"restored before ours": {func(in *bridge.Input) {
			made(in)
			in.HostedCluster.CreationTimestamp = metav1.Unix(30, 0)
			in.Namespace = namespace(map[string]string{"hypershift.openshift.io/hosted-control-plane": "true"}, nil)
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			in := load(t, "testdata/loadbalancer/in.yaml")
			c.is(&in)
			p := bridge.Of(in)
			NewWithT(t).Expect(p.Frozen).To(Equal(c.taken), "%v", p.Findings)
			if c.taken {
				NewWithT(t).Expect(p.Findings).To(taken)
				NewWithT(t).Expect(p.Approve).To(BeNil(), "nothing of it is dialled")
			}
			for _, f := range p.Findings {
				if f.Condition == dpuv1.ConditionReady && f.Reason == "NamespaceTaken" {
					said[f.Field+": "+f.Message] = true
				}
			}
		})
	}
	g := NewWithT(t)
	g.Expect(said).To(HaveLen(1), "who has the namespace is not told")
	for sentence := range said {
		g.Expect(sentence).To(And(HavePrefix("metadata.name: "), ContainSubstring("namespace dpf-b1"), ContainSubstring("dpf/b1"), ContainSubstring("give the bridge another name")))
	}
}

func TestADeletionWritesNoKubeconfigThatIsNotTheBridges(t *testing.T) {
	for name, c := range map[string]struct {
		is   func(*bridge.Input)
		want OmegaMatcher
	}{
		"DPF has it":                        {func(*bridge.Input) {}, Not(BeNil())},
		"DPF has none yet":                  {func(in *bridge.Input) { in.DPUCluster.Spec.Kubeconfig = "" }, BeNil()},
		"DPF has another":                   {func(in *bridge.Input) { in.DPUCluster.Spec.Kubeconfig = "mine" }, BeNil()},
		"a Secret of its name is another's": {func(in *bridge.Input) { in.Injected.Secret = &corev1.Secret{} }, BeNil()},
		"the DPUCluster goes as well":       {func(in *bridge.Input) { in.DPUCluster.DeletionTimestamp = &metav1.Time{} }, BeNil()},
		"the reference is not granted": {func(in *bridge.Input) {
			in.Bridge.Spec.DPUClusterRef.Namespace, in.DPUCluster.Namespace = "theirs", "theirs"
		}, BeNil()},
	} {
		t.Run(name, func(t *testing.T) {
			in := load(t, "testdata/loadbalancer/in.yaml")
			made(&in)
			in.DPUCluster.Spec.Kubeconfig = bridge.InjectedKey(in.Bridge).Name
			c.is(&in)
			key := bridge.ClusterKey(in.Bridge)
			step := bridge.End(bridge.Remains{Input: in, DPUs: []dpf.DPU{{Spec: dpf.DPUSpec{Cluster: dpf.Reference{Name: key.Name, Namespace: key.Namespace}}}}})
			NewWithT(t).Expect(step).To(And(HaveField("Reason", dpuv1.ReasonCleanupDPUsAttached), HaveField("Inject", c.want)))
		})
	}
}

// A bridge without permission to read Secrets has created none there, unless one of these says so: the status, which a restore loses, the
// hosted cluster, or the DPUCluster.
func TestADeletionMissesOnlySecretsThatWereMade(t *testing.T) {
	in := load(t, "testdata/loadbalancer/in.yaml")
	in.Bridge.Spec.DPUClusterRef.Namespace, in.DPUCluster.Namespace = "cards", "cards"
	applied := []metav1.Condition{{Type: dpuv1.ConditionIgnitionConfigured, Status: metav1.ConditionTrue}}
	for name, c := range map[string]struct {
		denied string
		is     func(*bridge.Input)
		missed bool
	}{
		"nothing was made":              {"dpf", func(*bridge.Input) {}, false},
		"its status says so":            {"dpf", func(in *bridge.Input) { in.Bridge.Status.Conditions = applied }, true},
		"it has a hosted cluster":       {"dpf", made, true},
		"nothing was injected":          {"cards", made, false},
		"the DPUCluster refers to it":   {"cards", func(in *bridge.Input) { in.DPUCluster.Spec.Kubeconfig = bridge.InjectedKey(in.Bridge).Name }, true},
		"the DPUCluster refers to none": {"cards", func(in *bridge.Input) { in.Bridge.Status.Conditions = applied }, false},
		"the DPUCluster is gone":        {"cards", func(in *bridge.Input) { in.DPUCluster, in.Bridge.Status.Conditions = nil, applied }, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			r := bridge.Remains{Input: in, Denied: []string{c.denied}}
			r.Bridge, r.DPUCluster = in.Bridge.DeepCopy(), &dpf.DPUCluster{ObjectMeta: in.DPUCluster.ObjectMeta}
			c.is(&r.Input)
			step := bridge.End(r)
			g.Expect(step.Reason == dpuv1.ReasonCleanupFailed).To(Equal(c.missed), "%v", step)
			if c.missed {
				g.Expect(step.Message).To(ContainSubstring("kubectl apply -n " + c.denied + " -k config/components/dpu-bridge"))
				r.Bridge.Annotations = map[string]string{names.AnnotationForceDelete: "true"}
				g.Expect(bridge.End(r).Reason).NotTo(Equal(dpuv1.ReasonCleanupFailed))
			}
		})
	}
}
