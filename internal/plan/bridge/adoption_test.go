package bridge_test

import (
	"testing"

	. "github.com/onsi/gomega"
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/plan/bridge"
)

// left is what a DPFHCPProvisioner of the bridge's name leaves when it is deleted with --cascade=orphan.
func left(t *testing.T) bridge.Input {
	t.Helper()
	in := load(t, "testdata/nodeports/in.yaml")
	at := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name, Namespace: "dpf"} }
	hc := &hyperv1.HostedCluster{ObjectMeta: at("b1")}
	hc.Annotations = map[string]string{names.AnnotationAdoptBy: "dpf/b1"}
	hc.Spec.DNS.BaseDomain, hc.Spec.Platform.Type, hc.Spec.Networking.NetworkType = "example.com", hyperv1.NonePlatform, hyperv1.Other
	hc.Spec.ControllerAvailabilityPolicy = hyperv1.HighlyAvailable
	hc.Spec.Etcd = hyperv1.EtcdSpec{ManagementType: hyperv1.Managed, Managed: &hyperv1.ManagedEtcdSpec{}}
	hc.Spec.SecretEncryption = &hyperv1.SecretEncryptionSpec{Type: hyperv1.AESCBC, AESCBC: &hyperv1.AESCBCSpec{ActiveKey: corev1.LocalObjectReference{Name: names.BridgeKey("b1")}}}
	hc.Spec.Services = []hyperv1.ServicePublishingStrategyMapping{{Service: hyperv1.APIServer, ServicePublishingStrategy: hyperv1.ServicePublishingStrategy{Type: hyperv1.NodePort, NodePort: &hyperv1.NodePortPublishingStrategy{Address: "10.0.0.3"}}}}
	in.HostedCluster = hc
	in.Key.Secret = &corev1.Secret{ObjectMeta: at(names.BridgeKey("b1")), Data: map[string][]byte{"key": make([]byte, bridge.KeyLength)}}
	in.NodePool = &hyperv1.NodePool{ObjectMeta: at("b1")}
	in.NodePool.Spec.ClusterName, in.NodePool.Spec.Arch = "b1", hyperv1.ArchitectureARM64
	return in
}

func TestAHostedClusterThatNothingOwnsIsTakenOver(t *testing.T) {
	g, in := NewWithT(t), left(t)
	p := bridge.Of(in)
	g.Expect(told(p)).To(ContainElement("Ready/HostedClusterAdopted"))
	g.Expect(p).To(And(HaveField("Frozen", true), HaveField("Objects", BeEmpty()), HaveField("Key", BeNil()), HaveField("Inject", BeNil()), HaveField("Approve", BeNil())))
	g.Expect(p.Adopts).To(HaveExactElements(HaveField("Object", BeIdenticalTo(in.Key.Secret)), HaveField("Object", BeIdenticalTo(in.NodePool)), HaveField("Object", BeIdenticalTo(in.HostedCluster))))
	g.Expect(in.HostedCluster.Labels).To(BeEmpty(), "a plan changes nothing")
	for _, a := range p.Adopts {
		a.Object.SetLabels(a.Labels)
	}
	p = bridge.Of(in)
	g.Expect(p).To(And(HaveField("Frozen", false), HaveField("Adopts", BeEmpty()), HaveField("Key", BeNil())), "%v", p.Findings)

	in = left(t)
	in.Bridge.UID = ""
	refused, _ := bridge.Judge(in, nil)
	g.Expect(refused).To(BeEmpty(), "nor does admission stop it")
}

func TestAHostedClusterIsTakenOverOnlyAsItsAnnotationSays(t *testing.T) {
	owner := []metav1.OwnerReference{{APIVersion: "provisioning.dpu.hcp.io/v1alpha1", Kind: "DPFHCPProvisioner", Name: "b1", UID: "gone"}}
	for name, c := range map[string]struct {
		is         func(*bridge.Input)
		want, says string
	}{
		"without the annotation":       {func(in *bridge.Input) { in.HostedCluster.Annotations = nil }, "HostedClusterTaken", "annotate --overwrite hostedcluster b1 provisioning.dpu.hcp.io/adopt-by=dpf/b1"},
		"for another bridge":           {func(in *bridge.Input) { in.HostedCluster.Annotations[names.AnnotationAdoptBy] = "dpf/b2" }, "HostedClusterTaken", "adopt-by"},
		"for one of another namespace": {func(in *bridge.Input) { in.HostedCluster.Annotations[names.AnnotationAdoptBy] = "theirs/b1" }, "HostedClusterTaken", "adopt-by"},
		"in the namespace of another": {func(in *bridge.Input) {
			first := &hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "dpf-b1", Name: "x", CreationTimestamp: metav1.Unix(20, 0)}}
			in.HostedCluster.CreationTimestamp, in.Neighbours = metav1.Unix(30, 0), []*hyperv1.HostedCluster{first}
		}, "NamespaceTaken", ""},
		"that something owns":                {func(in *bridge.Input) { in.HostedCluster.OwnerReferences = owner }, "HostedClusterTaken", "delete DPFHCPProvisioner b1 with --cascade=orphan"},
		"of another bridge":                  {func(in *bridge.Input) { in.HostedCluster.Labels = ours(rival("dpf", older).DPUHCPBridge) }, "HostedClusterTaken", "or remove the HostedCluster"},
		"that is deleted":                    {func(in *bridge.Input) { in.HostedCluster.DeletionTimestamp = &metav1.Time{} }, "HostedClusterTaken", ""},
		"without its key":                    {func(in *bridge.Input) { in.Key.Secret = nil }, "EncryptionKeyLost", ""},
		"whose key goes":                     {func(in *bridge.Input) { in.Key.OwnerReferences = owner }, "EncryptionKeyLost", ""},
		"whose key was cut":                  {func(in *bridge.Input) { in.Key.Data["key"] = nil }, "EncryptionKeyInvalid", ""},
		"of another key":                     {func(in *bridge.Input) { in.HostedCluster.Spec.SecretEncryption.AESCBC.ActiveKey.Name = "mine" }, "HostedClusterUnsuitable", names.BridgeKey("b1")},
		"of another platform":                {func(in *bridge.Input) { in.HostedCluster.Spec.Platform.Type = hyperv1.KubevirtPlatform }, "HostedClusterUnsuitable", "platform None"},
		"of another domain":                  {func(in *bridge.Input) { in.HostedCluster.Spec.DNS.BaseDomain = "example.org" }, "HostedClusterDiffers", "baseDomain: example.org"},
		"of another class":                   {func(in *bridge.Input) { in.Bridge.Spec.EtcdStorageClass = "fast" }, "HostedClusterDiffers", "etcdStorageClass: none"},
		"published otherwise":                {func(in *bridge.Input) { in.HostedCluster.Spec.Services[0].Type = hyperv1.LoadBalancer }, "HostedClusterDiffers", "exposeThroughLoadBalancer: true"},
		"of fewer replicas":                  {func(in *bridge.Input) { in.HostedCluster.Spec.ControllerAvailabilityPolicy = hyperv1.SingleReplica }, "HostedClusterDiffers", "controlPlaneAvailabilityPolicy: SingleReplica"},
		"with amd64 Nodes":                   {func(in *bridge.Input) { in.NodePool.Spec.Arch = hyperv1.ArchitectureAMD64 }, "NodePoolTaken", "remove the NodePool"},
		"with an owned NodePool":             {func(in *bridge.Input) { in.NodePool.OwnerReferences = owner }, "NodePoolTaken", "remove the NodePool"},
		"for a DPUCluster with a kubeconfig": {func(in *bridge.Input) { in.DPUCluster.Spec.Kubeconfig = "b1-admin-kubeconfig" }, "KubeconfigTaken", "remove spec.kubeconfig"},
	} {
		t.Run(name, func(t *testing.T) {
			in := left(t)
			c.is(&in)
			p := bridge.Of(in)
			NewWithT(t).Expect(p.Findings).To(ContainElement(And(HaveField("Reason", c.want), HaveField("Severity", finding.Refused), HaveField("Message", ContainSubstring(c.says)))))
			NewWithT(t).Expect(p).To(And(HaveField("Adopts", BeEmpty()), HaveField("Frozen", true), HaveField("Objects", BeEmpty()), HaveField("Approve", BeNil())))
		})
	}
}
