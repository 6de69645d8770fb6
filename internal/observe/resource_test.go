package observe

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/cldmnky/oooi/internal/nad"
)

// Networks in documentation name a resource that only KubeVirt's bridge-marker provides: our pods start without it.
func TestAResourceThatNoNodeHasIsNotAskedFor(t *testing.T) {
	const br = "bridge.network.kubevirt.io/br100"
	node := func(name corev1.ResourceName, count string) *corev1.Node {
		n := &corev1.Node{}
		n.Name, n.Status.Allocatable = "n1", corev1.ResourceList{name: resource.MustParse(count)}
		return n
	}
	network := &nad.NetworkAttachmentDefinition{}
	network.Annotations = map[string]string{nad.ResourceName: br}
	for name, c := range map[string]struct {
		network *nad.NetworkAttachmentDefinition
		nodes   []client.Object
		want    bool
	}{
		"no network":        {nil, nil, false},
		"none is named":     {&nad.NetworkAttachmentDefinition{}, nil, false},
		"a node has it":     {network, []client.Object{node(br, "1k")}, false},
		"all of it is gone": {network, []client.Object{node(br, "0")}, true},
		"nodes have others": {network, []client.Object{node("bridge.network.kubevirt.io/br200", "1k")}, true},
		"there are no":      {network, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			o := &Observer{Reader: fake.NewClientBuilder().WithObjects(c.nodes...).Build()}
			g.Expect(o.unoffered(t.Context(), c.network)).To(Equal(c.want))
		})
	}
}
