//go:build netns

package vm_test

import (
	"log/slog"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/internal/daemon"
	"github.com/cldmnky/oooi/internal/dhcp/lease"
	"github.com/cldmnky/oooi/internal/dhcp/vm"
	"github.com/cldmnky/oooi/internal/testkit/envtest"
)

// TestKubeVirtArrivesWhileWeRun needs the lab's kube-apiserver, as all tests with this tag may.
func TestKubeVirtArrivesWhileWeRun(t *testing.T) {
	cluster := envtest.For(t, true)
	scheme := daemon.Scheme()
	g := NewWithT(t)
	g.Expect(apiextensionsv1.AddToScheme(scheme)).To(Succeed())
	c, err := client.NewWithWatch(cluster.Admin, client.Options{Scheme: scheme})
	g.Expect(err).NotTo(HaveOccurred())

	d := vm.NewDirectory(slog.New(slog.DiscardHandler))
	d.Follow(t.Context(), c, "default")
	unresolved := func() bool { return d.Owner("52:54:00:aa:00:01").Unresolved }
	g.Eventually(unresolved).WithTimeout(10*time.Second).Should(BeFalse(), "an absent kind counts as empty")

	for _, kind := range []string{"VirtualMachine", "VirtualMachineInstance"} {
		g.Expect(c.Create(t.Context(), definition(kind))).To(Succeed())
	}
	machine := object("VirtualMachine", "worker-1", nil)
	g.Eventually(func() error { return client.IgnoreAlreadyExists(c.Create(t.Context(), machine)) }).WithTimeout(10 * time.Second).Should(Succeed())
	instance := object("VirtualMachineInstance", "worker-1", machine)
	g.Eventually(func() error { return client.IgnoreAlreadyExists(c.Create(t.Context(), instance)) }).WithTimeout(10 * time.Second).Should(Succeed())
	g.Eventually(unresolved).WithTimeout(12*time.Second).Should(BeTrue(), "it starts, and nobody knows its address")

	launcher := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "virt-launcher-worker-1", Namespace: "default",
			Labels:      map[string]string{"kubevirt.io": "virt-launcher", "kubevirt.io/created-by": string(instance.GetUID())},
			Annotations: map[string]string{"k8s.v1.cni.cncf.io/network-status": `[{"name":"default/vlan100","mac":"52:54:00:aa:00:01"}]`},
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "compute", Image: "none"}}},
	}
	g.Expect(c.Create(t.Context(), launcher)).To(Succeed())
	worker1 := lease.VM{Namespace: "default", Name: "worker-1", UID: string(machine.GetUID())}
	g.Eventually(func() lease.VM { return d.Owner("52:54:00:aa:00:01").VM }).WithTimeout(5 * time.Second).Should(Equal(worker1))

	g.Expect(c.Delete(t.Context(), machine)).To(Succeed())
	g.Expect(client.IgnoreNotFound(c.Delete(t.Context(), instance))).To(Succeed()) // the garbage collector may be first
	g.Eventually(func() bool { exists, _ := d.Exists(worker1); return exists }).WithTimeout(10 * time.Second).Should(BeFalse())
}

// definition is a CRD that takes anything.
func definition(kind string) *apiextensionsv1.CustomResourceDefinition {
	plural := map[string]string{"VirtualMachine": "virtualmachines", "VirtualMachineInstance": "virtualmachineinstances"}[kind]
	anything := &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)}}
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + ".kubevirt.io", Annotations: map[string]string{"api-approved.kubernetes.io": "unapproved, a test"}},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "kubevirt.io", Scope: apiextensionsv1.NamespaceScoped,
			Names:    apiextensionsv1.CustomResourceDefinitionNames{Kind: kind, ListKind: kind + "List", Plural: plural},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true, Schema: anything}},
		},
	}
}

func object(kind, name string, owner *unstructured.Unstructured) *unstructured.Unstructured {
	card := map[string]any{"devices": map[string]any{"interfaces": []any{map[string]any{"name": "vlan"}}}}
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"domain": card}}}
	if owner == nil {
		u.Object["spec"] = map[string]any{"template": map[string]any{"spec": map[string]any{"domain": card}}}
	}
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: "kubevirt.io", Version: "v1", Kind: kind})
	u.SetName(name)
	u.SetNamespace("default")
	if owner != nil {
		u.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "kubevirt.io/v1", Kind: owner.GetKind(), Name: owner.GetName(), UID: owner.GetUID()}})
	}
	return u
}
