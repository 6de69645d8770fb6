package registry

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"golang.org/x/net/http/httpproxy"

	"github.com/cldmnky/oooi/internal/plan/bridge"
)

// connecting connects as Transport does, for a look-up to a place: through the cluster's proxy, unless the environment names proxies, as OLM has
// it do; and it trusts further CAs. Whoever is done with it says so: its connections are not kept, because another look-up may trust others.
func (l *Lookups) connecting(want bridge.Lookup, to bridge.Place) (transport *http.Transport, done func(), err error) {
	authorities := strings.TrimSpace(to.CA + "\n" + want.TrustedCA)
	proxy := want.Proxy.HTTPS
	if l.proxied {
		proxy = ""
	}
	if authorities == "" && proxy == "" {
		return l.Transport, func() {}, nil
	}
	transport = l.Transport.Clone()
	if proxy != "" {
		through := (&httpproxy.Config{HTTPSProxy: proxy, NoProxy: want.Proxy.Except}).ProxyFunc()
		transport.Proxy = func(r *http.Request) (*url.URL, error) { return through(r.URL) }
	}
	if err := trust(transport, authorities); err != nil {
		return nil, nil, err
	}
	return transport, transport.CloseIdleConnections, nil
}

// trust has a transport trust further CAs, in PEM.
func trust(transport *http.Transport, authorities string) (err error) {
	if authorities == "" {
		return nil
	}
	if transport.TLSClientConfig == nil {
		transport.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	trusted := transport.TLSClientConfig.RootCAs
	if trusted == nil {
		if trusted, err = x509.SystemCertPool(); err != nil {
			return fmt.Errorf("reading the CAs of the operating system: %w", err)
		}
	}
	trusted = trusted.Clone()
	trusted.AppendCertsFromPEM([]byte(authorities)) // planning has judged them
	transport.TLSClientConfig.RootCAs = trusted
	return nil
}
