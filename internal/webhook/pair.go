package webhook

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"time"
)

const (
	// lasts is how long a certificate is valid.
	lasts = 90 * 24 * time.Hour
	// renewed is its age at which the next one is made.
	renewed = 60 * 24 * time.Hour
	// skew is how far an API server's clock may be behind ours without finding a new certificate not yet valid.
	skew = time.Hour
)

// pair is a serving certificate and its key, as PEM. The certificate is its own authority: a CA key, kept for the day of renewal, would be
// one more secret and buy nothing, since the API server has to be told whom to trust anyway.
type pair struct{ cert, key string }

// newPair makes one for a Service's name.
func newPair(name string, now time.Time) (pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return pair{}, fmt.Errorf("making a key for %s: %w", name, err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127)) // RFC 5280 §4.1.2.2: positive, at most 20 octets
	if err != nil {
		return pair{}, err
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "oooi webhook"}, DNSNames: []string{name},
		NotBefore: now.Add(-skew), NotAfter: now.Add(lasts),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return pair{}, fmt.Errorf("making a certificate for %s: %w", name, err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return pair{}, err
	}
	return pair{encoded("CERTIFICATE", cert), encoded("PRIVATE KEY", pkcs8)}, nil
}

func encoded(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

// isCertificate says whether text is exactly one certificate as we write it: anything before or after it would spoil the caBundle.
func isCertificate(text string) bool {
	block, _ := pem.Decode([]byte(text))
	if block == nil || encoded("CERTIFICATE", block.Bytes) != text {
		return false
	}
	_, err := x509.ParseCertificate(block.Bytes)
	return err == nil
}

// parsed is the pair as crypto/tls has it; nil when certificate and key do not match.
func (p pair) parsed() *tls.Certificate {
	c, err := tls.X509KeyPair([]byte(p.cert), []byte(p.key))
	if err != nil {
		return nil
	}
	return &c
}

// good says whether the pair can serve name at now.
func (p pair) good(name string, now time.Time) bool {
	c := p.parsed()
	return c != nil && isCertificate(p.cert) && c.Leaf.VerifyHostname(name) == nil && !now.Before(c.Leaf.NotBefore) && now.Before(c.Leaf.NotAfter)
}

// made is when newPair made it.
func (p pair) made() time.Time { return p.parsed().Leaf.NotBefore.Add(skew) }
