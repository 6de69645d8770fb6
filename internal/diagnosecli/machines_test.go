package diagnosecli

import (
	"encoding/json"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// What KubeVirt writes of a machine in each state of its life.
func TestAMachineRunsOnceItsInstanceDoes(t *testing.T) {
	const created, ran = "2026-11-27T11:00:00Z", "2026-11-27T11:05:00Z"
	instance := func(phase string) string {
		return `{"metadata":{"creationTimestamp":"` + created + `"},"status":{"phase":"` + phase + `"}}`
	}
	for name, c := range map[string]struct {
		vm, instance  string
		runs, changes bool
		started       string
	}{
		"new":                    {`{}`, "", false, true, ""},
		"provisioned":            {`{"status":{"printableStatus":"Provisioning"}}`, "", false, true, ""},
		"stopped":                {`{"status":{"printableStatus":"Stopped"}}`, "", false, false, ""},
		"without its volume":     {`{"status":{"printableStatus":"ErrorPvcNotFound"}}`, "", false, false, ""},
		"seen by nobody":         {`{}`, `{"metadata":{"creationTimestamp":"` + created + `"}}`, false, true, created},
		"without a node yet":     {`{"status":{"printableStatus":"Starting"}}`, instance("Scheduling"), false, true, created},
		"without any node":       {`{"status":{"printableStatus":"ErrorUnschedulable"}}`, instance("Scheduling"), false, false, created},
		"running":                {`{"status":{"printableStatus":"Running"}}`, `{"metadata":{"creationTimestamp":"` + created + `"},"status":{"phase":"Running","phaseTransitionTimestamps":[{"phase":"Scheduled","phaseTransitionTimestamp":"2026-11-27T11:04:00Z"},{"phase":"Running","phaseTransitionTimestamp":"` + ran + `"}]}}`, true, false, ran},
		"running, without times": {`{}`, instance("Running"), true, false, created},
		"failed":                 {`{}`, instance("Failed"), false, false, created},
		"being deleted":          {`{"metadata":{"deletionTimestamp":"` + ran + `"}}`, instance("Running"), true, true, created},
		"started again":          {`{}`, `{"metadata":{"creationTimestamp":"` + created + `","deletionTimestamp":"` + ran + `"},"status":{"phase":"Running"}}`, true, true, created},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			var vm, i machine
			g.Expect(json.Unmarshal([]byte(c.vm), &vm)).To(Succeed())
			of := &i
			if c.instance == "" {
				of = nil
			} else {
				g.Expect(json.Unmarshal([]byte(c.instance), &i)).To(Succeed())
			}
			m := ofMachine(vm, of, "clusters-c1")
			g.Expect(m.Runs).To(Equal(c.runs))
			g.Expect(m.Changes).To(Equal(c.changes))
			g.Expect(m.Status).NotTo(BeEmpty())
			started := ""
			if !m.Started.IsZero() {
				started = m.Started.UTC().Format(time.RFC3339)
			}
			g.Expect(started).To(Equal(c.started))
		})
	}
}
