package workload

import (
	"testing"

	"github.com/cldmnky/oooi/internal/component"
)

func TestEveryComponentIsPlanned(t *testing.T) {
	for _, c := range component.All {
		if p := planners[c.Name]; p.plan == nil || p.refer == nil {
			t.Errorf("nothing says what a %s becomes, or refers to", c.Kind)
		}
	}
}
