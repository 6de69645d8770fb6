package cmd

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
)

// unanswered is a sentence on why the API server did not answer, which says all that there is to say. client-go and net/http put their own words
// before it.
type unanswered struct {
	error
	cause error
}

// Unwrap gives what the sentence is about.
func (u unanswered) Unwrap() error { return u.cause }

// why puts an error of a connection in the words of the kubeconfig.
func (n naming) why(err error) error {
	var certificate *tls.CertificateVerificationError
	var plain tls.RecordHeaderError
	var op *net.OpError
	var name *net.DNSError
	says := ""
	switch {
	case errors.As(err, &certificate):
		says = n.distrusted(certificate.Err)
	case errors.As(err, &plain):
		says = fmt.Sprintf("%s does not answer in TLS: check the port of server in the kubeconfig, and what is before the API server", n.apiServer)
	case errors.As(err, &op) && op.Op == "remote error": // a TLS alert
		says = fmt.Sprintf("%s ended the connection with the TLS alert %q", n.apiServer, strings.TrimPrefix(op.Err.Error(), "tls: ")) + n.expired(": ")
	case errors.As(err, &name) && name.IsNotFound:
		says = fmt.Sprintf("DNS does not know %s: check server in the kubeconfig, %s, and that this machine asks the DNS servers that know it", name.Name, n.apiServer)
	case errors.Is(err, syscall.ECONNREFUSED):
		says = fmt.Sprintf("nobody takes connections at %s: check server in the kubeconfig, and that the API server, or the load balancer or proxy before it, runs", n.apiServer)
	default:
		return err
	}
	return unanswered{errors.New(says), err}
}

// distrusted says what is wrong with the certificate that the API server showed.
func (n naming) distrusted(err error) string {
	var invalid x509.CertificateInvalidError
	var named x509.HostnameError
	var signed x509.UnknownAuthorityError
	switch {
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired && invalid.Cert.NotBefore.After(time.Now()):
		return fmt.Sprintf("the certificate of %s holds from %s on, and this machine's clock says %s: set the clock", n.apiServer, day(invalid.Cert.NotBefore), day(time.Now()))
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return fmt.Sprintf("the certificate of %s expired at %s, and this machine's clock says %s: have the certificate renewed, or set the clock", n.apiServer, day(invalid.Cert.NotAfter), day(time.Now()))
	case errors.As(err, &named):
		names := named.Certificate.DNSNames
		for _, ip := range named.Certificate.IPAddresses {
			names = append(names, ip.String())
		}
		return fmt.Sprintf("the certificate of %s is for other names (%s): write one of these into server of the kubeconfig, or as tls-server-name", n.apiServer, strings.Join(names, ", "))
	case errors.As(err, &signed):
		return fmt.Sprintf("the certificate of %s is of an authority that the kubeconfig does not name: get a new kubeconfig, e.g. with oc login, or write that authority's certificate into certificate-authority-data; "+
			"a proxy that opens TLS on the way looks the same", n.apiServer)
	}
	return fmt.Sprintf("the certificate of %s is not accepted: %v", n.apiServer, err)
}

func day(at time.Time) string { return at.UTC().Format("2006-01-02 15:04Z") }

// refusal is an answer that says, before any request is understood, that the connection is wrong; nil if it is another one.
func (n naming) refusal(r *http.Request, answer *http.Response) error {
	switch {
	case isPage(answer):
		return n.notTheAPIServer(answer)
	case answer.StatusCode == http.StatusBadRequest && r.URL.Scheme == "http": // net/http's answer to a request without TLS
		begin, _ := io.ReadAll(io.LimitReader(answer.Body, 4096))
		if bytes.Contains(begin, []byte("HTTP request to an HTTPS server")) {
			return errors.Join(answer.Body.Close(), fmt.Errorf("%s speaks TLS, and was asked without: write https:// in server of the kubeconfig", n.apiServer))
		}
		answer.Body = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(bytes.NewReader(begin), answer.Body), answer.Body}
	case answer.StatusCode == http.StatusUnauthorized && n.expired("") != "":
		_ = answer.Body.Close()
		return unanswered{fmt.Errorf("%s does not know you%s", n.apiServer, n.expired(": ")), apierrors.NewUnauthorized("expired")}
	}
	return nil
}

// expired says, behind some text, that the client's certificate has; empty if it holds, or if there is none.
func (n naming) expired(behind string) string {
	if n.until.IsZero() || time.Now().Before(n.until) {
		return ""
	}
	return behind + fmt.Sprintf("your certificate in the kubeconfig expired at %s: get a new kubeconfig, or log in again, e.g. with oc login", day(n.until))
}

// certifiedUntil is when a client's certificate expires by which alone it is known; zero if there is none.
func certifiedUntil(config *rest.Config) (until time.Time) {
	with := rest.CopyConfig(config)
	if with.BearerToken != "" || with.BearerTokenFile != "" || rest.LoadTLSFiles(with) != nil {
		return until
	}
	pair, err := tls.X509KeyPair(with.CertData, with.KeyData)
	if err != nil {
		return until
	}
	return pair.Leaf.NotAfter
}
