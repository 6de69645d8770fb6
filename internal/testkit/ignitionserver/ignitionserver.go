// Package ignitionserver plays HyperShift's ignition server (hypershift v0.1.60, ignition-server/cmd/start.go): 401 for a header that is no
// bearer token in base64, 511 for a token that it has nothing for, and else that token's ignition.
package ignitionserver

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"time"
)

// Server is one control plane's.
type Server struct {
	// CA is the certificate that its own is issued by, as Secret ignition-server-ca-cert has it.
	CA []byte

	tls *httptest.Server

	mu     sync.Mutex
	of     map[string][]byte
	answer http.HandlerFunc
	heard  []http.Header
	dialed []string
}

// Start serves as a host until Close.
func Start(host string) (*Server, error) {
	s := &Server{of: map[string][]byte{}}
	s.tls = httptest.NewUnstartedServer(http.HandlerFunc(s.serve))
	ca, certificate, err := issued(host)
	if err != nil {
		return nil, err
	}
	s.CA = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca})
	s.tls.TLS = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate}}
	s.tls.Config.ErrorLog = nil
	s.tls.StartTLS()
	return s, nil
}

// Close ends it.
func (s *Server) Close() { s.tls.Close() }

// Has gives a token its ignition; nil takes it away.
func (s *Server) Has(token string, ignition []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of[token] = ignition; ignition == nil {
		delete(s.of, token)
	}
}

// Answer puts something else in place of the real server's behaviour, until nil.
func (s *Server) Answer(with http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = with
}

// Heard are the headers of all requests.
func (s *Server) Heard() []http.Header {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.heard)
}

// Dialed are the addresses that were meant.
func (s *Server) Dialed() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.dialed)
}

// Address is where it listens.
func (s *Server) Address() string { return s.tls.Listener.Addr().String() }

// Dial leads every address here.
func (s *Server) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	s.mu.Lock()
	s.dialed = append(s.dialed, address)
	s.mu.Unlock()
	return (&net.Dialer{}).DialContext(ctx, network, s.Address())
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.heard = append(s.heard, r.Header.Clone())
	answer := s.answer
	s.mu.Unlock()
	if answer != nil {
		answer(w, r)
		return
	}
	encoded, is := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	token, err := base64.StdEncoding.DecodeString(encoded)
	s.mu.Lock()
	ignition, found := s.of[string(token)]
	s.mu.Unlock()
	switch {
	case r.URL.Path != "/ignition":
		http.NotFound(w, r)
	case !is || err != nil:
		http.Error(w, "Unauthorized", http.StatusUnauthorized)
	case !found:
		http.Error(w, "Token not found", http.StatusNetworkAuthenticationRequired)
	default:
		_, _ = w.Write(ignition)
	}
}

// issued is a new CA with a certificate for a host.
func issued(host string) (ca []byte, of tls.Certificate, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, of, err
	}
	template := func(serial int64, ca bool) *x509.Certificate {
		return &x509.Certificate{
			SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: fmt.Sprint("ignition ", serial)}, IsCA: ca, BasicConstraintsValid: true,
			NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		}
	}
	root, leaf := template(1, true), template(2, false)
	if ip := net.ParseIP(host); ip != nil {
		leaf.IPAddresses = []net.IP{ip}
	} else {
		leaf.DNSNames = []string{host}
	}
	if ca, err = x509.CreateCertificate(rand.Reader, root, root, &key.PublicKey, key); err != nil {
		return nil, of, err
	}
	der, err := x509.CreateCertificate(rand.Reader, leaf, root, &key.PublicKey, key)
	return ca, tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}
