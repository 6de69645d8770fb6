package cmd

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

func TestLibrariesLogAsWeDo(t *testing.T) {
	g := NewWithT(t)
	file, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	g.Expect(err).NotTo(HaveOccurred())
	stderr := os.Stderr
	os.Stderr = file
	t.Cleanup(func() { os.Stderr = stderr; _ = file.Close() })

	log, err := logger("warn")
	g.Expect(err).NotTo(HaveOccurred())
	for _, say := range []func(string){
		func(text string) { log.Error(text) },
		func(text string) { klog.Error(text) },
		func(text string) { ctrl.Log.Error(nil, text) },
	} {
		g.Expect(file.Truncate(0)).To(Succeed())
		_, err := file.Seek(0, 0)
		g.Expect(err).NotTo(HaveOccurred())
		say("the watch ended")
		line, err := os.ReadFile(file.Name())
		g.Expect(err).NotTo(HaveOccurred())
		said := map[string]any{}
		g.Expect(json.Unmarshal(line, &said)).To(Succeed(), "%s", line)
		g.Expect(said).To(HaveKeyWithValue("msg", "the watch ended"))
	}
	_, err = logger("loud")
	g.Expect(err).To(MatchError(ContainSubstring("give debug, info, warn or error")))
}
