package controller

import (
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unsafe"

	. "github.com/onsi/gomega"
	routev1 "github.com/openshift/api/route/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/internal/clusterapi"
	"github.com/cldmnky/oooi/internal/kept"
	"github.com/cldmnky/oooi/internal/nad"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/plan/workload"
)

// Most strings are equal in all objects that 500 Infras own.
func TestTheCacheKeepsOneCopyOfWhatObjectsShare(t *testing.T) {
	cached := func(owner string) *appsv1.Deployment {
		d := &appsv1.Deployment{}
		d.Labels = map[string]string{names.LabelManagedBy: string([]byte(names.ManagedBy))}
		d.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: names.ManagerFieldOwner, Operation: metav1.ManagedFieldsOperationApply,
			FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:ownerReferences":{"k:{\"uid\":\"` + owner + `\"}":{}}}}`)}}
		kept, err := trim(d)
		if err != nil {
			t.Fatal(err)
		}
		return kept.(*appsv1.Deployment)
	}
	one, other := cached("0d4b6a3c-9d4f-4f5e-8a55-2f0f6c1f5a11"), cached("7c1e2f3a-1b2c-4d5e-8f90-a1b2c3d4e5f6")
	if one.ManagedFields[0].FieldsV1 != other.ManagedFields[0].FieldsV1 {
		t.Errorf("each owner has its own copy of\n%s\n%s", one.ManagedFields[0].FieldsV1.GetRawBytes(), other.ManagedFields[0].FieldsV1.GetRawBytes())
	}
	if a, b := one.Labels[names.LabelManagedBy], other.Labels[names.LabelManagedBy]; unsafe.StringData(a) != unsafe.StringData(b) {
		t.Errorf("two copies of the label %s", a)
	}
}

// What the cache keeps can be read in a core dump, and takes from a heap of 256Mi.
func TestTheCacheKeepsNoKeyAndNoEndpoint(t *testing.T) {
	route := &routev1.Route{ObjectMeta: metav1.ObjectMeta{Name: "oauth", Annotations: map[string]string{"example.com/note": "SECRET"}}}
	route.Spec = routev1.RouteSpec{Host: "oauth.example.com", To: routev1.RouteTargetReference{Name: "oauth-openshift"},
		TLS: &routev1.TLSConfig{Termination: routev1.TLSTerminationReencrypt, Key: "SECRET", Certificate: "SECRET", CACertificate: "SECRET", DestinationCACertificate: "SECRET"}}
	route.Status.Ingress = []routev1.RouteIngress{{Host: "given.example.com", RouterName: "default", Conditions: []routev1.RouteIngressCondition{{Message: strings.Repeat("SECRET", 50)}}}}
	slice := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Name: "kube-apiserver-x", Labels: map[string]string{discoveryv1.LabelServiceName: "kube-apiserver"}}}
	slice.Ports = []discoveryv1.EndpointPort{{Port: new(int32(6443))}}
	for i := range 100 {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Addresses: []string{fmt.Sprintf("10.128.0.%d", i)}, NodeName: new("SECRET")})
	}
	machine := &clusterapi.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-c1", Name: "c1-x7", Annotations: map[string]string{"example.com/note": "SECRET"}, Labels: map[string]string{"example.com/note": "SECRET"}}}
	machine.Spec.InfrastructureRef = clusterapi.Reference{Kind: "KubevirtMachine", Name: "c1-vm"}
	machine.Status = clusterapi.MachineStatus{Phase: "Running", LastUpdated: "2026-11-27T20:03:00Z", Conditions: []clusterapi.Condition{{Type: "SECRET"}, {Type: "NodeHealthy", Status: "True"}}}
	for _, c := range []struct {
		object any
		keeps  []string
		atMost int // bytes as JSON
	}{
		{route, []string{"oauth.example.com", "given.example.com", "oauth-openshift"}, 300},
		{slice, []string{"6443", "kube-apiserver"}, 300},
		{machine, []string{"clusters-c1", "c1-vm", "Running", "2026-11-27T20:03:00Z", "NodeHealthy"}, 350},
	} {
		before, err := json.Marshal(c.object)
		if err != nil {
			t.Fatal(err)
		}
		kept, err := trim(c.object)
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(kept)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "SECRET") || len(text) > c.atMost {
			t.Errorf("of %d bytes %d are kept: %s", len(before), len(text), text)
		}
		for _, word := range c.keeps {
			if !strings.Contains(string(text), word) {
				t.Errorf("%s is read, and not kept: %s", word, text)
			}
		}
		t.Logf("%T: %d bytes become %d", kept, len(before), len(text))
	}
}

// Any editor of a namespace can write objects with our labels and our field manager's name.
func TestWhatAnEditorWritesUnderOurNameIsForgottenWithIt(t *testing.T) {
	g := NewWithT(t)
	written := func(fields string) *corev1.ConfigMap {
		c := &corev1.ConfigMap{Data: map[string]string{workload.BootstrapKey: strings.Repeat("x", mostBootstrap+1)}, BinaryData: map[string][]byte{"x": make([]byte, 1)}}
		c.Namespace, c.Labels = "a", map[string]string{names.LabelManagedBy: names.ManagedBy}
		c.ManagedFields = []metav1.ManagedFieldsEntry{
			{Manager: names.ManagerFieldOwner, Operation: metav1.ManagedFieldsOperationApply, FieldsV1: metav1.NewFieldsV1(fields)},
			{Manager: "another", Operation: metav1.ManagedFieldsOperationUpdate, FieldsV1: metav1.NewFieldsV1(fields)},
		}
		kept, err := trim(c)
		g.Expect(err).NotTo(HaveOccurred())
		return kept.(*corev1.ConfigMap)
	}
	reachable := func() (sets int) {
		fieldSets.Range(func(any, any) bool { sets++; return true })
		return sets
	}
	var all []*corev1.ConfigMap
	for i := range 100 {
		all = append(all, written(fmt.Sprintf(`{"f:data":{"f:%d":{}}}`, i)))
	}
	g.Expect(reachable()).To(BeNumerically(">=", 100))
	g.Expect(all[0].ManagedFields).NotTo(BeEmpty())
	g.Expect(all[0]).To(And(HaveField("Data", BeEmpty()), HaveField("BinaryData", BeEmpty())), "no bootstrap of ours is so large")
	g.Expect(written(`{"f:data":{"f:0":{}}}`).ManagedFields[0].FieldsV1).To(BeIdenticalTo(all[0].ManagedFields[0].FieldsV1))
	clear(all)
	g.Eventually(func() int { runtime.GC(); return reachable() }).Should(BeNumerically("<", 100))
	g.Expect(written(`{"f:data":{"f:`+strings.Repeat("x", kept.MostOfKubernetes)+`":{}}}`).ManagedFields).To(BeEmpty(), "and no set of fields of ours")
}

// Nor can he fill the memory with them: of objects larger than any of ours, or of HyperShift's, only the name is kept.
func TestOfALargeObjectTheNameIsKept(t *testing.T) {
	const mebibyte = 1 << 20
	long := strings.Repeat("x", mebibyte)
	ours := metav1.ObjectMeta{Namespace: "a", Name: "b", UID: "u", ResourceVersion: "7", Labels: map[string]string{names.LabelManagedBy: names.ManagedBy}}
	theirs := metav1.ObjectMeta{Namespace: "a", Name: "b", UID: "u", ResourceVersion: "7"}
	added := ours.DeepCopy()
	added.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "another", Operation: metav1.ManagedFieldsOperationUpdate, FieldsV1: metav1.NewFieldsV1(`{"f:data":{"f:` + long + `":{}}}`)}}
	annotated, finalized := ours.DeepCopy(), ours.DeepCopy()
	annotated.Annotations = map[string]string{"a": long[:mebibyte/4]}
	finalized.Finalizers = slices.Repeat([]string{"example.com/wait"}, 60000)
	ports := slices.Repeat([]corev1.ServicePort{{Name: "https", Port: 443}}, 40000)
	for what, o := range map[string]client.Object{
		"fields":          &corev1.ConfigMap{ObjectMeta: *added},
		"annotations":     &corev1.ServiceAccount{ObjectMeta: *annotated},
		"finalizers":      &appsv1.Deployment{ObjectMeta: *finalized},
		"secrets":         &corev1.ServiceAccount{ObjectMeta: ours, Secrets: slices.Repeat([]corev1.ObjectReference{{Name: long[:100]}}, 10000)},
		"ports":           &corev1.Service{ObjectMeta: ours, Spec: corev1.ServiceSpec{Ports: ports}},
		"another's ports": &corev1.Service{ObjectMeta: theirs, Spec: corev1.ServiceSpec{Ports: ports}},
		"a pull":          &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "b", UID: "u", ResourceVersion: "7", Labels: map[string]string{names.LabelManagedBy: names.ManagedBy, names.LabelPulls: "dns"}}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Args: []string{long}}}}},
		"whom it lets in": &networkingv1.NetworkPolicy{ObjectMeta: theirs, Spec: networkingv1.NetworkPolicySpec{Ingress: make([]networkingv1.NetworkPolicyIngressRule, 1), Egress: slices.Repeat([]networkingv1.NetworkPolicyEgressRule{{To: []networkingv1.NetworkPolicyPeer{{IPBlock: &networkingv1.IPBlock{CIDR: "10.0.0.0/8"}}}}}, 40000)}},
		"empty ports":     &corev1.Service{ObjectMeta: theirs, Spec: corev1.ServiceSpec{Ports: make([]corev1.ServicePort, kept.MostOfKubernetes/64)}},
		"a network":       &nad.NetworkAttachmentDefinition{ObjectMeta: theirs, Spec: nad.Spec{Config: long[:mebibyte/10]}},
	} {
		g, before := NewWithT(t), o.GetLabels()
		left, err := trim(o)
		g.Expect(err).NotTo(HaveOccurred())
		text, err := json.Marshal(left)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(len(text)).To(BeNumerically("<=", kept.MostOfKubernetes), what)
		g.Expect(kept.Octets(left)).To(BeNumerically("<=", kept.MostOfKubernetes), what)
		g.Expect(left).To(BeAssignableToTypeOf(o), what)
		g.Expect([]string{left.(client.Object).GetNamespace(), left.(client.Object).GetName(), string(left.(client.Object).GetUID()), left.(client.Object).GetResourceVersion()}).To(Equal([]string{"a", "b", "u", "7"}), what)
		_, inPart := kept.InPart(left.(client.Object))
		g.Expect(inPart).To(Equal(what != "fields" && what != "whom it lets in"), "%s: of those two nothing is left that is large", what)
		g.Expect(left.(client.Object).GetLabels()).To(Equal(before), "%s: and whose it is", what)
	}
	left, err := trim(&networkingv1.NetworkPolicy{ObjectMeta: theirs, Spec: networkingv1.NetworkPolicySpec{
		PodSelector: metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: metav1.LabelSelectorOpIn, Values: slices.Repeat([]string{long[:60]}, 10000)}}},
		PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeEgress},
	}})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(left.(*networkingv1.NetworkPolicy).Spec.PolicyTypes).To(ConsistOf(networkingv1.PolicyTypeEgress), "it isolates no pod")
	grants := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a", Annotations: map[string]string{"a": long[:mebibyte/4]}}}
	left, err = trim(grants)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(left.(*corev1.Namespace).Annotations).To(HaveKey("a"), "a namespace is its owner's, and says whom he grants")
}
