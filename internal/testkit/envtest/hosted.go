package envtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api/v1"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"
)

// Hosted is a control plane without nodes and without our kinds: the hosted cluster of a test. Its certificate is for the names that
// StartHosted got.
type Hosted struct {
	Admin *rest.Config

	env   *envtest.Environment
	trust []byte
	files string
}

// StartHosted starts a hosted cluster whose clients may dial it by any of one or more names.
func StartHosted(names ...string) (*Hosted, error) {
	h := &Hosted{env: environment(os.Getenv("KUBEBUILDER_ASSETS"))}
	var err error
	if h.files, err = os.MkdirTemp("", "hosted"); err != nil {
		return nil, err
	}
	certificate, key := filepath.Join(h.files, "tls.crt"), filepath.Join(h.files, "tls.key")
	var private []byte
	if h.trust, private, err = SelfSigned(names...); err != nil {
		return nil, fmt.Errorf("making the hosted cluster's certificate: %w", err)
	}
	if err := errors.Join(os.WriteFile(certificate, h.trust, 0o600), os.WriteFile(key, private, 0o600)); err != nil {
		return nil, err
	}
	// One name is listed; the others are found in the certificate. kube-apiserver keeps a certificate once for each listed name
	// (dynamiccertificates/tlsconfig.go), and compares an unlisted name with all names of each: with 900 names, 160 ms per handshake.
	h.env.ControlPlane.GetAPIServer().Configure().Append("tls-sni-cert-key", certificate+","+key+":"+names[0])
	if h.Admin, err = started(h.env); err != nil {
		return nil, fmt.Errorf("starting the hosted kube-apiserver: %w", err)
	}
	return h, nil
}

// Stop ends everything.
func (h *Hosted) Stop() error { return errors.Join(h.env.Stop(), os.RemoveAll(h.files)) }

// Kubeconfig is an administrator's, as HyperShift writes it; its server does not exist.
func (h *Hosted) Kubeconfig() ([]byte, error) {
	return yaml.Marshal(Kubeconfig("https://api.nowhere.example.com:6443", h.trust, h.Admin))
}

// Kubeconfig is one with a user's certificate or token, for a server that a CA signed.
func Kubeconfig(server string, ca []byte, user *rest.Config) clientcmdapi.Config {
	return clientcmdapi.Config{
		APIVersion: "v1", Kind: "Config", CurrentContext: "admin",
		Clusters:  []clientcmdapi.NamedCluster{{Name: "cluster", Cluster: clientcmdapi.Cluster{Server: server, CertificateAuthorityData: ca}}},
		Contexts:  []clientcmdapi.NamedContext{{Name: "admin", Context: clientcmdapi.Context{Cluster: "cluster", AuthInfo: "admin"}}},
		AuthInfos: []clientcmdapi.NamedAuthInfo{{Name: "admin", AuthInfo: clientcmdapi.AuthInfo{ClientCertificateData: user.CertData, ClientKeyData: user.KeyData, Token: user.BearerToken}}},
	}
}

// SelfSigned is a self-signed server certificate for names, and its key, as PEM.
func SelfSigned(names ...string) (certificate, private []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "hosted"}, DNSNames: names, NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, nil, err
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER}), err
}
