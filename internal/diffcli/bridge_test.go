package diffcli

import (
	"cmp"
	"context"
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/change"
	"github.com/cldmnky/oooi/internal/dpf"
	"github.com/cldmnky/oooi/internal/plan/bridge"
)

// ofFiles is a differ of a cluster with an object, and those of the files as they are written.
func ofFiles(t *testing.T, is client.Object, files ...client.Object) (*differ, []written) {
	t.Helper()
	scheme := runtime.NewScheme()
	NewWithT(t).Expect(errors.Join(clientgoscheme.AddToScheme(scheme), dpuv1.AddToScheme(scheme), dpf.AddToScheme(scheme), v1alpha1.AddToScheme(scheme))).To(Succeed())
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(dpf.GroupVersion.WithKind("DPUCluster"), meta.RESTScopeNamespace)
	c := newCluster(fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(mapper).WithObjects(is).Build(), nil)
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
	b.Spec.DPUClusterRef.Name, b.Spec.OCPReleaseImage = "d1", dpuv1.ReleaseImage(release)
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

// A DPUCluster that the viewer may not read is not gone, so that nothing is said of what follows from that.
func TestADPUClusterThatMayNotBeReadIsNotGone(t *testing.T) {
	g := NewWithT(t)
	d, all := ofFiles(t, oneBridge("b1", "a"), oneBridge("b1", "b"))
	forbidden := func(of any) error {
		switch of.(type) {
		case *dpf.DPUCluster, *dpf.DPUClusterList:
			return apierrors.NewForbidden(schema.GroupResource{Resource: "dpuclusters"}, "", errors.New("no"))
		}
		return nil
	}
	d.api = interceptor.NewClient(d.api.(client.WithWatch), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			return cmp.Or(forbidden(o), c.Get(ctx, key, o, opts...))
		},
		List: func(ctx context.Context, c client.WithWatch, o client.ObjectList, opts ...client.ListOption) error {
			return cmp.Or(forbidden(o), c.List(ctx, o, opts...))
		},
	})
	changed, unknown, err := d.bridges(t.Context(), all, &bridge.Settings{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(unknown).To(ConsistOf("DPUHCPBridge dpf/b1: which objects are written: you may not get its DPUCluster, from which it is planned"))
	g.Expect(changed).To(ConsistOf(And(HaveField("Stopped", ""), HaveField("Findings", BeEmpty()), HaveField("Objects", HaveLen(1)))))
}

func TestABridgeThatFilesHaveTwiceIsToldOnce(t *testing.T) {
	g := NewWithT(t)
	d, all := ofFiles(t, oneBridge("b1", "a"), oneBridge("b1", "b"), oneBridge("b1", "b"))
	ours, others, err := d.bridgesOf(t.Context(), all)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(ours).To(HaveLen(1))
	g.Expect(others).To(BeEmpty())
}
