package bridge_test

import (
	"net/netip"
	"testing"

	. "github.com/onsi/gomega"
	gtypes "github.com/onsi/gomega/types"
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/internal/dpf"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/plan/bridge"
)

// asked is a new bridge that waits only for its storage and its node ports.
func asked() bridge.Input {
	pull, ssh := holding(bridge.PullSecretKey, `{"auths": {"quay.io": {"auth": "dTpw"}}}`), holding(bridge.SSHKeyKey, ed25519)
	return bridge.Input{
		Settings: bridge.Settings{MetalLBNamespace: "metallb-system", VirtualIPs: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}, Images: types.NamespacedName{Namespace: "oooi-system", Name: "ocp-bluefield-images"}},
		Served:   bridge.Served{DPF: true, HyperShift: true, MetalLB: true}, Exists: func(types.UID) bool { return false },
		Bridge: &dpuv1.DPUHCPBridge{
			ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "dpu1", UID: "0", CreationTimestamp: metav1.Unix(1000, 0)},
			Spec: dpuv1.DPUHCPBridgeSpec{
				DPUClusterRef: dpuv1.DPUClusterReference{Name: "dpus"}, BaseDomain: "example.com", SSHKey: "ssh", PullSecret: "pull",
				OCPReleaseImage: "quay.io/ocp/release:4.20.4-multi", ExposeThroughLoadBalancer: true, MetalLBVirtualIP: "192.0.2.10",
			},
		},
		DPUCluster: &dpf.DPUCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "dpus"}, Spec: dpf.DPUClusterSpec{Type: "example.com/hosted"}},
		Mapping:    &corev1.ConfigMap{Data: map[string]string{"4.20.4": image}},
		PullSecret: bridge.Secret{Secret: pull}, SSHKey: bridge.Secret{Secret: ssh},
	}
}

func TestANewBridgeIsRefusedOrHasToWait(t *testing.T) {
	const refused, awaited = true, false
	for reason, c := range map[string]struct {
		refused bool
		field   string
		change  func(in *bridge.Input)
	}{
		"DPUClusterNotFound": {refused, "spec.dpuClusterRef", func(in *bridge.Input) { in.DPUCluster = nil }},
		"RefNotPermitted": {refused, "spec.dpuClusterRef", func(in *bridge.Input) {
			in.Bridge.Spec.DPUClusterRef.Namespace, in.DPUCluster.Namespace = "dpf", "dpf"
		}},
		"TypeUnsupported": {refused, "spec.dpuClusterRef", func(in *bridge.Input) { in.DPUCluster.Spec.Type = "kamaji" }},
		"TypeMismatch":    {refused, "spec.clusterType", func(in *bridge.Input) { in.Bridge.Spec.ClusterType = "static" }},
		"DPUClusterTaken": {refused, "spec.dpuClusterRef", func(in *bridge.Input) {
			rival := in.Bridge.DeepCopy()
			rival.Name, rival.UID = "first", "z" // of the same second
			in.Rivals = append(in.Rivals, bridge.Rival{DPUHCPBridge: rival})
		}},
		"MappingNotFound":        {refused, "spec.ocpReleaseImage", func(in *bridge.Input) { in.Mapping = nil }},
		"ImageNotMapped":         {refused, "spec.ocpReleaseImage", func(in *bridge.Input) { in.Mapping.Data = nil }},
		"NameTooLong":            {refused, "metadata.name", func(in *bridge.Input) { in.Bridge.Namespace = longNamespace; in.DPUCluster.Namespace = longNamespace }},
		"HostedClusterTaken":     {refused, "metadata.name", func(in *bridge.Input) { in.HostedCluster = &hyperv1.HostedCluster{} }},
		"NodePoolTaken":          {refused, "metadata.name", func(in *bridge.Input) { in.NodePool = &hyperv1.NodePool{} }},
		"VirtualIPNotAllowed":    {refused, "spec.metalLBVirtualIP", func(in *bridge.Input) { in.Bridge.Spec.MetalLBVirtualIP = "198.51.100.1" }},
		"VirtualIPInUse":         {refused, "spec.metalLBVirtualIP", func(in *bridge.Input) { in.Rivals = []bridge.Rival{announcing(working(rival("theirs", older)), *in)} }},
		"NetworksOverlap":        {refused, "spec.networking.clusterNetwork", func(in *bridge.Input) { in.Networks = []netip.Prefix{netip.MustParsePrefix("10.128.0.0/9")} }},
		"NamespaceTaken":         {refused, "metadata.name", func(in *bridge.Input) { in.Namespace = &corev1.Namespace{} }},
		"DPFNotInstalled":        {awaited, "spec.dpuClusterRef", func(in *bridge.Input) { in.Served.DPF, in.DPUCluster = false, nil }},
		"HyperShiftNotInstalled": {awaited, "", func(in *bridge.Input) { in.Served.HyperShift = false }},
		"MetalLBNotInstalled":    {awaited, "spec.metalLBVirtualIP", func(in *bridge.Input) { in.Served.MetalLB = false }},
		"ReleaseNotForARM64":     {awaited, "spec.ocpReleaseImage", func(in *bridge.Input) { in.Bridge.Spec.OCPReleaseImage = "quay.io/ocp/release:4.20.4-x86_64" }},
		"StorageClassNotFound":   {awaited, "spec.etcdStorageClass", func(*bridge.Input) {}},
	} {
		t.Run(reason, func(t *testing.T) {
			g, in := NewWithT(t), asked()
			c.change(&in)
			no, later := bridge.Judge(in, nil)
			if c.refused {
				g.Expect(no).To(ConsistOf(about(reason, c.field)))
			} else {
				g.Expect(no).To(BeEmpty())
				g.Expect(later).To(ContainElement(about(reason, c.field)))
			}
			for _, f := range later {
				g.Expect(f.Condition).NotTo(Equal(dpuv1.ConditionKubeconfigInjected), "that comes by itself")
			}
		})
	}
}

// HyperShift changes nothing of how a control plane is published, so its author is told once, while there is time.
func TestANewBridgeIsWarnedThatOneNodePublishesIt(t *testing.T) {
	warned := ContainElement(about("ReachedAtOneNode", "spec.virtualIP"))
	for name, c := range map[string]struct {
		change func(s *dpuv1.DPUHCPBridgeSpec)
		warned bool
	}{
		"by default":      {func(s *dpuv1.DPUHCPBridgeSpec) { s.ExposeThroughLoadBalancer, s.MetalLBVirtualIP = false, "" }, true},
		"with an address": {func(*dpuv1.DPUHCPBridgeSpec) {}, false},
		"of a single replica": {func(s *dpuv1.DPUHCPBridgeSpec) {
			s.ExposeThroughLoadBalancer, s.MetalLBVirtualIP, s.ControlPlaneAvailabilityPolicy = false, "", dpuv1.SingleReplica
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			g, in := NewWithT(t), asked()
			c.change(&in.Bridge.Spec)
			refused, later := bridge.Judge(in, nil)
			g.Expect(refused).To(BeEmpty())
			if !c.warned {
				g.Expect(later).NotTo(warned)
				return
			}
			g.Expect(later).To(warned)
			_, later = bridge.Judge(in, in.Bridge)
			g.Expect(later).NotTo(warned)
			g.Expect(bridge.Of(in).Findings).To(ContainElement(And(HaveField("Reason", "ReachedAtOneNode"), HaveField("Severity", finding.Warning))))
		})
	}
}

// longNamespace is one whose control-plane namespaces would have more than 63 characters.
const longNamespace = "a123456789b123456789c123456789d123456789e123456789f12345678"

func about(reason, field string) gtypes.GomegaMatcher {
	return WithTransform(func(f finding.Finding) []string { return []string{f.Reason, f.Field} }, Equal([]string{reason, field}))
}

// Any pod may post an AdmissionReview, so the answer must not depend on Secrets.
func TestAdmissionSaysNothingOfSecrets(t *testing.T) {
	g := NewWithT(t)
	refused, awaited := bridge.Judge(asked(), nil)
	for _, change := range []func(in *bridge.Input){
		func(in *bridge.Input) { in.SSHKey, in.PullSecret = bridge.Secret{}, bridge.Secret{} },
		func(in *bridge.Input) { in.SSHKey = bridge.Secret{Denied: true} },
		func(in *bridge.Input) { in.PullSecret.Data[bridge.PullSecretKey] = []byte("{}") },
		func(in *bridge.Input) { in.Key.Secret = holding("", "") },
		func(in *bridge.Input) {
			in.Injected, in.Kubeconfig.Refused = bridge.Secret{Secret: holding("", "")}, "NoCommand"
		},
	} {
		in := asked()
		change(&in)
		no, later := bridge.Judge(in, nil)
		g.Expect(no).To(Equal(refused))
		g.Expect(later).To(Equal(awaited))
	}
}

// The API server says if a bridge is created twice.
func TestABridgeIsNoRivalOfItself(t *testing.T) {
	in := asked()
	stored := in.Bridge.DeepCopy()
	stored.UID, stored.Status.Conditions = "z", []metav1.Condition{{Type: dpuv1.ConditionHostedClusterAvailable}} // so it has the address
	in.Rivals = []bridge.Rival{{DPUHCPBridge: stored}}
	refused, _ := bridge.Judge(in, nil)
	g := NewWithT(t)
	g.Expect(refused).To(BeEmpty())

	stored.Status.Conditions = nil
	in.Rivals[0].Namespace, in.Rivals[0].Spec.DPUClusterRef.Namespace = "theirs", "clusters"
	in.DPUCluster.Annotations = map[string]string{names.AnnotationAllowedNamespaces: "theirs"}
	refused, _ = bridge.Judge(in, nil)
	g.Expect(refused).To(ConsistOf(about("DPUClusterTaken", "spec.dpuClusterRef")), "one of its name elsewhere is")
}

// What was stored before may stay, however wrong it has become.
func TestOnlyWhatAChangeWritesIsRefused(t *testing.T) {
	worse := asked()
	worse.Mapping, worse.DPUCluster = nil, nil
	for name, c := range map[string]struct {
		change func(s *dpuv1.DPUHCPBridgeSpec)
		reason []string
	}{
		"something else": {func(s *dpuv1.DPUHCPBridgeSpec) { s.DPUClusterDeletionPolicy = dpuv1.DeleteHostedCluster }, nil},
		"the release":    {func(s *dpuv1.DPUHCPBridgeSpec) { s.OCPReleaseImage = "quay.io/ocp/release:4.20.5-multi" }, []string{"MappingNotFound"}},
	} {
		t.Run(name, func(t *testing.T) {
			in, was := worse, worse.Bridge
			in.Bridge = was.DeepCopy()
			c.change(&in.Bridge.Spec)
			refused, awaited := bridge.Judge(in, was)
			g := NewWithT(t)
			var reasons []string
			for _, f := range refused {
				reasons = append(reasons, f.Reason)
			}
			g.Expect(reasons).To(Equal(c.reason))
			g.Expect(awaited).To(ContainElement(about("DPUClusterNotFound", "spec.dpuClusterRef")))
		})
	}
}
