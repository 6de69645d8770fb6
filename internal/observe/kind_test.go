package observe

import (
	"context"
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// down is an API server that answers no question.
type down struct{ client.Reader }

func (down) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return errors.New("it is down")
}

func (down) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return errors.New("it is down")
}

// oooi diff prints these errors to people who know kinds, and no Go types.
func TestAnErrorNamesTheKind(t *testing.T) {
	g, o := NewWithT(t), &Observer{Reader: down{}, Kinds: NewKinds(true, true)}
	for _, kind := range o.Kinds.All() {
		o.Kinds.Set(kind, true)
	}
	_, err := get[hyperv1.HostedCluster](t.Context(), o, types.NamespacedName{Namespace: "clusters", Name: "c1"})
	g.Expect(err).To(MatchError("reading HostedCluster clusters/c1: it is down"))
	_, err = list[hyperv1.NodePoolList](t.Context(), o, "clusters")
	g.Expect(err).To(MatchError("listing NodePoolList of namespace clusters: it is down"))
}
