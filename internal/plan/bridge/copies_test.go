package bridge_test

import (
	"testing"

	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/internal/dpf"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/plan/bridge"
)

func TestCopiesThatNoOtherBridgeUses(t *testing.T) {
	g, in := NewWithT(t), looksUp(t)
	unused := func(all ...dpuv1.DPUHCPBridge) []types.NamespacedName {
		in.Copies.Bridges = all
		return in.Unused()
	}
	g.Expect(unused()).To(BeEmpty())
	caches(&in)
	stream := func(version string) types.NamespacedName {
		return types.NamespacedName{Namespace: "oooi-images", Name: "layers-" + version}
	}
	in.Bridge.Status.BlueFieldContainerImage = route + "/oooi-images/layers-4.20.3:4.20.3"
	said := []metav1.Condition{{Type: dpuv1.ConditionBlueFieldContainerImageAvailable}}
	in.Bridge.Status.Conditions = said
	for _, reason := range []string{bridge.LookingUp, bridge.RegistryUnauthorized, bridge.ImageNotFound, "Mapped", "MachineOSImage"} {
		said[0].Reason = reason
		g.Expect(unused(*in.Bridge)).To(Equal([]types.NamespacedName{stream("4.20.3")}), "nobody has a copy removed by naming its release: %s", reason)
	}
	for _, reason := range []string{bridge.Caching, bridge.CacheFailed, bridge.CacheNotPulled, "Found"} {
		said[0].Reason = reason
		g.Expect(unused(*in.Bridge)).To(Equal([]types.NamespacedName{stream("4.20.3"), stream("4.20.4")}), reason)
	}
	other := in.Bridge.DeepCopy()
	other.UID, other.Status.BlueFieldContainerImage = "other", ""
	g.Expect(unused(*other)).To(Equal([]types.NamespacedName{stream("4.20.3")}))
	now := metav1.Now()
	other.DeletionTimestamp = &now
	g.Expect(unused(*other)).To(HaveLen(2), "both go")
	for _, forged := range []string{route + "/oooi-images/another-4.20.3:4.20.3", route + "/elsewhere/layers-4.20.3:4.20.3", "layers-4.20.3", layers + ":4.20.4"} {
		in.Bridge.Status.BlueFieldContainerImage = forged
		g.Expect(unused()).To(Equal([]types.NamespacedName{stream("4.20.4")}), forged)
	}
	in.Bridge.Status.BlueFieldContainerImage = route + "/oooi-images/layers-4.20.3:4.20.3"
	in.Mapping.Data["4.19.9"] = in.Bridge.Status.BlueFieldContainerImage
	g.Expect(unused()).To(Equal([]types.NamespacedName{stream("4.20.4")}), "what the mapping names stays")
	delete(in.Mapping.Data, "4.19.9")
	in.Bridge.Spec.MachineOSImage = dpuv1.ReleaseImage(in.Bridge.Status.BlueFieldContainerImage)
	g.Expect(unused()).To(Equal([]types.NamespacedName{stream("4.20.4")}), "nobody has a copy removed by naming it")
	other.DeletionTimestamp, other.Spec.MachineOSImage = nil, in.Bridge.Spec.MachineOSImage
	in.Bridge.Spec.MachineOSImage = ""
	g.Expect(unused(*other)).To(BeEmpty(), "another bridge names it")
	other.Spec.MachineOSImage = ""

	in.Copies.DPUs = []dpf.DPU{installing("d1")}
	g.Expect(unused(*in.Bridge)).To(HaveLen(2), "its own DPU goes with it")
	other.Spec.DPUClusterRef.Name, other.Spec.OCPReleaseImage = "d2", "example.com/release:4.20.5-multi"
	g.Expect(unused(*in.Bridge, *other)).To(HaveLen(2), "the other's DPUs have all joined")
	in.Copies.DPUs = append(in.Copies.DPUs, installing("d2"))
	g.Expect(unused(*in.Bridge, *other)).To(BeEmpty(), "the other was at that release when its DPU was installed")
	other.DeletionTimestamp = &now
	g.Expect(unused(*in.Bridge, *other)).To(HaveLen(2), "both go, and their DPUs")
}

// installing is a DPU of a DPUCluster that has not joined.
func installing(cluster string, conditions ...string) dpf.DPU {
	d := dpf.DPU{Spec: dpf.DPUSpec{Cluster: dpf.Reference{Namespace: "dpf", Name: cluster}}}
	for _, c := range conditions {
		d.Status.Conditions = append(d.Status.Conditions, metav1.Condition{Type: c, Status: metav1.ConditionTrue})
	}
	return d
}

// upgraded is a bridge at 4.20.4 whose hosted cluster ran 4.20.3 and 4.20.2 before, with the copies of all, and of another release.
func upgraded(t *testing.T) bridge.Input {
	t.Helper()
	in := looksUp(t)
	caches(&in)
	in.Answer = bridge.Answer{Image: route + "/oooi-images/layers-4.20.4:4.20.4"}
	in.Bridge.Status.BlueFieldContainerImage = in.Answer.Image
	hc := in.HostedCluster
	hc.Spec.Release.Image = string(in.Bridge.Spec.OCPReleaseImage)
	hc.Status.Conditions = []metav1.Condition{{Type: string(hyperv1.HostedClusterProgressing), Status: metav1.ConditionFalse, Reason: "AsExpected", ObservedGeneration: hc.Generation}}
	hc.Status.Version = &hyperv1.ClusterVersionStatus{History: []configv1.UpdateHistory{
		{Image: hc.Spec.Release.Image, Version: "4.20.4"},
		{Image: "quay.io/openshift-release-dev/ocp-release@" + digest, Version: "4.20.3"},
		{Image: "quay.io/openshift-release-dev/ocp-release:4.20.2-multi"}, // HyperShift learns the version at the end
	}}
	for _, version := range []string{"4.19.0", "4.20.2", "4.20.3", "4.20.4"} {
		in.Copies.Streams = append(in.Copies.Streams, metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "oooi-images", Name: "layers-" + version}})
	}
	in.Copies.Bridges = []dpuv1.DPUHCPBridge{*in.Bridge}
	return in
}

func removed(in bridge.Input) (all []string) {
	for _, o := range bridge.Of(in).Former {
		all = append(all, o.GetName())
	}
	return all
}

func TestCopiesOfFormerReleasesGo(t *testing.T) {
	g, in := NewWithT(t), upgraded(t)
	g.Expect(removed(in)).To(Equal([]string{"layers-4.20.2", "layers-4.20.3"}), "and none that the hosted cluster never ran, or runs")
	in.HostedCluster.Status.Version = nil
	g.Expect(removed(in)).To(BeEmpty())
	in.Templates.Version = bridge.ControlPlaneVersion{History: []bridge.ControlPlaneUpdate{{State: configv1.CompletedUpdate, Version: "4.20.4", Image: in.HostedCluster.Spec.Release.Image}, {Version: "4.20.3"}}}
	g.Expect(removed(in)).To(Equal([]string{"layers-4.20.3"}), "newer HyperShifts say it of the control plane alone")
}

func TestACopyThatMayBeNeededStays(t *testing.T) {
	other := func(in *bridge.Input) *dpuv1.DPUHCPBridge {
		in.Copies.Bridges = append(in.Copies.Bridges, *in.Bridge.DeepCopy())
		b := &in.Copies.Bridges[1]
		b.Name, b.UID = "b2", "u2"
		return b
	}
	template := func(in *bridge.Input, of string) {
		in.Templates.Existing = append(in.Templates.Existing, corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Namespace: "dpf", Name: "template", Labels: map[string]string{names.LabelBridgeNamespace: "dpf", names.LabelBridge: of},
			Annotations: map[string]string{names.AnnotationTemplateRelease: "quay.io/openshift-release-dev/ocp-release@" + digest},
		}})
	}
	card := func(conditions ...string) dpf.DPU { return installing("d1", conditions...) }
	none, both := []string{}, []string{"layers-4.20.2", "layers-4.20.3"}
	for name, c := range map[string]struct {
		is   func(in *bridge.Input)
		goes []string
	}{
		"another bridge has that release": {func(in *bridge.Input) { other(in).Spec.OCPReleaseImage = "example.com/mirror:4.20.3-multi" }, []string{"layers-4.20.2"}},
		"another bridge has that image": {func(in *bridge.Input) {
			other(in).Status.BlueFieldContainerImage = route + "/oooi-images/layers-4.20.2:4.20.2"
		}, []string{"layers-4.20.3"}},
		"another bridge names it":               {func(in *bridge.Input) { other(in).Spec.MachineOSImage = route + "/oooi-images/layers-4.20.2:4.20.2" }, []string{"layers-4.20.3"}},
		"the mapping names it":                  {func(in *bridge.Input) { in.Mapping.Data["4.19.9"] = route + "/oooi-images/layers-4.20.3:4.20.3\n" }, []string{"layers-4.20.2"}},
		"another bridge has no image yet":       {func(in *bridge.Input) { other(in).Status.BlueFieldContainerImage = "" }, none},
		"another bridge's template is a former": {func(in *bridge.Input) { other(in); template(in, "b2") }, none},
		"a DPU is being installed":              {func(in *bridge.Input) { in.Copies.DPUs = []dpf.DPU{card(dpf.ConditionOSInstalled)} }, none},
		"a DPU has joined, and is not ready":    {func(in *bridge.Input) { in.Copies.DPUs = []dpf.DPU{card(dpf.ConditionClusterReady)} }, both},
		"a DPU is ready":                        {func(in *bridge.Input) { in.Copies.DPUs = []dpf.DPU{card(dpf.ConditionReady)} }, both},
		"a DPU of no bridge is not installed":   {func(in *bridge.Input) { in.Copies.DPUs = []dpf.DPU{{}} }, both},
		"a DPU is being deleted": {func(in *bridge.Input) {
			now := metav1.Now()
			in.Copies.DPUs = []dpf.DPU{card()}
			in.Copies.DPUs[0].DeletionTimestamp = &now
		}, both},
		"the control plane is being upgraded": {func(in *bridge.Input) { in.HostedCluster.Status.Conditions[0].Status = metav1.ConditionTrue }, none},
		"the bridge waits for something":      {func(in *bridge.Input) { in.SSHKey = bridge.Secret{} }, none},
		"images are no longer copied":         {func(in *bridge.Input) { delete(in.Mapping.Data, bridge.CacheKey) }, none},
	} {
		t.Run(name, func(t *testing.T) {
			g, in := NewWithT(t), upgraded(t)
			c.is(&in)
			g.Expect(removed(in)).To(HaveExactElements(c.goes))
		})
	}
}
