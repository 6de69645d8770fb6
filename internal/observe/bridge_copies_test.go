package observe

import (
	"testing"

	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/plan/bridge"
	"github.com/cldmnky/oooi/internal/registry"
)

// upgraded is bridge clusters/b1 at 4.20.4, whose hosted cluster ran 4.20.3 before.
func upgraded(uid types.UID) Bridge {
	const release = "example.com/release:4.20.4-multi"
	seen := ended()
	b := seen.Input.Bridge
	b.UID, b.Spec.OCPReleaseImage = uid, release
	seen.Mapping = &corev1.ConfigMap{Data: map[string]string{bridge.RepositoryKey: "quay.io/example/layers", bridge.CacheKey: "images"}}
	hc := &hyperv1.HostedCluster{ObjectMeta: at("clusters", "b1")}
	hc.Labels = map[string]string{names.LabelManagedBy: names.ManagedBy, names.LabelBridge: "b1", names.LabelBridgeNamespace: "clusters", names.LabelOwnerUID: string(uid)}
	hc.Spec.Release.Image = release
	hc.Status.Conditions = []metav1.Condition{{Type: string(hyperv1.HostedClusterProgressing), Status: metav1.ConditionFalse, Reason: "AsExpected"}}
	hc.Status.Version = &hyperv1.ClusterVersionStatus{History: []configv1.UpdateHistory{{Image: release}, {Image: "example.com/release:4.20.3-multi"}}}
	seen.HostedCluster = hc
	return seen
}

// listing reads from an API server with an ImageStream of 4.20.3, and counts how often ImageStreams are listed.
func listing(t *testing.T, answer *error) (o *Bridges, lists *int) {
	t.Helper()
	lists = new(int)
	stream := &metav1.PartialObjectMetadata{ObjectMeta: at("images", "layers-4.20.3")}
	stream.SetGroupVersionKind(imageStream)
	o = reads(t, func(o runtime.Object) error {
		if _, is := o.(*metav1.PartialObjectMetadataList); is {
			*lists++
			return *answer
		}
		return nil
	}, stream)
	o.Kinds, o.Lookups = NewKinds(false, false), &registry.Lookups{}
	return o, lists
}

// OpenShift serves ImageStreams from an API server of its own, which is away during its upgrades.
func TestCopiesThatCannotBeListedStopNoBridge(t *testing.T) {
	var answer error = apierrors.NewServiceUnavailable("the server is currently unable to handle the request")
	g, seen := NewWithT(t), upgraded("unlisted")
	o, _ := listing(t, &answer)
	g.Expect(o.copies(t.Context(), &seen)).To(Succeed())
	g.Expect(seen.Input.Copies.Streams).To(BeEmpty())
	answer = nil
	g.Expect(o.copies(t.Context(), &seen)).To(Succeed())
	g.Expect(seen.Input.Copies.Streams).To(ConsistOf(HaveField("Name", "layers-4.20.3")), "they are cleaned up later")
}

// While nothing may be removed nothing is listed: each list asks OpenShift's API server.
func TestFormerCopiesAreListedIfTheyMayBeRemoved(t *testing.T) {
	var answer error
	g, seen := NewWithT(t), upgraded("listed")
	o, lists := listing(t, &answer)
	g.Expect(o.copies(t.Context(), &seen)).To(Succeed())
	g.Expect(*lists).To(Equal(1))
	seen.HostedCluster.Status.Conditions[0].Status = metav1.ConditionTrue // it is upgraded, or goes back
	g.Expect(o.copies(t.Context(), &seen)).To(Succeed())
	g.Expect(*lists).To(Equal(1))
}
