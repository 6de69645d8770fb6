package status

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/finding"
)

func TestAFindingIsToldOnceAndAWarningAgainWhileItStands(t *testing.T) {
	g := NewWithT(t)
	recorder := events.NewFakeRecorder(100)
	teller := Teller{Events: recorder}
	about := &v1alpha1.Infra{}
	start := time.Unix(0, 0)
	missing := finding.Refuse("Provisioned", "CIDRMissing").Say("say it")
	wins := finding.Warn("Provisioned", "FieldSetByHand").Say("it wins")
	for _, step := range []struct {
		after    time.Duration
		findings []finding.Finding
		again    time.Duration
		told     []string
	}{
		{0, []finding.Finding{missing, wins}, 30 * time.Minute, []string{"Warning CIDRMissing say it", "Normal FieldSetByHand it wins"}},
		{10 * time.Minute, []finding.Finding{missing, wins}, 20 * time.Minute, nil},
		{30 * time.Minute, []finding.Finding{missing, wins}, 30 * time.Minute, []string{"Warning CIDRMissing say it"}},
		{31 * time.Minute, nil, 0, nil},
		{32 * time.Minute, []finding.Finding{missing}, 30 * time.Minute, []string{"Warning CIDRMissing say it"}},
	} {
		g.Expect(teller.Tell(about, step.findings, start.Add(step.after))).To(Equal(step.again), "%s", step.after)
		g.Expect(drained(recorder)).To(Equal(step.told), "%s", step.after)
	}

	teller.Forget(client.ObjectKeyFromObject(about))
	teller.Tell(about, []finding.Finding{missing}, start.Add(33*time.Minute))
	g.Expect(drained(recorder)).To(HaveLen(1), "an object of that name made anew")
}

// A thousand objects that are too large cause neither a thousand events, nor new ones each time that one changes.
func TestOfManyFindingsAFewAreTold(t *testing.T) {
	g, recorder := NewWithT(t), events.NewFakeRecorder(5000)
	teller, about := Teller{Events: recorder}, &v1alpha1.Infra{}
	var many []finding.Finding
	for i := range 1000 {
		many = append(many, finding.Refuse("Provisioned", "ObjectTooLarge").Say("NodePool %d is too large", i))
	}
	for second := range 60 {
		teller.Tell(about, many, time.Unix(int64(second), 0))
	}
	g.Expect(drained(recorder)).To(And(HaveLen(mostTold+1), ContainElement(ContainSubstring("MoreFindings more is wrong than these 20"))))
	teller.Tell(about, many[mostTold:2*mostTold], time.Unix(60, 0))
	g.Expect(drained(recorder)).To(And(HaveLen(mostTold), Not(ContainElement(ContainSubstring("MoreFindings")))), "the rest, when those are put right")
}

func TestTwoFindingsOfOneReasonAreTwoEvents(t *testing.T) {
	g := NewWithT(t)
	api, scheme := fake.NewClientset(), runtime.NewScheme()
	g.Expect(v1alpha1.AddToScheme(scheme)).To(Succeed())
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: api.EventsV1()})
	t.Cleanup(broadcaster.Shutdown)
	g.Expect(broadcaster.StartRecordingToSinkWithContext(t.Context())).To(Succeed())
	teller := Teller{Events: broadcaster.NewRecorder(scheme, "oooi")}
	about := &v1alpha1.Infra{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "c1"}}
	invalid := finding.Refuse("Provisioned", "AnnotationInvalid")
	teller.Tell(about, []finding.Finding{invalid.At("metadata.annotations.a").Say("one"), invalid.At("metadata.annotations.b").Say("two")}, time.Unix(0, 0))
	g.Eventually(func() (notes []string) {
		all, err := api.EventsV1().Events("clusters").List(t.Context(), metav1.ListOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		for _, e := range all.Items {
			notes = append(notes, e.Note)
		}
		return notes
	}).Should(ConsistOf("one", "two"))
}

func drained(r *events.FakeRecorder) (all []string) {
	for {
		select {
		case e := <-r.Events:
			all = append(all, fmt.Sprint(e))
		default:
			return all
		}
	}
}
