package diffcli

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/change"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/plan/bridge"
)

// ends has an object wait for its deletion.
func ends(o client.Object) {
	now := metav1.Now()
	o.SetDeletionTimestamp(&now)
	o.SetFinalizers([]string{names.BridgeFinalizer})
}

// The annotation has the operator delete the hosted cluster though DPUs are attached.
func TestWhatAFileSaysOfABridgeThatIsBeingDeletedIsTold(t *testing.T) {
	g := NewWithT(t)
	is, forced := oneBridge("b1", "a"), oneBridge("b1", "a")
	ends(is)
	ends(forced)
	forced.Annotations = map[string]string{names.AnnotationForceDelete: "true"}
	d, all := ofFiles(t, is, forced)
	changed, unknown, err := d.bridges(t.Context(), all, &bridge.Settings{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(unknown).To(ConsistOf("DPUHCPBridge dpf/b1: it is being deleted; what follows is not foretold"))
	g.Expect(changed).To(ConsistOf(HaveField("Objects", ConsistOf(HaveField("Fields", ConsistOf(HaveField("To", "true")))))))

	d, all = ofFiles(t, is, is)
	changed, unknown, err = d.bridges(t.Context(), all, &bridge.Settings{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(unknown).To(BeEmpty())
	g.Expect(changed).To(BeEmpty())
}

func TestWhatAFileSaysOfAnInfraThatIsBeingDeletedIsTold(t *testing.T) {
	g := NewWithT(t)
	is := &v1alpha1.Infra{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "c1"}}
	ends(is)
	edited := is.DeepCopy()
	edited.Annotations = map[string]string{"a": "b"}
	d, _ := ofFiles(t, is, edited)
	i, err := d.infra(t.Context(), client.ObjectKeyFromObject(is))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(i.Stopped).To(Equal("it is being deleted; what follows is not foretold"))
	g.Expect(i.Objects).To(ConsistOf(And(HaveField("Verb", change.Update), HaveField("Fields", ConsistOf(change.Field{Path: "metadata.annotations.a", To: "b"})))))
}
