package registry_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cldmnky/oooi/internal/plan/bridge"
)

// authority of a server is its own certificate, in PEM.
func (s *server) authority() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
}

func TestTheClustersCAsAreTrusted(t *testing.T) {
	s := serves(t)
	release := s.pushes("releases", "4.20.4-multi", map[string]string{"io.openshift.release": "4.20.4"})
	s.pushes("layers", "4.20.4", nil)
	own, elsewhere, all := s.place("layers"), s.place("layers"), lookFor("4.20.4", s.place("layers"))
	own.CA, all.TrustedCA = s.authority(), s.authority()
	elsewhere.CA = another(t)

	c := asks(t, nil)
	c.hears(lookFor("4.20.4", own), HaveField("Image", s.repository("layers")+":4.20.4"))
	c.hears(lookFor("4.20.4", s.place("layers")), failed(bridge.RegistryUnreachable, "signed by no CA that the operator trusts: on OpenShift, add it to the ConfigMap of additionalTrustedCA"))
	c.hears(lookFor("4.20.4", elsewhere), failed(bridge.RegistryUnreachable, "signed by no CA"))
	c.hears(all, HaveField("Image", s.repository("layers")+":4.20.4"))

	at := s.place("releases")
	at.CA = s.authority()
	c.hears(bridge.Lookup{Repository: own.Repository, Digest: release, Releases: []bridge.Place{at}, Images: []bridge.Place{own}}, HaveField("Image", s.repository("layers")+":4.20.4"))

	own.CA += another(t) // what is trusted besides takes nothing away
	t2 := asks(t, s.transport())
	t2.hears(lookFor("4.20.4", elsewhere), HaveField("Image", Not(BeEmpty())))
	t2.hears(lookFor("4.20.4", own), HaveField("Image", Not(BeEmpty())))
}

// another CA has signed nothing.
func another(t *testing.T) string {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	made, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: made}))
}
