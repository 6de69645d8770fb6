package bridgecli

import (
	"context"
	"reflect"
	"testing"

	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/internal/plan/bridge"
)

// The API server of the tests drops the field: HyperShift's CRDs that we have lack it.
func TestWhatNewerHyperShiftsReportIsTakenIn(t *testing.T) {
	g, p := NewWithT(t), Platform{}
	g.Expect(p.hostedCluster(&unstructured.Unstructured{})).To(Succeed())
	g.Expect(p.HostedCluster).To(BeNil())
	read := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": "dpu1", "generation": int64(2)},
		"status":   map[string]any{"controlPlaneVersion": map[string]any{"history": []any{map[string]any{"state": "Partial", "image": "a.b/c:d"}}}},
	}}
	g.Expect(p.hostedCluster(read)).To(Succeed())
	g.Expect(p.HostedCluster.Generation).To(Equal(int64(2)))
	g.Expect(p.Version.History).To(Equal([]bridge.ControlPlaneUpdate{{State: configv1.PartialUpdate, Image: "a.b/c:d"}}))
}

// denied may not read some ConfigMap, and finds nothing else but a bridge.
type denied struct {
	client.Reader
	name    string
	bridges error
}

func (d denied) Get(_ context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	switch {
	case key.Name == d.name:
		return apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, key.Name, nil)
	case key.Name == "dpu1" && reflect.TypeOf(o) == reflect.TypeFor[*dpuv1.DPUHCPBridge]():
		o.SetNamespace(key.Namespace)
		o.SetName(key.Name)
		return nil
	}
	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

func (d denied) List(_ context.Context, o client.ObjectList, _ ...client.ListOption) error {
	if all, is := o.(*dpuv1.DPUHCPBridgeList); is {
		all.Items = []dpuv1.DPUHCPBridge{{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "dpu1"}}, {ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "dpu2"}}}
		return d.bridges
	}
	return nil
}

// Who may upgrade a bridge need not be one who reads HyperShift's namespace.
func TestWhatOneMayNotReadIsToldInItsStep(t *testing.T) {
	g := NewWithT(t)
	key, images := types.NamespacedName{Namespace: "clusters", Name: "dpu1"}, types.NamespacedName{Namespace: "oooi-system", Name: "our-images"}
	for name, step := range map[string]int{"supported-versions": 2, "version": 1} {
		p, err := ReadPlatform(t.Context(), denied{name: name}, key, images)
		g.Expect(err).NotTo(HaveOccurred(), name)
		g.Expect(p.Upgrade("quay.io/ocp/release:4.22.1-multi")[step]).To(And(HaveField("State", Look), HaveField("Because", ContainSubstring("or you may not read it"))), name)
	}
	p, err := ReadPlatform(t.Context(), denied{bridges: apierrors.NewForbidden(schema.GroupResource{Resource: "dpuhcpbridges"}, "", nil)}, key, images)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(p.Upgrade("quay.io/ocp/release:4.22.1-multi")[4].Because).To(ContainSubstring("you may not list the other bridges"))
	p, err = ReadPlatform(t.Context(), denied{}, key, images)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(p.Others).To(HaveExactElements(HaveField("Name", "dpu2")))
	_, err = ReadPlatform(t.Context(), denied{name: "our-images"}, key, images)
	g.Expect(apierrors.IsForbidden(err)).To(BeTrue(), "nothing can be said of the release without it")
}
