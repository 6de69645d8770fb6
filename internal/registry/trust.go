package registry

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"strings"
)

// trusting connects as Transport does, and trusts further CAs, in PEM. Whoever is done with it says so: its connections are not kept, because
// another look-up may trust others.
func (l *Lookups) trusting(authorities string) (transport *http.Transport, done func(), err error) {
	if strings.TrimSpace(authorities) == "" {
		return l.Transport, func() {}, nil
	}
	transport = l.Transport.Clone()
	if transport.TLSClientConfig == nil {
		transport.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	trusted := transport.TLSClientConfig.RootCAs
	if trusted == nil {
		if trusted, err = x509.SystemCertPool(); err != nil {
			return nil, nil, fmt.Errorf("reading the CAs of the operating system: %w", err)
		}
	}
	trusted = trusted.Clone()
	trusted.AppendCertsFromPEM([]byte(authorities)) // planning has judged them
	transport.TLSClientConfig.RootCAs = trusted
	return transport, transport.CloseIdleConnections, nil
}
