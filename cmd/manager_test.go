package cmd

import (
	"testing"

	. "github.com/onsi/gomega"
)

// internal/webhook and internal/controller test how they are served, and to whom.
func TestMetricsAreServedByTheWebhooksCertificate(t *testing.T) {
	g, flags := NewWithT(t), managerFlags{metricsSecure: true, webhookAddress: ":9443"}
	made := flags.metrics(flags.webhook())
	g.Expect(made.TLSOpts).To(HaveLen(1))
	g.Expect(made.FilterProvider).NotTo(BeNil())
	flags.webhookCerts = "/webhook"
	g.Expect(flags.metrics(flags.webhook())).To(And(HaveField("CertDir", "/webhook"), HaveField("TLSOpts", BeEmpty())))
	flags.webhookAddress = "0"
	g.Expect(flags.metrics(flags.webhook())).To(And(HaveField("CertDir", ""), HaveField("TLSOpts", BeEmpty())))
}
