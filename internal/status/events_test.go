package status

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"

	"github.com/cldmnky/oooi/api/v1alpha1"
)

func TestOnlyAConditionThatTurnsIsAnEvent(t *testing.T) {
	condition := func(status metav1.ConditionStatus, reason, message string) []metav1.Condition {
		return []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: status, Reason: reason, Message: message}}
	}
	good, bad := condition(metav1.ConditionTrue, "Serving", "all serve"), condition(metav1.ConditionFalse, "NADNotFound", "make it")
	for name, c := range map[string]struct {
		before, after []metav1.Condition
		want          string
	}{
		"it turns good":           {bad, good, "Normal Serving Ready is True: all serve"},
		"it turns bad":            {good, bad, "Warning NADNotFound Ready is False: make it"},
		"only its message is new": {bad, condition(metav1.ConditionFalse, "NADNotFound", "make it soon"), ""},
		"first seen, and good":    {nil, good, ""},
		"first seen, and bad":     {nil, bad, "Warning NADNotFound Ready is False: make it"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			recorder := events.NewFakeRecorder(1)
			(&Writer{Events: recorder}).tell(&v1alpha1.Infra{}, c.before, c.after)
			if c.want == "" {
				g.Expect(recorder.Events).NotTo(Receive())
			} else {
				g.Expect(recorder.Events).To(Receive(Equal(c.want)))
			}
		})
	}
}

func TestANoteIsCutToWhatAnEventMaySay(t *testing.T) {
	recorder := events.NewFakeRecorder(1)
	Recorder(recorder).Eventf(&v1alpha1.Infra{}, nil, "Normal", "Long", "Say", "%s", strings.Repeat("ö", 1000))
	NewWithT(t).Expect(recorder.Events).To(Receive(Equal("Normal Long " + strings.Repeat("ö", 512))))
}
