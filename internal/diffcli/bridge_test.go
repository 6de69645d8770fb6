package diffcli

import (
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/change"
)

// ofFiles is a differ of a cluster with an object, and those of the files as they are written.
func ofFiles(t *testing.T, is client.Object, files ...client.Object) (*differ, []written) {
	t.Helper()
	scheme := runtime.NewScheme()
	NewWithT(t).Expect(errors.Join(clientgoscheme.AddToScheme(scheme), dpuv1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme))).To(Succeed())
	c := newCluster(fake.NewClientBuilder().WithScheme(scheme).WithObjects(is).Build(), nil)
	var all []written
	var after []client.Object
	for _, o := range files {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(dpuv1.GroupVersion.WithKind("DPUHCPBridge"))
		all, after = append(all, written{after: u, planned: o}), append(after, o)
	}
	return &differ{cluster: c, before: c.observer(Settings{}), after: c.observer(Settings{}).Over(after...)}, all
}

func oneBridge(name, release string) *dpuv1.DPUHCPBridge {
	b := &dpuv1.DPUHCPBridge{ObjectMeta: metav1.ObjectMeta{Namespace: "dpf", Name: name}}
	b.Spec.OCPReleaseImage = dpuv1.ReleaseImage(release)
	return b
}

// An operator that reconciles no bridges leaves the hosted clusters alone; the bridges change all the same.
func TestABridgeChangesThoughNobodyReconcilesIt(t *testing.T) {
	g := NewWithT(t)
	d, all := ofFiles(t, oneBridge("b1", "a"), oneBridge("b1", "b"), oneBridge("b2", "a"))
	changed, unknown, err := d.bridges(t.Context(), all, nil)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(unknown).To(ConsistOf(ContainSubstring("--dpu-bridge=false")))
	g.Expect(changed).To(HaveLen(2))
	g.Expect(changed[0].Objects).To(ConsistOf(change.Object{Verb: change.Update, Kind: "DPUHCPBridge", Namespace: "dpf", Name: "b1", Fields: []change.Field{{Path: "spec.ocpReleaseImage", From: "a", To: "b"}}}))
	g.Expect(changed[1].Objects).To(ConsistOf(change.Object{Verb: change.Create, Kind: "DPUHCPBridge", Namespace: "dpf", Name: "b2"}))
}

func TestABridgeWhoseRoleIsMissingIsNotPromised(t *testing.T) {
	g, is := NewWithT(t), change.BridgePicture{}
	is.Bridge = oneBridge("b1", "a")
	of := func() []string { return unknownOf(client.ObjectKeyFromObject(is.Bridge), change.BridgeChange{}, is) }
	g.Expect(of()).To(BeEmpty())
	is.Bridge.Status.Conditions = []metav1.Condition{{Type: dpuv1.ConditionSecretsValid, Status: metav1.ConditionFalse, Reason: "NamespaceNotGranted"}}
	g.Expect(of()).To(ConsistOf(HavePrefix("DPUHCPBridge dpf/b1: whether the operator may write that: its status says NamespaceNotGranted")))
}
