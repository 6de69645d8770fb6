package vlan

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/cldmnky/oooi/internal/nad"
	"github.com/cldmnky/oooi/internal/plan/input"
)

// OpenShift keeps the list on the nodes when its ConfigMap is deleted, and recreates that without our line; elsewhere there is no list.
func TestWhetherForwardingMayBeSwitchedOff(t *testing.T) {
	ours := &corev1.ConfigMap{Data: map[string]string{nad.SysctlAllowlistKey: nad.AllowlistLine()}}
	for name, c := range map[string]struct {
		in   input.Input
		want bool
	}{
		"no list":                     {input.Input{}, true},
		"no list, on OpenShift":       {input.Input{OpenShift: true}, false},
		"a list without our line":     {input.Input{SysctlAllowlist: &corev1.ConfigMap{}}, false},
		"a list with it":              {input.Input{SysctlAllowlist: ours}, true},
		"a list with it on OpenShift": {input.Input{SysctlAllowlist: ours, OpenShift: true}, true},
	} {
		t.Run(name, func(t *testing.T) { NewWithT(t).Expect(tuningAllowed(c.in)).To(Equal(c.want)) })
	}
}
