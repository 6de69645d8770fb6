package approve

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cldmnky/oooi/internal/dpf"
)

// The phases are those of a DPU's way (doca-platform ce08828f, dpu_types.go), and one that is yet to be invented.
func TestBug186ThePhaseOfADPUDecidesNothing(t *testing.T) {
	in := func(phase string) dpf.DPU {
		d := dpf.DPU{}
		text := fmt.Sprintf(`{"metadata":{"name":"card"},"status":{"phase":%q,"conditions":[{"type":"OSInstalled","status":"True"}]}}`, phase)
		if err := json.Unmarshal([]byte(text), &d); err != nil {
			t.Fatal(err)
		}
		return d
	}
	for _, phase := range []string{"OS Installing", "Rebooting", "DPU Cluster Config", "Node Effect Removal", "Ready", "Error", "Another"} {
		if diff := cmp.Diff(DPUs([]dpf.DPU{in("DPU Cluster Config")}), DPUs([]dpf.DPU{in(phase)})); diff != "" {
			t.Errorf("phase %s: %s", phase, diff)
		}
		if !DPUs([]dpf.DPU{in(phase)})[0].OSInstalled {
			t.Errorf("phase %s: its kubelet gets no certificate", phase)
		}
	}
}
