package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	accore "k8s.io/client-go/applyconfigurations/core/v1"
	acmeta "k8s.io/client-go/applyconfigurations/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/cldmnky/oooi/api/v1alpha1"
	ac "github.com/cldmnky/oooi/api/v1alpha1/applyconfiguration/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/kept"
	"github.com/cldmnky/oooi/internal/managedfields"
	"github.com/cldmnky/oooi/internal/metallb"
	"github.com/cldmnky/oooi/internal/names"
)

// service is an intent with every shape of field: maps, lists by key, sets, and atomic values.
func service() *accore.ServiceApplyConfiguration {
	return accore.Service("c1-proxy-svc", "clusters").WithLabels(map[string]string{"app": "proxy"}).WithFinalizers("a/b").
		WithSpec(accore.ServiceSpec().WithSelector(map[string]string{"app": "proxy"}).
			WithPorts(accore.ServicePort().WithName("tcp-443").WithPort(443))) // the API server defaults the protocol
}

// whole is our entry in managedFields as the API server writes it after service was applied.
const whole = `{
	"f:metadata":{"f:annotations":{"f:hostedcluster.densityops.com/applied":{}},"f:labels":{"f:app":{}},"f:finalizers":{"v:\"a/b\"":{}}},
	"f:spec":{"f:selector":{},"f:ports":{"k:{\"port\":443,\"protocol\":\"TCP\"}":{".":{},"f:name":{},"f:port":{}}}}}`

func live(t *testing.T, fields string, intent *unstructured.Unstructured) *corev1.Service {
	t.Helper()
	s := &corev1.Service{}
	s.Annotations = intent.GetAnnotations()
	s.ManagedFields = []metav1.ManagedFieldsEntry{
		{Manager: "kubectl", Operation: metav1.ManagedFieldsOperationUpdate, FieldsV1: metav1.NewFieldsV1(`{}`)},
		{Manager: names.ManagerFieldOwner, Operation: metav1.ManagedFieldsOperationApply, FieldsV1: metav1.NewFieldsV1(fields)},
	}
	return s
}

func TestWhatWasAppliedAndNobodyTookIsUnchanged(t *testing.T) {
	for name, c := range map[string]struct {
		fields string
		want   bool
	}{
		"all is ours":                       {whole, true},
		"somebody took a label":             {`{"f:metadata":{"f:annotations":{"f:hostedcluster.densityops.com/applied":{}},"f:finalizers":{"v:\"a/b\"":{}}},"f:spec":{"f:selector":{},"f:ports":{"k:{\"port\":443,\"protocol\":\"TCP\"}":{".":{},"f:name":{},"f:port":{}}}}}`, false},
		"somebody took the selector":        {`{"f:metadata":{"f:annotations":{"f:hostedcluster.densityops.com/applied":{}},"f:labels":{"f:app":{}},"f:finalizers":{"v:\"a/b\"":{}}},"f:spec":{"f:ports":{"k:{\"port\":443,\"protocol\":\"TCP\"}":{".":{},"f:name":{},"f:port":{}}}}}`, false},
		"somebody took an element of a set": {`{"f:metadata":{"f:annotations":{"f:hostedcluster.densityops.com/applied":{}},"f:labels":{"f:app":{}},"f:finalizers":{"v:\"c/d\"":{}}},"f:spec":{"f:selector":{},"f:ports":{"k:{\"port\":443,\"protocol\":\"TCP\"}":{".":{},"f:name":{},"f:port":{}}}}}`, false},
		"the port is another":               {`{"f:metadata":{"f:annotations":{"f:hostedcluster.densityops.com/applied":{}},"f:labels":{"f:app":{}},"f:finalizers":{"v:\"a/b\"":{}}},"f:spec":{"f:selector":{},"f:ports":{"k:{\"port\":444,\"protocol\":\"TCP\"}":{".":{},"f:name":{},"f:port":{}}}}}`, false},
		"somebody took a port's name":       {`{"f:metadata":{"f:annotations":{"f:hostedcluster.densityops.com/applied":{}},"f:labels":{"f:app":{}},"f:finalizers":{"v:\"a/b\"":{}}},"f:spec":{"f:selector":{},"f:ports":{"k:{\"port\":443,\"protocol\":\"TCP\"}":{".":{},"f:port":{}}}}}`, false},
		"nothing is ours":                   {`{}`, false},
		"not what the API server writes":    {`[`, false},
	} {
		t.Run(name, func(t *testing.T) {
			want, err := managedfields.Intent(service())
			g := NewWithT(t)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(managedfields.Unchanged(live(t, c.fields, want), want)).To(Equal(c.want))
		})
	}
}

// The next Infra on the VLAN must see the addresses that the last one was given.
func TestWhatWasAppliedIsInTheCacheAfterwards(t *testing.T) {
	g := NewWithT(t)
	behind := 0 // how many reads lag behind the write
	cache := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		Apply: func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration, options ...client.ApplyOption) error {
			behind = 3
			return c.Apply(ctx, o, options...)
		},
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			if behind > 0 {
				behind--
				return apierrors.NewNotFound(corev1.Resource("services"), key.Name)
			}
			return c.Get(ctx, key, o, options...)
		},
	})
	applied, err := (&Writer{Client: cache, Live: cache}).To(t.Context(), Owner{}, []runtime.ApplyConfiguration{service()})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(applied.Wrote).To(BeTrue())
	g.Expect(cache.Get(t.Context(), client.ObjectKey{Namespace: "clusters", Name: "c1-proxy-svc"}, &corev1.Service{})).To(Succeed())
}

// A drift that is restored is told of once, though the cache shows it for a while.
func TestADriftIsRestoredOnce(t *testing.T) {
	g := NewWithT(t)
	api := fake.NewClientBuilder().WithReturnManagedFields().Build()
	var drifted *corev1.Service
	behind := 0 // how many reads lag behind the write
	cache := interceptor.NewClient(api, interceptor.Funcs{
		Apply: func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration, options ...client.ApplyOption) error {
			behind = 3
			return c.Apply(ctx, o, options...)
		},
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			if drifted != nil && behind > 0 {
				behind--
				drifted.DeepCopyInto(o.(*corev1.Service))
				return nil
			}
			return c.Get(ctx, key, o, options...)
		},
	})
	w := &Writer{Client: cache, Live: api}
	restores := func() (writes, mended int) {
		for range 2 {
			applied, err := w.To(t.Context(), Owner{}, []runtime.ApplyConfiguration{service()})
			g.Expect(err).NotTo(HaveOccurred())
			if mended += len(applied.Mended); applied.Wrote {
				writes++
			}
		}
		return writes, mended
	}
	writes, mended := restores()
	g.Expect([]int{writes, mended}).To(Equal([]int{1, 0}))
	s := &corev1.Service{}
	g.Expect(api.Get(t.Context(), client.ObjectKey{Namespace: "clusters", Name: "c1-proxy-svc"}, s)).To(Succeed())
	s.Spec.Selector = map[string]string{"app": "theirs"}
	g.Expect(api.Update(t.Context(), s, client.FieldOwner("somebody"))).To(Succeed())
	drifted = s.DeepCopy()
	behind = 1
	writes, mended = restores()
	g.Expect([]int{writes, mended}).To(Equal([]int{1, 1}))
}

// An object that somebody made, and the cache lacks, stays theirs: the next pass sees it, and says so.
func TestWhatSomebodyMadeMeanwhileIsNotTakenOver(t *testing.T) {
	g := NewWithT(t)
	api := fake.NewClientBuilder().WithReturnManagedFields().Build()
	theirs := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "c1-proxy-svc"}, Spec: corev1.ServiceSpec{Selector: map[string]string{"app": "theirs"}}}
	g.Expect(api.Create(t.Context(), theirs, client.FieldOwner("somebody"))).To(Succeed())
	cache := interceptor.NewClient(api, interceptor.Funcs{Get: func(_ context.Context, _ client.WithWatch, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
		return apierrors.NewNotFound(corev1.Resource("services"), key.Name)
	}})
	_, err := (&Writer{Client: cache, Live: cache}).To(t.Context(), Owner{}, []runtime.ApplyConfiguration{service()})
	g.Expect(err).To(MatchError(apierrors.IsConflict, "IsConflict"))
	g.Expect(api.Get(t.Context(), client.ObjectKeyFromObject(theirs), theirs)).To(Succeed())
	g.Expect(theirs.Spec.Selector).To(Equal(map[string]string{"app": "theirs"}))
	g.Expect(theirs.Labels).To(BeEmpty())
}

func TestAnotherIntentIsAChangeEvenIfAllIsOurs(t *testing.T) {
	g := NewWithT(t)
	before, err := managedfields.Intent(service())
	g.Expect(err).NotTo(HaveOccurred())
	// One label less: what remains is ours, and the live object has more.
	after, err := managedfields.Intent(accore.Service("c1-proxy-svc", "clusters"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(managedfields.Unchanged(live(t, whole, before), after)).To(BeFalse())
}

// Whatever managedFields contain, comparing terminates without a panic.
func FuzzManagedFields(f *testing.F) {
	f.Add([]byte(whole))
	f.Add([]byte(`{"f:spec":{"f:ports":{"k:[]":{},"k:{}":{},"v:null":1}},"f:metadata":[]}`))
	f.Fuzz(func(t *testing.T, fields []byte) {
		want, err := managedfields.Intent(service())
		if err != nil {
			t.Fatal(err)
		}
		if managedfields.Unchanged(live(t, string(fields), want), want) && !json.Valid(fields) {
			t.Fatal("unchanged by fields that are no JSON")
		}
	})
}

func TestOnlyWhatIsOursIsOwned(t *testing.T) {
	labelled := func(uid, instance string) *corev1.ConfigMap {
		o := &corev1.ConfigMap{}
		o.Namespace = "clusters-c1"
		o.Labels = map[string]string{names.LabelManagedBy: names.ManagedBy, names.LabelInfra: "c1", names.LabelInfraNamespace: "clusters", names.LabelOwnerUID: uid}
		if instance != "" {
			o.Labels[names.LabelApp], o.Labels[names.LabelInstance] = "proxy", instance
		}
		return o
	}
	controlledBy := func(o *corev1.ConfigMap, uid types.UID) *corev1.ConfigMap {
		yes := true
		o.OwnerReferences = []metav1.OwnerReference{{APIVersion: v1alpha1.GroupVersion.String(), UID: uid, Controller: &yes}}
		return o
	}
	inWorkload := controlledBy(labelled("", ""), "dead")
	inWorkload.OwnerReferences[0].APIVersion = "apps/v1"
	us := Owner{UID: "us", Exists: func(uid types.UID) bool { return uid == "us" || uid == "neighbour" }, Names: NameOf("infra", "clusters", "c1")}
	other := labelled("dead", "")
	other.Labels[names.LabelInfra] = "c2"
	manual := labelled("dead", "")
	delete(manual.Labels, names.LabelManagedBy)
	for name, c := range map[string]struct {
		object *corev1.ConfigMap
		want   bool
	}{
		"controlled by us":                          {controlledBy(&corev1.ConfigMap{}, "us"), true},
		"controlled by another, with our label":     {controlledBy(labelled("us", ""), "neighbour"), false},
		"controlled by one that is dead, names us":  {controlledBy(labelled("", ""), "dead"), true},
		"controlled by one that is dead, no name":   {controlledBy(&corev1.ConfigMap{}, "dead"), false},
		"a workload's that is dead, names us":       {inWorkload, false},
		"with our UID":                              {labelled("us", ""), true},
		"restored: names us, its owner is dead":     {labelled("dead", ""), true},
		"names us, its owner lives":                 {labelled("neighbour", ""), false},
		"names another, its owner is dead":          {other, false},
		"names us, but is nothing that we apply":    {manual, false},
		"restored: a child's, which names us too":   {labelled("dead", "c1-proxy"), false},
		"names us, and says nothing of an owner":    {labelled("", ""), false},
		"somebody else's of the same name, no more": {&corev1.ConfigMap{}, false},
	} {
		t.Run(name, func(t *testing.T) { NewWithT(t).Expect(us.owns(c.object)).To(Equal(c.want)) })
	}
}

// infra is an intent for an object that its users write too.
func infra(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	want, err := managedfields.Intent(ac.Infra("c1", "clusters").WithLabels(map[string]string{names.LabelHostedCluster: "c1"}).
		WithSpec(ac.InfraSpec().WithNetworkConfig(ac.NetworkConfig().WithCIDR("10.0.0.0/24").WithGateway("10.0.0.1"))))
	if err != nil {
		t.Fatal(err)
	}
	return want
}

func TestWhatIsSetByWhomeverIsSettled(t *testing.T) {
	const marks = `"f:metadata":{"f:annotations":{"f:hostedcluster.densityops.com/applied":{}},"f:labels":{"f:hostedcluster.densityops.com/hostedcluster":{}}}`
	for name, c := range map[string]struct {
		fields, cidr, gateway, digest string
		want                          bool
	}{
		"as it was applied":               {`{` + marks + `,"f:spec":{"f:networkConfig":{"f:cidr":{},"f:gateway":{}}}}`, "10.0.0.0/24", "10.0.0.1", "", true},
		"somebody changed a field":        {`{` + marks + `,"f:spec":{"f:networkConfig":{"f:cidr":{}}}}`, "10.0.0.0/24", "10.0.0.9", "", true},
		"somebody emptied a field":        {`{` + marks + `,"f:spec":{"f:networkConfig":{"f:cidr":{}}}}`, "10.0.0.0/24", "", "", false},
		"somebody took a label":           {`{"f:metadata":{"f:annotations":{"f:hostedcluster.densityops.com/applied":{}}}}`, "10.0.0.0/24", "10.0.0.1", "", false},
		"restored: nothing of it is ours": {`{}`, "10.0.0.0/24", "10.0.0.1", "", false},
		"another intent was applied":      {`{` + marks + `}`, "10.0.0.0/24", "10.0.0.1", "another", false},
	} {
		t.Run(name, func(t *testing.T) {
			want, is := infra(t), &v1alpha1.Infra{}
			is.Annotations = maps.Clone(want.GetAnnotations())
			if c.digest != "" {
				is.Annotations[names.AnnotationApplied] = c.digest
			}
			is.Spec.NetworkConfig.CIDR, is.Spec.NetworkConfig.Gateway = v1alpha1.Subnet(c.cidr), v1alpha1.IPAddress(c.gateway)
			is.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: names.ManagerFieldOwner, Operation: metav1.ManagedFieldsOperationApply, FieldsV1: metav1.NewFieldsV1(c.fields)}}
			NewWithT(t).Expect(settled(is, want)).To(Equal(c.want))
		})
	}
}

func TestAnEarlierOwnerOfOurNameIsSucceeded(t *testing.T) {
	us := Owner{UID: "us", Names: NameOf("hostedcluster", "clusters", "c1")}
	for name, c := range map[string]struct {
		ref  metav1.OwnerReference
		want bool
	}{
		"our own":               {metav1.OwnerReference{Kind: "HostedCluster", Name: "c1", UID: "us", Controller: new(true)}, false},
		"the earlier one's":     {metav1.OwnerReference{Kind: "HostedCluster", Name: "c1", UID: "dead", Controller: new(true)}, true},
		"another's":             {metav1.OwnerReference{Kind: "HostedCluster", Name: "c2", UID: "c2", Controller: new(true)}, false},
		"another kind's":        {metav1.OwnerReference{Kind: "Bundle", Name: "c1", UID: "bundle", Controller: new(true)}, false},
		"nobody's who controls": {metav1.OwnerReference{Kind: "HostedCluster", Name: "c1", UID: "dead"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			o := &v1alpha1.Infra{}
			o.Namespace, o.OwnerReferences = "clusters", []metav1.OwnerReference{c.ref}
			NewWithT(t).Expect(us.succeeds(o)).To(Equal(c.want))
		})
	}
}

// Who takes away the mark by which a template stays asks for the newest; a plan of a moment before does not put it back.
func TestWhatHasChangedSinceThePlanIsLeftToTheNextPlan(t *testing.T) {
	g := NewWithT(t)
	api := fake.NewClientBuilder().WithReturnManagedFields().Build()
	w := &Writer{Client: api, Live: api}
	wants := func(selector string, owner Owner) Applied {
		t.Helper()
		applied, err := w.To(t.Context(), owner, []runtime.ApplyConfiguration{service().WithAnnotations(map[string]string{"mark": "stays"}).
			WithOwnerReferences(acmeta.OwnerReference().WithAPIVersion("v1").WithKind("ConfigMap").WithName("o").WithUID("u").WithController(true)).
			WithSpec(accore.ServiceSpec().WithSelector(map[string]string{"app": selector}))})
		g.Expect(err).NotTo(HaveOccurred())
		return applied
	}
	wants("before", Owner{UID: "u"})
	is := &corev1.Service{}
	key := client.ObjectKey{Namespace: "clusters", Name: "c1-proxy-svc"}
	g.Expect(api.Get(t.Context(), key, is)).To(Succeed())
	read := Owner{UID: "u", Read: map[finding.Object]string{{APIVersion: "v1", Kind: "Service", Namespace: key.Namespace, Name: key.Name}: is.ResourceVersion}}
	delete(is.Annotations, "mark")
	g.Expect(api.Update(t.Context(), is, client.FieldOwner("admin"))).To(Succeed())

	g.Expect(wants("after", read).Wrote).To(BeTrue(), "what was read is out of date")
	g.Expect(api.Get(t.Context(), key, is)).To(Succeed())
	g.Expect(is.Annotations).NotTo(HaveKey("mark"))
	g.Expect(is.Spec.Selector).To(HaveKeyWithValue("app", "before"))

	read.Read[finding.Object{APIVersion: "v1", Kind: "Service", Namespace: key.Namespace, Name: key.Name}] = is.ResourceVersion
	g.Expect(wants("after", read).Wrote).To(BeTrue())
	g.Expect(api.Get(t.Context(), key, is)).To(Succeed())
	g.Expect(is.Spec.Selector).To(HaveKeyWithValue("app", "after"))
}

func TestWhatIsRejectedIsFoundOfItsObject(t *testing.T) {
	g := NewWithT(t)
	refusing := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		Apply: func(context.Context, client.WithWatch, runtime.ApplyConfiguration, ...client.ApplyOption) error {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "services"}, "c1-proxy-svc", errors.New("a webhook refuses it"))
		},
	})
	applied, err := (&Writer{Client: refusing, Live: refusing}).Add(t.Context(), Owner{}, service())
	g.Expect(err).To(MatchError(apierrors.IsForbidden, "IsForbidden"))
	g.Expect(applied.Findings).To(ConsistOf(And(
		HaveField("Reason", "Rejected"), HaveField("Message", ContainSubstring("a webhook refuses it")),
		HaveField("Of", finding.Object{APIVersion: "v1", Kind: "Service", Namespace: "clusters", Name: "c1-proxy-svc"}),
	)))
}

// Of an object that the cache has only in part, nobody can tell whether it changed: it is left alone, and not taken for somebody else's.
func TestWhatIsKeptInPartIsLeftAlone(t *testing.T) {
	g := NewWithT(t)
	ours := map[string]string{names.LabelManagedBy: names.ManagedBy, names.LabelOwnerUID: "us"}
	labels := maps.Clone(ours)
	for i := range 1500 {
		labels[fmt.Sprintf("example.com/%d", i)] = strings.Repeat("x", 63)
	}
	scheme := runtime.NewScheme()
	g.Expect(clientgoscheme.AddToScheme(scheme)).To(Succeed())
	g.Expect(metallb.AddToScheme(scheme)).To(Succeed())
	advertisement := &metallb.L2Advertisement{ObjectMeta: metav1.ObjectMeta{Namespace: "metallb-system", Name: "b1", Labels: labels}}
	ignition := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "b1", Labels: labels}}
	theirs := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "theirs", Labels: maps.Clone(labels)}}
	theirs.Labels[names.LabelOwnerUID] = "them"
	cache := interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).WithObjects(advertisement, ignition, theirs).Build(), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			if err := c.Get(ctx, key, o, options...); err != nil {
				return err
			}
			reflect.ValueOf(o).Elem().Set(reflect.ValueOf(kept.Of(o)).Elem())
			return nil
		},
		Apply: func(context.Context, client.WithWatch, runtime.ApplyConfiguration, ...client.ApplyOption) error {
			return errors.New("it was written")
		},
	})
	applied, err := (&Writer{Client: cache, Live: cache}).Add(t.Context(), Owner{UID: "us", Exists: func(types.UID) bool { return true }},
		client.ApplyConfigurationFromUnstructured(&unstructured.Unstructured{Object: map[string]any{"apiVersion": metallb.GroupVersion.String(), "kind": "L2Advertisement", "metadata": map[string]any{"namespace": "metallb-system", "name": "b1"}}}),
		accore.ConfigMap("b1", "clusters").WithLabels(ours), accore.ConfigMap("theirs", "clusters").WithLabels(ours))
	g.Expect(err).NotTo(HaveOccurred())
	said := func(reason, message string) any {
		return And(HaveField("Reason", reason), HaveField("Message", HavePrefix(message)), HaveField("Of.Kind", strings.Fields(message)[0]))
	}
	g.Expect(applied.Findings).To(ConsistOf(
		said("ObjectTooLarge", "L2Advertisement metallb-system/b1 is too large to be read: its metadata takes "),
		said("ObjectTooLarge", "ConfigMap clusters/b1 is too large to be read: it takes "),
		said("NameTaken", "ConfigMap clusters/theirs exists and is not ours"),
	))
}
