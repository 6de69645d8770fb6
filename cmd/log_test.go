package cmd

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

// This runs in a process of its own: controller-runtime keeps the first logger that it gets.
func TestLibrariesLogAsWeDo(t *testing.T) {
	g := NewWithT(t)
	if os.Getenv("OOOI_TEST_LOGS") != "" {
		log, err := logger("warn")
		g.Expect(err).NotTo(HaveOccurred())
		log.Error("the watch ended")
		klog.Error("the watch ended")
		ctrl.Log.Error(nil, "the watch ended")
		return
	}
	process := exec.Command(os.Args[0], "-test.run=^TestLibrariesLogAsWeDo$")
	process.Env = append(os.Environ(), "OOOI_TEST_LOGS=1")
	var stderr bytes.Buffer
	process.Stderr = &stderr
	g.Expect(process.Run()).To(Succeed(), "%s", &stderr)
	lines := bytes.Split(bytes.TrimSpace(stderr.Bytes()), []byte("\n"))
	g.Expect(lines).To(HaveLen(3))
	for _, line := range lines {
		said := map[string]any{}
		g.Expect(json.Unmarshal(line, &said)).To(Succeed(), "%s", line)
		g.Expect(said).To(HaveKeyWithValue("msg", "the watch ended"))
	}
}

func TestALogLevelThatIsNoneIsRefused(t *testing.T) {
	_, err := logger("loud")
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("give debug, info, warn or error")))
}
