package check

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/step"
)

// soon is less than what is left when the operator (30 days) or cert-manager (a third of its life) renews a certificate.
const soon = 14 * 24 * time.Hour

// injected is where cert-manager is told to write a caBundle (cert-manager, pkg/apis/certmanager/v1/types.go).
const injected = "cert-manager.io/inject-ca-from"

// ownedByOLM is the label that OLM puts on what it makes of a bundle; its value is the ClusterServiceVersion
// (operator-lifecycle-manager, pkg/lib/ownerutil).
const ownedByOLM = "olm.owner"

// byOLM is the ClusterServiceVersion that the operator is installed by; empty if it is not by OLM.
func (f Facts) byOLM() string {
	if f.Deployment.Is == nil {
		return ""
	}
	return f.Deployment.Is.Labels[ownedByOLM]
}

func configuration(f Facts) []step.Step {
	do := "apply the operator's manifests again: helm upgrade, or make deploy"
	w := f.Webhook.Is
	switch {
	case f.Deployment.Is == nil && f.Deployment.Unread == "":
		return one(skip("the webhook is not checked: there is no operator"))
	case f.Deployment.Is != nil && !f.Manager.Webhook:
		return one(skip("the operator serves no webhook: it runs without --webhook-bind-address"))
	case f.byOLM() != "":
		return one(skip("OLM makes the webhook's configurations and certificates: kubectl get validatingwebhookconfigurations -l %s=%s", ownedByOLM, f.byOLM()))
	case f.Webhook.Unread != "":
		return one(unread("the webhook", f.Webhook.Unread))
	case w == nil:
		return one(fail(do, "there is no ValidatingWebhookConfiguration %s: mistakes are told by conditions only", names.Webhook))
	}
	for _, h := range w.Webhooks {
		if len(h.ClientConfig.CABundle) == 0 {
			return one(about("ValidatingWebhookConfiguration", "", w.Name, fail(bundleFrom(f), "webhook %s has no caBundle: API servers cannot call it, and go on without it", h.Name)))
		}
	}
	return one(ok("ValidatingWebhookConfiguration %s has %d webhooks, each with a caBundle", w.Name, len(w.Webhooks)))
}

// bundleFrom is who mends a caBundle.
func bundleFrom(f Facts) string {
	if from := f.Webhook.Is.Annotations[injected]; from != "" {
		return "cert-manager writes it from Certificate " + from + ": kubectl -n " + f.Namespace + " describe certificate"
	}
	return "the operator writes it: kubectl -n " + f.Namespace + " logs -l app.kubernetes.io/component=manager --prefix"
}

// renew is what to do about a certificate.
func renew(f Facts) string {
	if f.Webhook.Is != nil && f.Webhook.Is.Annotations[injected] != "" {
		return "cert-manager renews it: kubectl -n " + f.Namespace + " describe certificate"
	}
	return "kubectl -n " + f.Namespace + " delete secret " + names.WebhookKeys + " (the operator makes new keys at once)"
}

// untold says why there is nothing to check of the webhook's certificates.
func (f Facts) untold() string {
	switch {
	case f.Deployment.Is == nil && f.Deployment.Unread == "":
		return "there is no operator"
	case f.Deployment.Is != nil && !f.Manager.Webhook:
		return "the operator serves no webhook"
	case f.byOLM() != "":
		return "OLM makes them"
	case f.Webhook.Unread != "":
		return "the webhook's configuration is not read"
	case f.Webhook.Is == nil || len(f.Webhook.Is.Webhooks) == 0 || len(f.Webhook.Is.Webhooks[0].ClientConfig.CABundle) == 0:
		return "no caBundle says whom to trust"
	}
	return ""
}

// trust says whether one of the certificates that API servers trust is valid now.
func trust(f Facts) []step.Step {
	if why := f.untold(); why != "" {
		return one(skip("whom API servers trust is not checked: %s", why))
	}
	var last time.Time
	for _, c := range bundle(f.Webhook.Is) {
		if !f.Now.Before(c.NotBefore) && c.NotAfter.After(last) {
			last = c.NotAfter
		}
	}
	switch {
	case last.IsZero():
		return one(fail(renew(f), "the webhook's caBundle has no certificate that is valid already: API servers go on without the webhook"))
	case last.Before(f.Now):
		return one(fail(renew(f), "the webhook's certificate expired %s ago (%s): API servers go on without the webhook", days(f.Now.Sub(last)), date(last)))
	case last.Sub(f.Now) < soon:
		return one(warn(renew(f), "the webhook's certificate expires in %s (%s), and nobody has renewed it", days(last.Sub(f.Now)), date(last)))
	}
	return one(ok("API servers trust a certificate of the webhook until %s", date(last)))
}

// bundle has the certificates of a caBundle.
func bundle(w *admissionregistrationv1.ValidatingWebhookConfiguration) (all []*x509.Certificate) {
	for block, rest := pem.Decode(w.Webhooks[0].ClientConfig.CABundle); block != nil; block, rest = pem.Decode(rest) {
		if c, err := x509.ParseCertificate(block.Bytes); err == nil {
			all = append(all, c)
		}
	}
	return all
}

func date(t time.Time) string { return t.UTC().Format(time.DateOnly) }

// days is a time in days, or in hours if it is short.
func days(d time.Duration) string {
	if d < 48*time.Hour {
		return fmt.Sprintf("%d h", int(d.Hours()))
	}
	return fmt.Sprintf("%d days", int(d.Hours()/24))
}

// certificate says whether API servers would take what the webhook shows them.
func certificate(f Facts) []step.Step {
	if why := f.untold(); why != "" {
		return one(skip("the webhook's certificate is not checked: %s", why))
	}
	if why := f.down(); why != "" {
		return one(skip("the webhook's certificate is not checked: %s", why))
	}
	trusted := trust(f)[0].Outcome
	switch {
	case trusted == step.Fail:
		return one(skip("the webhook's certificate is not checked: API servers trust none"))
	case f.Served.Unread != "":
		return one(unread("the webhook's certificate", f.Served.Unread))
	}
	leaf, others, err := parsed(f.Served.Is)
	if err != nil {
		return one(fail(renew(f), "the webhook shows no certificate that can be read: %v", err))
	}
	roots := x509.NewCertPool()
	for _, c := range bundle(f.Webhook.Is) {
		roots.AddCert(c)
	}
	_, err = leaf.Verify(x509.VerifyOptions{DNSName: f.serverName(), Roots: roots, Intermediates: others, CurrentTime: f.Now})
	invalid, unknown := x509.CertificateInvalidError{}, x509.UnknownAuthorityError{}
	switch {
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired && f.Now.After(leaf.NotAfter):
		return one(fail(renew(f), "the webhook serves a certificate that expired %s ago (%s): API servers go on without the webhook", days(f.Now.Sub(leaf.NotAfter)), date(leaf.NotAfter)))
	case errors.As(err, &unknown):
		return one(fail(bundleFrom(f), "the webhook serves a certificate that its caBundle does not have: API servers go on without the webhook"))
	case err != nil:
		return one(fail(renew(f), "the webhook serves a certificate that API servers refuse: %v", err))
	case leaf.NotAfter.Sub(f.Now) < soon && trusted == step.OK:
		return one(warn(renew(f), "the webhook serves a certificate that expires in %s (%s), and nobody has renewed it", days(leaf.NotAfter.Sub(f.Now)), date(leaf.NotAfter)))
	}
	return one(ok("the webhook serves a certificate that API servers trust, until %s", date(leaf.NotAfter)))
}

// serverName is what an API server asks for (apiserver, pkg/util/webhook/client.go).
func (f Facts) serverName() string {
	if s := f.Webhook.Is.Webhooks[0].ClientConfig.Service; s != nil {
		return s.Name + "." + s.Namespace + ".svc"
	}
	return names.Webhook + "." + f.Namespace + ".svc"
}

func parsed(chain [][]byte) (leaf *x509.Certificate, others *x509.CertPool, err error) {
	others = x509.NewCertPool()
	for i, der := range chain {
		c, err := x509.ParseCertificate(der)
		switch {
		case err != nil:
			return nil, nil, err
		case i == 0:
			leaf = c
		default:
			others.AddCert(c)
		}
	}
	if leaf == nil {
		return nil, nil, errors.New("it shows none")
	}
	return leaf, others, nil
}
