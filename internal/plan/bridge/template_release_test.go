package bridge

import (
	"testing"

	"github.com/cldmnky/oooi/internal/bfcfg"
)

// Else another version of ours could look the same.
func TestTheSamplesBecomeTemplates(t *testing.T) {
	for _, zeroTrust := range []bool{false, true} {
		if _, err := bfcfg.Template(sample(zeroTrust)); err != nil {
			t.Errorf("zero-trust %v: %v", zeroTrust, err)
		}
	}
}
