package observe

import (
	"context"
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/internal/dpf"
	"github.com/cldmnky/oooi/internal/metallb"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/plan/bridge"
)

// remains of bridge clusters/b1, of whose objects the cache shows none.
func remains(t *testing.T, granted bool, live ...client.Object) (bridge.Remains, error) {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, dpuv1.AddToScheme, hyperv1.AddToScheme, dpf.AddToScheme, metallb.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	for _, o := range live {
		o.SetLabels(map[string]string{names.LabelManagedBy: names.ManagedBy, names.LabelBridge: "b1", names.LabelBridgeNamespace: "clusters", names.LabelOwnerUID: "u1"})
	}
	server := fake.NewClientBuilder().WithScheme(scheme).WithObjects(live...).WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if _, secrets := list.(*corev1.SecretList); secrets && !granted {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "", errors.New("no Role"))
			}
			return c.List(ctx, list, opts...)
		},
	}).Build()
	o := &Bridges{Observer: &Observer{Reader: fake.NewClientBuilder().WithScheme(scheme).Build()}, Live: server}
	b := &dpuv1.DPUHCPBridge{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "b1", UID: "u1"}}
	return o.Remains(t.Context(), Bridge{Input: bridge.Input{Bridge: b, Lives: func(types.UID) bool { return false }}})
}

func at(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

func TestWhatTheCacheDoesNotShowIsNotLeftBehind(t *testing.T) {
	g := NewWithT(t)
	r, err := remains(t, true, &corev1.ConfigMap{ObjectMeta: at("clusters", "ignition")}, &metallb.IPAddressPool{ObjectMeta: at("metallb-system", "pool")},
		&metallb.L2Advertisement{ObjectMeta: at("metallb-system", "announced")})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(r.Others).To(ConsistOf(HaveField("GetName()", "ignition"), HaveField("GetName()", "pool"), HaveField("GetName()", "announced")))
}

func TestWhereSecretsMayNotBeReadIsTold(t *testing.T) {
	g := NewWithT(t)
	r, err := remains(t, false)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(r).To(And(HaveField("Secrets", BeEmpty()), HaveField("Denied", Equal([]string{"clusters"}))))
}
