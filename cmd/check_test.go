package cmd

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/cldmnky/oooi/internal/check"
	"github.com/cldmnky/oooi/internal/step"
)

func TestACheckThatCannotBeginSaysWhy(t *testing.T) {
	silent := httptest.NewServer(http.NotFoundHandler())
	defer silent.Close()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	text := "apiVersion: v1\nkind: Config\ncurrent-context: a\nclusters: [{name: a, cluster: {server: '" + silent.URL + "'}}]\ncontexts: [{name: a, context: {cluster: a}}]\n"
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for says, args := range map[string][]string{
		"write table or json":                   {"-o", "yaml"},
		"a time to wait is written --wait=10m":  {"--wait", "10m"},
		"unknown flag: --nonsense":              {"--nonsense"},
		"none is in the kubeconfig":             {},
		"asking the API server for its version": {"--kubeconfig", kubeconfig},
		"waited for 0s: ":                       {"--kubeconfig", kubeconfig, "--wait=1ms"},
		"--wait -5m0s: write a time to come":    {"--wait=-5m"},
		`invalid argument "soon" for "--wait" flag: write a time with its unit, e.g. 90s or 5m`: {"--wait=soon"},
	} {
		t.Run(says, func(t *testing.T) {
			g := NewWithT(t)
			t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
			var out bytes.Buffer
			root := Root()
			root.SetOut(&out)
			root.SetErr(t.Output())
			root.SetArgs(append([]string{"check"}, args...))
			err := root.Execute()
			g.Expect(err).To(MatchError(ContainSubstring(says)))
			g.Expect(ExitCode(err)).To(Equal(unusable))
			g.Expect(out.String()).To(BeEmpty(), "nothing is said in place of a result")
		})
	}
}

func TestTheExitCodeOfACheck(t *testing.T) {
	g := NewWithT(t)
	of := func(worst step.Outcome) error { return verdict([]step.Step{{Outcome: step.OK}, {Outcome: worst}}) }
	g.Expect(of(step.Skip)).To(Succeed())
	g.Expect(of(step.Warn)).To(Succeed())
	g.Expect(ExitCode(of(step.Fail))).To(Equal(1))
	g.Expect(ExitCode(of(step.Unread))).To(Equal(3))
}

// What the operator would do is read from its arguments as the operator reads them, not from this process' environment.
func TestTheOperatorsArgumentsAreUnderstood(t *testing.T) {
	g := NewWithT(t)
	t.Setenv("RELATED_IMAGE_OOOI", "mine")
	m, err := managerOf([]string{"manager", "--leader-elect", "--webhook-bind-address=:9443", "--dpu-bridge=false", "--a-flag-of-tomorrow=1", "--envoy-image=e:1"})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(m).To(Equal(check.Manager{
		VLAN: true, Elects: true, Webhook: true, OwnCertificate: true, Envoy: "e:1",
		Lenders: []string{"default", "openshift-multus", "openshift-sriov-network-operator", "openshift-cnv"},
	}))
	_, err = managerOf([]string{"--dpu-bridge=maybe"})
	g.Expect(err).To(MatchError(ContainSubstring("reading the operator's arguments")))
}

// A build of the tree without a stamp says the version that its manifests name.
func TestABuildKnowsItsVersion(t *testing.T) {
	g := NewWithT(t)
	g.Expect(version()).To(MatchRegexp(`^(v\d+\.\d+\.\d+.*|[0-9a-f]{40})$`))
	commit = "58df5bce443b.dirty"
	defer func() { commit = "" }()
	g.Expect(version()).To(Equal(strings.TrimPrefix(releasedImage, "oooi:") + "+58df5bce443b.dirty"))
	g.Expect(validation.IsValidLabelValue(check.Version(version()))).To(BeEmpty(), "the leader writes it on its Lease")
}
