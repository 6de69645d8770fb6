package controller_test

import (
	"fmt"
	"maps"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/internal/nad"
	"github.com/cldmnky/oooi/internal/names"
)

// localnet is the workers' network as OVN-Kubernetes leaves it: with its ID and name, and with addresses, so that ours is a copy.
func (w *world) localnet(name string) *nad.NetworkAttachmentDefinition {
	return &nad.NetworkAttachmentDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.ns, Annotations: map[string]string{"k8s.ovn.org/network-id": "7", "k8s.ovn.org/network-name": "tenant"}},
		Spec:       nad.Spec{Config: fmt.Sprintf(`{"cniVersion":"1.0.0","name":"tenant","type":"ovn-k8s-cni-overlay","topology":"localnet","vlanID":33,"subnets":"10.9.0.0/16","netAttachDefName":"%s/%s"}`, w.ns, name)},
	}
}

// OVN-Kubernetes keeps a network's ID and name in annotations of every network of its own, ours among them (networkmanager/nad_controller.go).
// An older manager copied the source's annotations to ours and restored them each time.
func TestWhatOVNKubernetesWritesOnOurNetworkIsItsOwn(t *testing.T) {
	w := newWorld(t)
	w.hosts("c1")
	infra := w.smallest("c1")
	infra.Spec.NetworkConfig.NetworkAttachmentDefinition = "tenant"
	w.creates(w.localnet("tenant"), infra)
	sees(w, named(&nad.NetworkAttachmentDefinition{}, w.ns, "c1-oooi"), there)

	ours := w.copyOf("c1-oooi")
	w.Expect(ours.Annotations).NotTo(HaveKey(HavePrefix("k8s.ovn.org/")))
	older := nad.Apply(w.ns, ours.Name, must(nad.Parse(ours.Spec.Config)))
	annotations := maps.Clone(ours.Annotations)
	maps.Copy(annotations, map[string]string{"k8s.ovn.org/network-id": "7", "k8s.ovn.org/network-name": "tenant", names.AnnotationApplied: "older"})
	older.WithAnnotations(annotations).WithLabels(ours.Labels)
	w.Expect(w.api.Apply(w.ctx, older, client.FieldOwner(names.ManagerFieldOwner), client.ForceOwnership)).To(Succeed())
	sees(w, ours, func(g Gomega, n *nad.NetworkAttachmentDefinition) {
		g.Expect(n.Annotations).NotTo(HaveKey(HavePrefix("k8s.ovn.org/")), "the next manager lets go of them")
	})

	before := w.silent()
	for round := range 1000 {
		ours := w.copyOf("c1-oooi")
		was := ours.DeepCopy()
		ours.Annotations["k8s.ovn.org/network-id"], ours.Annotations["k8s.ovn.org/network-name"] = fmt.Sprint(round), "ours"
		w.Expect(w.api.Patch(w.ctx, ours, client.MergeFrom(was), client.FieldOwner("network-manager"))).To(Succeed())
	}
	w.silent()
	for _, call := range w.calls.written()[before:] { // meanwhile the Infra's status may report Degraded
		w.Expect(call).To(HaveSuffix("/infras/c1/status"), "the manager answers what OVN-Kubernetes writes")
	}
	w.Expect(w.copyOf("c1-oooi").Annotations).To(HaveKeyWithValue("k8s.ovn.org/network-id", "999"))
}

func (w *world) copyOf(name string) *nad.NetworkAttachmentDefinition {
	w.t.Helper()
	n := named(&nad.NetworkAttachmentDefinition{}, w.ns, name)
	w.Expect(w.api.Get(w.ctx, client.ObjectKeyFromObject(n), n)).To(Succeed())
	return n
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}
