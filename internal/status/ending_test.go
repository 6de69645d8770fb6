package status

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/plan"
	"github.com/cldmnky/oooi/internal/plan/ending"
)

func TestAnInfraThatIsBeingDeletedSaysWhatItWaitsFor(t *testing.T) {
	g, infra := NewWithT(t), &v1alpha1.Infra{}
	infra.Status = Infra(infra, plan.InfraPlan{}, allServe(), Outcome{}, morning)
	infra.Status.Addresses = []v1alpha1.AssignedAddress{{Component: "proxy", IP: "192.168.100.3"}}
	says := func(waits ending.Ending) (all []string, warnings int) {
		status := InfraEnding(infra, waits, noon)
		g.Expect(status.Addresses).To(Equal(infra.Status.Addresses))
		for _, c := range status.Conditions {
			all = append(all, c.Type+"="+string(c.Status)+"/"+c.Reason+": "+c.Message)
			if severity(c) == corev1.EventTypeWarning {
				warnings++
			}
		}
		return all, warnings
	}
	all, warnings := says(ending.Ending{Reason: ending.Deleting, Message: "waiting for pod p"})
	g.Expect(all).To(ConsistOf("Progressing=True/Deleting: waiting for pod p", "Degraded=False/Deleting: the deletion is in progress", "Ready=False/Deleting: it is being deleted: waiting for pod p"))
	g.Expect(warnings).To(BeZero(), "a deletion was asked for")
	all, warnings = says(ending.Ending{Reason: "NodeLost", Message: "its node n1 is gone", Stuck: true})
	g.Expect(all).To(ContainElements("Progressing=True/NodeLost: its node n1 is gone", "Degraded=True/NodeLost: its node n1 is gone"))
	g.Expect(warnings).To(Equal(1))
}
