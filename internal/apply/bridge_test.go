package apply

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/cldmnky/oooi/internal/dpf"
)

// What the bridge has read of its DPUCluster may be older than its own last write.
func TestADPUClusterThatIsCreatedIsNotSaidToBeSoAgain(t *testing.T) {
	g := NewWithT(t)
	scheme := runtime.NewScheme()
	g.Expect(dpf.AddToScheme(scheme)).To(Succeed())
	asRead := &dpf.DPUCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "dpf", Name: "d1"}}
	patches := 0
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(asRead.DeepCopy()).WithStatusSubresource(asRead).WithInterceptorFuncs(interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, of string, o client.Object, p client.Patch, options ...client.SubResourcePatchOption) error {
			patches++
			return c.SubResource(of).Patch(ctx, o, p, options...)
		},
	}).Build()
	w := &Writer{Client: api, Live: api}
	for range 2 {
		g.Expect(w.Created(t.Context(), asRead, metav1.Now())).To(Succeed())
	}
	g.Expect(patches).To(Equal(1))
	is := &dpf.DPUCluster{}
	g.Expect(api.Get(t.Context(), client.ObjectKeyFromObject(asRead), is)).To(Succeed())
	g.Expect(meta.IsStatusConditionTrue(is.Status.Conditions, dpf.ConditionCreated)).To(BeTrue())
}
