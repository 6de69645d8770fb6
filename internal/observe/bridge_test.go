package observe

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"testing"

	. "github.com/onsi/gomega"
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/internal/dpf"
	"github.com/cldmnky/oooi/internal/guest/kubeconfig"
	"github.com/cldmnky/oooi/internal/metallb"
	"github.com/cldmnky/oooi/internal/namedwatch"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/plan/bridge"
)

// scheme has all kinds that are read for bridges.
func scheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	all := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, dpuv1.AddToScheme, hyperv1.AddToScheme, dpf.AddToScheme, metallb.AddToScheme} {
		if err := add(all); err != nil {
			t.Fatal(err)
		}
	}
	all.AddKnownTypeWithName(imageStream, &metav1.PartialObjectMetadata{})
	all.AddKnownTypeWithName(imageStream.GroupVersion().WithKind("ImageStreamList"), &metav1.PartialObjectMetadataList{})
	return all
}

// reads has an API server that refuses some reads, and a cache that shows none of its objects.
func reads(t *testing.T, refuses func(runtime.Object) error, live ...client.Object) *Bridges {
	t.Helper()
	server := fake.NewClientBuilder().WithScheme(scheme(t)).WithObjects(live...).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			return cmp.Or(refuses(o), c.Get(ctx, key, o, opts...))
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			return cmp.Or(refuses(list), c.List(ctx, list, opts...))
		},
	}).Build()
	return &Bridges{Observer: &Observer{Reader: fake.NewClientBuilder().WithScheme(scheme(t)).Build(), Live: server}}
}

// ended is bridge clusters/b1.
func ended() Bridge {
	b := &dpuv1.DPUHCPBridge{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "b1", UID: "u1"}}
	return Bridge{Input: bridge.Input{Bridge: b, Exists: func(types.UID) bool { return false }}}
}

func remains(t *testing.T, granted bool, live ...client.Object) (bridge.Remains, error) {
	t.Helper()
	for _, o := range live {
		o.SetLabels(map[string]string{names.LabelManagedBy: names.ManagedBy, names.LabelBridge: "b1", names.LabelBridgeNamespace: "clusters", names.LabelOwnerUID: "u1"})
	}
	o := reads(t, func(o runtime.Object) error {
		if _, secrets := o.(*corev1.SecretList); secrets && !granted {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "", errors.New("no Role"))
		}
		return nil
	}, live...)
	return o.Remains(t.Context(), ended())
}

func at(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

func TestWhatTheCacheDoesNotShowIsNotLeftBehind(t *testing.T) {
	g := NewWithT(t)
	r, err := remains(t, true, &corev1.ConfigMap{ObjectMeta: at("clusters", "ignition")}, &metallb.IPAddressPool{ObjectMeta: at("metallb-system", "pool")},
		&metallb.L2Advertisement{ObjectMeta: at("metallb-system", "announced")}, &corev1.ConfigMap{ObjectMeta: at("strangers", "with our labels")})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(r.Others).To(ConsistOf(HaveField("GetName()", "ignition"), HaveField("GetName()", "pool"), HaveField("GetName()", "announced")))
}

func TestWhereSecretsMayNotBeReadIsTold(t *testing.T) {
	g := NewWithT(t)
	r, err := remains(t, false)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(r).To(And(HaveField("Secrets", BeEmpty()), HaveField("Denied", Equal([]string{"clusters"}))))
}

// The address of the registry is then missing from a template, and nothing else of the bridge waits for it.
func TestAServiceThatMayNotBeReadStopsNoBridge(t *testing.T) {
	g := NewWithT(t)
	o := reads(t, func(o runtime.Object) error {
		if _, is := o.(*corev1.Service); is {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "services"}, dpf.RegistryService, errors.New("no Role"))
		}
		return nil
	}, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "dpf", Name: "dpf-ca-trust-bundle"}, Data: map[string]string{dpf.TrustBundleKey: "DPF's"}})
	templates := bridge.Templates{Flavors: []dpf.DPUFlavor{{}}}
	config := &dpf.DPFOperatorConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "dpf"}}
	config.Spec.DeploymentMode = dpf.ModeZeroTrust
	g.Expect(o.registry(t.Context(), &templates, config)).To(Succeed())
	g.Expect(templates.Registry).To(BeNil())
	g.Expect(templates.RegistryCA).To(HaveField("Data", HaveKeyWithValue("ca.crt", "DPF's")))

	config.Spec.Security.CertManagement.TrustBundleConfigMapName = "another"
	g.Expect(o.registry(t.Context(), &templates, config)).To(Succeed())
	g.Expect(templates.RegistryCA).To(BeNil())
}

// If a kind is served only in another version, nobody can tell what objects it has.
func TestWhatIsServedInAnotherVersionIsNotTakenForGone(t *testing.T) {
	otherVersion := func(group schema.GroupVersion) OmegaMatcher {
		return MatchError(And(ContainSubstring(group.Group+"/v9"), ContainSubstring(group.String())))
	}
	for name, c := range map[string]struct {
		of     schema.GroupVersion
		served []string
		forced string
		want   OmegaMatcher
	}{
		"DPF's, in no version":          {dpf.GroupVersion, nil, "", Succeed()},
		"DPF's":                         {dpf.GroupVersion, []string{dpf.GroupVersion.Group + "/v9"}, "", otherVersion(dpf.GroupVersion)},
		"DPF's, which nobody waits for": {dpf.GroupVersion, []string{dpf.GroupVersion.Group + "/v9"}, "true", Succeed()},
		"HyperShift's":                  {hyperv1.GroupVersion, []string{hyperv1.GroupVersion.Group + "/v9"}, "true", otherVersion(hyperv1.GroupVersion)},
		"MetalLB's":                     {metallb.GroupVersion, []string{metallb.GroupVersion.Group + "/v9"}, "true", otherVersion(metallb.GroupVersion)},
	} {
		t.Run(name, func(t *testing.T) {
			g, kinds := NewWithT(t), scheme(t)
			o := reads(t, func(o runtime.Object) error {
				if gvk, err := apiutil.GVKForObject(o, kinds); err != nil || gvk.GroupVersion() == c.of {
					return &meta.NoKindMatchError{GroupKind: gvk.GroupKind(), SearchedVersions: []string{gvk.Version}}
				}
				return nil
			})
			o.Versions = func(_ context.Context, o runtime.Object) (schema.GroupVersionKind, []string, error) {
				gvk, err := apiutil.GVKForObject(o, kinds)
				return gvk, c.served, err
			}
			b := ended()
			b.Input.Bridge.Annotations = map[string]string{names.AnnotationForceDelete: c.forced}
			_, err := o.Remains(t.Context(), b)
			g.Expect(err).To(c.want)
		})
	}
}

// unwatchable is an API server that refuses each watch.
type unwatchable struct{ typedcore.CoreV1Interface }

func (unwatchable) Secrets(string) typedcore.SecretInterface { return unwatchableSecrets{} }

func (unwatchable) ConfigMaps(string) typedcore.ConfigMapInterface { return unwatchableConfigMaps{} }

type (
	unwatchableSecrets    struct{ typedcore.SecretInterface }
	unwatchableConfigMaps struct{ typedcore.ConfigMapInterface }
)

var errRefused = errors.New("refused")

func (unwatchableSecrets) Watch(context.Context, metav1.ListOptions) (watch.Interface, error) {
	return nil, errRefused
}

func (unwatchableConfigMaps) Watch(context.Context, metav1.ListOptions) (watch.Interface, error) {
	return nil, errRefused
}

// A bridge reports that its Secrets exceed its namespace's share of the watches.
func TestABridgeBeyondTheWatchesSaysSo(t *testing.T) {
	g := NewWithT(t)
	o := reads(t, func(runtime.Object) error { return nil })
	o.Secretless, o.Watches = true, namedwatch.New(unwatchable{}, func(types.NamespacedName) {})
	ctx, end := context.WithCancel(t.Context())
	t.Cleanup(end)
	go func() { _ = o.Watches.Start(ctx) }()
	seen := ended()
	g.Expect(o.named(ctx, &seen)).To(Succeed())
	g.Expect(seen.Polled).To(BeFalse())
	for i := range 3000 {
		name := types.NamespacedName{Namespace: "clusters", Name: strconv.Itoa(i)}
		o.Watches.Follow(name, namedwatch.Object{NamespacedName: name})
	}
	late := ended()
	late.Input.Bridge.Name = "late"
	g.Expect(o.named(ctx, &late)).To(Succeed())
	g.Expect(late.Polled).To(BeTrue())
}

// The author of a kubeconfig that is expensive to refuse can have his bridge reconciled as often as he likes.
func TestAKubeconfigIsRefusedOnce(t *testing.T) {
	g := NewWithT(t)
	hostile := bridge.Secret{Secret: &corev1.Secret{Data: map[string][]byte{kubeconfig.SecretKey: []byte("kind: [")}}}
	first, err := sanitised(t.Context(), hostile)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(first.Refused).To(Equal("OnlyKnownFields"))
	over, end := context.WithCancel(t.Context())
	end()
	for range 30 { // waiting for a turn would now and then return the error of the ended context
		again, err := sanitised(over, hostile)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(again).To(Equal(first))
	}
}
