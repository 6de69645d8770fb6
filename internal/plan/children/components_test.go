package children

import (
	"testing"

	"github.com/cldmnky/oooi/internal/component"
)

func TestEveryComponentIsMade(t *testing.T) {
	for _, c := range component.All {
		if objects[c.Name] == nil {
			t.Errorf("nothing says what an Infra becomes for %s", c.Name)
		}
	}
}
