package webhook_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
)

// With cert-manager the manager may do nothing with Secrets or webhook configurations, reads files, and the caBundle is
// cert-manager's to write.
func TestWithCertManagerNoSecretIsOurs(t *testing.T) {
	g := NewWithT(t)
	overlay, err := os.MkdirTemp("../../config", ".overlay.") // kustomize takes nothing from outside
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { g.Expect(os.RemoveAll(overlay)).To(Succeed()) })
	kustomized := func(overlaid string) string {
		g.Expect(os.WriteFile(filepath.Join(overlay, "kustomization.yaml"), []byte(overlaid), 0o600)).To(Succeed())
		text, err := exec.Command(filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "kubectl"), "kustomize", overlay).Output()
		g.Expect(err).NotTo(HaveOccurred())
		return string(text)
	}
	const ours, files, injected = "- secrets\n", "--webhook-cert-dir=/webhook\n", "cert-manager.io/inject-ca-from: oooi-system/oooi-webhook\n"
	without := kustomized("resources: [../default]\n")
	g.Expect(without).To(And(ContainSubstring(ours), Not(ContainSubstring(files)), Not(ContainSubstring(injected))))
	with := kustomized("resources: [../default]\ncomponents: [../components/cert-manager]\n")
	g.Expect(with).To(And(Not(ContainSubstring(ours)), Not(ContainSubstring("- validatingwebhookconfigurations\n")), ContainSubstring(files), ContainSubstring(injected),
		ContainSubstring("- oooi-webhook.oooi-system.svc\n")))
}
