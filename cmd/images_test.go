package cmd

import (
	"bytes"
	"os"
	"strings"
	"syscall"
	"testing"

	. "github.com/onsi/gomega"
)

// The oooi, kubectl and sh commands of docs/AIRGAP.md run in order; the API server takes the mirror sets.
func TestThePageOnAirGapsMirrors(t *testing.T) {
	if args := os.Getenv("OOOI_TEST_ARGS"); args != "" {
		asProcess(t, args)
	}
	s := newShell(t)
	s.runs("kubectl create namespace clusters; kubectl apply -f - <<E" + strings.Replace(adminsHostedCluster, "name: c1", "name: dpu1", 1) + "E\n")
	for _, b := range blocks(pages(t)["docs/AIRGAP.md"]) {
		for _, line := range b.commands() {
			if strings.HasPrefix(line, "oooi images") || strings.HasPrefix(line, "kubectl ") {
				s.runs(line)
			}
		}
	}
	s.Expect(s.runs("cat mapping.txt")).To(Equal(releasedEnvoyImage + "=registry.example.com/oooi/" + strings.TrimPrefix(releasedEnvoyImage, "docker.io/") + "\n"))
	s.Expect(s.runs("kubectl get imagetagmirrorset oooi -o jsonpath='{.spec.imageTagMirrors[*].mirrors[*]}'")).To(Equal("registry.example.com/oooi/envoyproxy/envoy"))
	s.Expect(s.runs("kubectl -n clusters get hostedcluster dpu1 -o jsonpath='{.spec.imageContentSources[*].mirrors[*]}'")).To(Equal("registry.example.com/openshift-release-dev"))
}

// full is a disk without space.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

// A list that is cut off mirrors too little, which shows on the other side of the air gap.
func TestAListThatIsNotWrittenIsAnError(t *testing.T) {
	root := Root()
	root.SetOut(full{})
	root.SetArgs([]string{"images"})
	NewWithT(t).Expect(root.Execute()).To(MatchError(syscall.ENOSPC))
}

func TestImagesSaysWhatItLacks(t *testing.T) {
	for _, c := range []struct{ args, says string }{
		{"-o yaml", "write one of imageset, list, mapping, mirrorset"},
		{"-o mapping", "say where the images are mirrored"},
		{"--mirror-to=", "say where the images are mirrored"}, // of a variable that is not set
		{"--mirror-to mirror", "is no place in a registry"},
		{"envoy", `"envoy" is not expected`},
		{"--to x", "unknown flag"},
	} {
		var out bytes.Buffer
		root := Root()
		root.SetOut(&out)
		root.SetArgs(append([]string{"images"}, strings.Fields(c.args)...))
		err := root.Execute()
		g := NewWithT(t)
		g.Expect(err).To(MatchError(ContainSubstring(c.says)), c.args)
		g.Expect(ExitCode(err)).To(Equal(unusable), c.args)
		g.Expect(out.String()).To(BeEmpty(), c.args)
	}
}
