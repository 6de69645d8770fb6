// Package desired is what planning yields: objects as apply configurations, findings, and the parts that several stages make them of.
package desired

import (
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/cldmnky/oooi/internal/finding"
)

// Plan is what one object becomes.
type Plan struct {
	// Objects are desired, as apply configurations, in the order in which they are applied.
	Objects []runtime.ApplyConfiguration
	// Findings are what status says.
	Findings []finding.Finding
}

// Blocked says whether a finding on one of the gating conditions holds everything back: nothing is created for what may
// not be, and what already runs is left as it is.
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
