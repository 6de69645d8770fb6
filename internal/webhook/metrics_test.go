package webhook_test

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/testkit/ports"
)

// scraper is what config/components/monitoring tells Prometheus to verify.
type scraper struct {
	ServerName string
	CA         struct{ Secret struct{ Name, Key string } }
}

func (w *world) scraper() scraper {
	w.t.Helper()
	text, err := os.ReadFile("../../config/components/monitoring/manager.yaml")
	w.Expect(err).NotTo(HaveOccurred())
	var monitor struct {
		Metadata struct{ Namespace string }
		Spec     struct{ Endpoints []struct{ TLSConfig scraper } }
	}
	w.Expect(yaml.Unmarshal(text, &monitor)).To(Succeed())
	s := monitor.Spec.Endpoints[0].TLSConfig
	w.Expect([]string{monitor.Metadata.Namespace, s.CA.Secret.Name}).To(Equal([]string{system, names.WebhookKeys}))
	return s
}

// scrape reads the manager's metrics, after verifying its certificate.
func (w *world) scrape(name, trusting string) error {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(trusting))
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: name}, DisableKeepAlives: true}
	answer, err := (&http.Client{Transport: transport}).Get(fmt.Sprintf("https://localhost:%d/metrics", w.scraped))
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if text, err := io.ReadAll(answer.Body); err != nil || answer.StatusCode != http.StatusOK || len(text) == 0 {
		return fmt.Errorf("%s: %w", answer.Status, err)
	}
	return nil
}

// The token goes only to the holder of the webhook's key, also during a renewal.
func TestAScraperKnowsTheManager(t *testing.T) {
	w := newWorld(t)
	w.scraped = int(ports.Free(t))
	w.now(time.Now().Add(-60*day - time.Hour)) // so that every certificate is valid for this client's own clock
	w.operator()
	s := w.scraper()
	first := w.field(s.CA.Secret.Key)
	w.Expect(w.scrape(s.ServerName, first)).To(Succeed())
	w.Expect(w.scrape("another.oooi-system.svc", first)).To(MatchError(ContainSubstring("certificate is valid for")))
	ended := w.always(func() error {
		secret := w.secret()
		if err := w.api.Get(w.ctx, client.ObjectKeyFromObject(secret), secret); err != nil {
			return err
		}
		return w.scrape(s.ServerName, string(secret.Data[s.CA.Secret.Key]))
	})

	w.now(time.Now().Add(-time.Hour))
	w.happens()
	next := w.field("next.crt")
	w.Expect(w.field(s.CA.Secret.Key)).To(Equal(first + next))
	w.Expect(w.scrape(s.ServerName, next)).To(MatchError(ContainSubstring("unknown authority")))
	w.now(time.Now())
	w.happens()
	w.Eventually(func() error { return w.scrape(s.ServerName, next) }).Should(Succeed())
	ended()
}

// A Secret of an older version has no ca.crt; it is added, and mended when somebody edits it.
func TestWhomToTrustIsWrittenWhereItIsNot(t *testing.T) {
	w := newWorld(t)
	w.operator()
	key := w.scraper().CA.Secret.Key
	w.Expect(w.field(key)).To(Equal(w.field("tls.crt")))
	secret := w.secret()
	w.Expect(w.changes(secret, func() { delete(secret.Data, key) })).To(Succeed())
	w.Expect(w.field(key)).To(Equal(w.field("tls.crt")))
}
