package cmd

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/daemon"
)

func TestDNSSaysWhichFlagIsWrong(t *testing.T) {
	for said, args := range map[string][]string{
		"name the DNSServer: set --namespace and --dns-name, or --config-file, or --corefile": {"--namespace", "tenants"},
		`invalid argument "here" for "--pod-ip" flag: ParseAddr("here"): unable to parse IP`:  {"--config-file", "dns.yaml", "--pod-ip", "here"},
		"--instance=-1: instances are numbered from 0, e.g. --instance=1":                     {"--config-file", "dns.yaml", "--instance", "-1"},
		"reading the Corefile: open absent: no such file or directory":                        {"--corefile", "absent"},
	} {
		t.Run(said, func(t *testing.T) {
			cmd := newDNSCommand()
			cmd.SilenceErrors, cmd.SilenceUsage = true, true
			cmd.SetArgs(args)
			NewWithT(t).Expect(cmd.Execute()).To(MatchError(said))
		})
	}
}

// Horizons are in the API server's time.
func TestDNSTellsTheTimeByTheAPIServer(t *testing.T) {
	g, noon := NewWithT(t), time.Date(2031, 11, 21, 12, 0, 0, 0, time.UTC)
	apiServer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Date", noon.Format(http.TimeFormat))
		w.WriteHeader(http.StatusForbidden)
	}))
	t.Cleanup(apiServer.Close)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	g.Expect(os.WriteFile(kubeconfig, fmt.Appendf(nil, "{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: {cluster: a}}], clusters: [{name: a, cluster: {server: %q}}]}", apiServer.URL), 0o600)).To(Succeed())
	t.Setenv("KUBECONFIG", kubeconfig)

	d, err := newDNSDaemon(&daemon.Flags{Namespace: "clusters", LogLevel: "info"}, "c1-dns", 0)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(d.Now()).To(BeZero(), "nobody has told it")
	g.Expect(d.Kube.List(t.Context(), &v1alpha1.DHCPLeaseList{})).NotTo(Succeed())
	g.Expect(d.Now()).To(BeTemporally("~", noon, time.Minute))
}
