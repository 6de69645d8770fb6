package clusterapi_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cldmnky/oooi/internal/clusterapi"
)

// joined is a Machine as Cluster API writes it, cut down.
const joined = `{"metadata":{"namespace":"clusters-c1","name":"c1-x7","labels":{"hypershift.openshift.io/nodePool":"c1"}},
 "spec":{"clusterName":"c1","infrastructureRef":{"apiVersion":"infrastructure.cluster.x-k8s.io/v1alpha1","kind":"KubevirtMachine","name":"c1-vm","namespace":"clusters-c1"}},
 "status":{"phase":"Running","lastUpdated":"2026-11-27T20:03:00Z","nodeRef":{"kind":"Node","name":"c1-x7"},"nodeInfo":{"osImage":"RHCOS"},
  "conditions":[{"type":"Ready","status":"True","lastTransitionTime":"2026-11-27T20:01:00Z"},{"type":"NodeHealthy","status":"True","lastTransitionTime":"2026-11-27T20:04:00Z"}]}}`

func machine(g Gomega, text string) *clusterapi.Machine {
	m := &clusterapi.Machine{}
	g.Expect(json.Unmarshal([]byte(text), m)).To(Succeed())
	return m
}

func TestAMachineSaysSinceWhenItsNodeIsReady(t *testing.T) {
	for name, c := range map[string]struct {
		replace, by string
		is          bool
	}{
		"as it is":                       {"", "", true},
		"the Node is not Ready":          {`"NodeHealthy","status":"True"`, `"NodeHealthy","status":"False"`, false},
		"nobody knows":                   {`"NodeHealthy","status":"True"`, `"NodeHealthy","status":"Unknown"`, false},
		"nobody has looked":              {`"NodeHealthy"`, `"InfrastructureReady"`, false},
		"it has no Node yet":             {"Running", "Provisioned", false},
		"it goes":                        {`"name":"c1-x7"`, `"name":"c1-x7","deletionTimestamp":"2026-11-27T20:05:00Z"`, false},
		"a time that is none":            {"2026-11-27T20:04:00Z", "2026-11-27", false},
		"no time at which its Node came": {"2026-11-27T20:03:00Z", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			m := machine(g, strings.Replace(joined, c.replace, c.by, 1))
			for _, m := range []*clusterapi.Machine{m, m.Trimmed()} {
				node, ready, is := m.Joined()
				g.Expect(is).To(Equal(c.is))
				if is {
					g.Expect(node).To(BeTemporally("==", time.Date(2026, 11, 27, 20, 3, 0, 0, time.UTC)))
					g.Expect(ready).To(BeTemporally("==", time.Date(2026, 11, 27, 20, 4, 0, 0, time.UTC)))
				}
			}
		})
	}
}

func TestAMachineNamesItsVirtualMachine(t *testing.T) {
	g := NewWithT(t)
	m := machine(g, joined)
	g.Expect(m.Trimmed().VirtualMachine()).To(Equal("c1-vm"), "not the Machine's own name, though the two are mostly equal")
	g.Expect(m.Trimmed().Labels).To(BeEmpty())
	m.Spec.InfrastructureRef.Kind = "AgentMachine"
	g.Expect(m.VirtualMachine()).To(BeEmpty())
}

func TestACopyIsItsOwn(t *testing.T) {
	g := NewWithT(t)
	list := &clusterapi.MachineList{Items: []clusterapi.Machine{*machine(g, joined)}}
	other := list.DeepCopyObject().(*clusterapi.MachineList)
	g.Expect(other).To(Equal(list))
	other.Items[0].Status.Conditions[1].Status, other.Items[0].Labels["hypershift.openshift.io/nodePool"] = "False", "c2"
	g.Expect(list.Items[0]).To(Equal(*machine(g, joined)))
}
