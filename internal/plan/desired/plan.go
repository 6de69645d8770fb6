// Package desired has the result of planning, objects as apply configurations and findings, and helpers that several stages share.
package desired

import (
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/cldmnky/oooi/internal/finding"
)

// Plan is the result of planning one object.
type Plan struct {
	// Objects are the desired ones, in the order in which they are applied.
	Objects []runtime.ApplyConfiguration
	// Findings are reported in status.
	Findings []finding.Finding
}

// Blocked says whether a finding on one of these conditions freezes the plan: nothing is created, and what already runs stays as it is.
func (p Plan) Blocked(conditions ...string) bool {
	for _, c := range conditions {
		if finding.Worst(p.Findings, c).Blocks() {
			return true
		}
	}
	return false
}

// Want adds desired objects.
func (p *Plan) Want(objects ...runtime.ApplyConfiguration) { p.Objects = append(p.Objects, objects...) }

// Find adds findings.
func (p *Plan) Find(findings ...finding.Finding) { p.Findings = append(p.Findings, findings...) }
