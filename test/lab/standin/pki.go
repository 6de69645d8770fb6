package standin

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"slices"
	"time"
)

// files is the content of a Secret or ConfigMap, by file name.
type files map[string][]byte

// authority is a signer, kept in a Secret under HyperShift's name for it.
type authority struct {
	secret, commonName string
	cert, key          string // file names
}

var (
	rootCA         = authority{"root-ca", "root-ca", "ca.crt", "ca.key"}
	clusterSigner  = authority{"cluster-signer-ca", "cluster-signer", "ca.crt", "ca.key"}
	aggregatorCA   = authority{"kas-aggregator-client-signer", "kas-aggregator-client-signer", "ca.crt", "ca.key"}
	etcdSigner     = authority{"etcd-signer", "etcd-signer", "ca.crt", "ca.key"}
	konnectivityCA = authority{"konnectivity-signer", "konnectivity-signer", "ca.crt", "ca.key"}
	ignitionCA     = authority{"ignition-server-ca-cert", "ignition-root-ca", "tls.crt", "tls.key"}
)

var authorities = []authority{rootCA, clusterSigner, aggregatorCA, etcdSigner, konnectivityCA, ignitionCA}

// certificate describes a leaf certificate: its signer, its subject, and the names under which its owner is reached.
type certificate struct {
	keptIn    string // the Secret
	by        authority
	name      string
	groups    []string
	hosts     []string // SANs, names and addresses
	cert, key string   // file names; empty for tls.crt and tls.key
}

func (c certificate) files() (cert, key string) {
	if c.cert == "" {
		return "tls.crt", "tls.key"
	}
	return c.cert, c.key
}

// certificates are all leaves, with the names that HyperShift puts in them (control-plane-operator/…/pki, support/pki).
func (c Cluster) certificates() []certificate {
	inNamespace := func(service string) []string {
		return []string{service, c.serviceHost(service), c.serviceHost(service) + ".cluster.local"}
	}
	discovery := "*." + c.serviceHost(etcdDiscovery)
	openshift, kubernetes := []string{"openshift"}, []string{"kubernetes"}
	return []certificate{
		{keptIn: "etcd-server-tls", by: etcdSigner, name: "etcd-server", groups: kubernetes, cert: "server.crt", key: "server.key",
			hosts: append(inNamespace(etcdClient), discovery, discovery+".cluster.local", "localhost")},
		{keptIn: "etcd-client-tls", by: etcdSigner, name: "etcd-client", groups: kubernetes, cert: "etcd-client.crt", key: "etcd-client.key"},

		{keptIn: "kas-server-crt", by: rootCA, name: "kubernetes", groups: kubernetes, hosts: c.apiServerNames()},
		{keptIn: "kas-server-private-crt", by: rootCA, name: "kubernetes-private", groups: kubernetes, hosts: inNamespace(kubeAPIServer)},
		{keptIn: "kas-kubelet-client-crt", by: clusterSigner, name: "system:kube-apiserver", groups: kubernetes},
		{keptIn: "kas-aggregator-crt", by: aggregatorCA, name: "system:openshift-aggregator", groups: kubernetes},
		{keptIn: "kas-bootstrap-client", by: clusterSigner, name: bootstrapper,
			groups: []string{"system:serviceaccounts:openshift-machine-config-operator", "system:serviceaccounts"}},
		{keptIn: "kube-controller-manager", by: clusterSigner, name: "system:kube-controller-manager", groups: kubernetes},
		{keptIn: "kube-scheduler-client", by: clusterSigner, name: "system:kube-scheduler", groups: kubernetes},
		{keptIn: "system-admin-client", by: clusterSigner, name: "system:admin", groups: []string{"system:masters"}},

		{keptIn: "konnectivity-server", by: konnectivityCA, name: konnectivityLocal, groups: kubernetes,
			hosts: append(inNamespace(konnectivityLocal), "localhost", "127.0.0.1")},
		{keptIn: "konnectivity-cluster", by: konnectivityCA, name: konnectivityServer, groups: kubernetes,
			hosts: append(inNamespace(konnectivityServer), c.host(konnectivityServer))},
		{keptIn: "konnectivity-client", by: konnectivityCA, name: "konnectivity-client", groups: kubernetes},
		{keptIn: "konnectivity-agent", by: konnectivityCA, name: "konnectivity-agent", groups: kubernetes},

		{keptIn: "ignition-server", by: rootCA, name: ignitionServer, groups: openshift, hosts: inNamespace(ignitionServer)},
		// Its one SAN is the published host. A name invented by a proxy or a DNS server fails here, as it does on HyperShift.
		{keptIn: "ignition-server-serving-cert", by: ignitionCA, name: ignitionServer, groups: openshift, hosts: []string{c.host(ignitionServerProxy)}},
		{keptIn: "oauth-server-crt", by: rootCA, name: oauthServer, groups: openshift, hosts: append(inNamespace(oauthServer), c.host(oauthServer))},
	}
}

// apiServerNames are the SANs of kube-apiserver's public certificate, in the order of HyperShift's support/pki.
func (c Cluster) apiServerNames() []string {
	return []string{
		"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local",
		"openshift", "openshift.default", "openshift.default.svc", "openshift.default.svc.cluster.local",
		"127.0.0.1", "::1", serviceNetworkFirst, workerAPIAddress,
		c.host(kubeAPIServer), "api." + c.Name + ".hypershift.local",
	}
}

// secrets returns every key pair of the cluster, by Secret. It keeps existing ones that still fit, so that applying twice changes nothing.
func (c Cluster) secrets(existing map[string]files, now time.Time) (map[string]files, error) {
	all := map[string]files{}
	for _, a := range authorities {
		kept, err := a.keep(existing[a.secret], now)
		if err != nil {
			return nil, fmt.Errorf("making the signer %s: %w", a.secret, err)
		}
		all[a.secret] = kept
	}
	for _, leaf := range c.certificates() {
		signed, err := leaf.keep(existing[leaf.keptIn], all[leaf.by.secret], now)
		if err != nil {
			return nil, fmt.Errorf("making the certificate %s: %w", leaf.keptIn, err)
		}
		all[leaf.keptIn] = signed
	}
	keys, err := keepServiceAccountKey(existing[serviceAccountKeySecret])
	all[serviceAccountKeySecret] = keys
	return all, err
}

func (a authority) keep(existing files, now time.Time) (files, error) {
	if existing[a.cert] != nil && existing[a.key] != nil {
		return existing, nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := validity(now, &x509.Certificate{
		Subject: pkix.Name{CommonName: a.commonName, OrganizationalUnit: []string{"openshift"}},
		IsCA:    true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	})
	return pair(template, template, key, key, a.cert, a.key)
}

func (c certificate) keep(existing, by files, now time.Time) (files, error) {
	ca, err := readCertificate(by[c.by.cert])
	if err != nil {
		return nil, err
	}
	certFile, keyFile := c.files()
	if old, err := readCertificate(existing[certFile]); err == nil && c.fits(old, ca) {
		return existing, nil
	}
	caKey, err := readKey(by[c.by.key])
	if err != nil {
		return nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	return pair(validity(now, c.template()), ca, key, caKey, certFile, keyFile)
}

func (c certificate) template() *x509.Certificate {
	t := &x509.Certificate{
		Subject:     pkix.Name{CommonName: c.name, Organization: c.groups},
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	if len(c.hosts) > 0 {
		t.ExtKeyUsage = append(t.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	for _, h := range c.hosts {
		if ip := net.ParseIP(h); ip != nil {
			t.IPAddresses = append(t.IPAddresses, ip)
		} else {
			t.DNSNames = append(t.DNSNames, h)
		}
	}
	return t
}

// fits says whether an existing certificate is the one that we would make.
func (c certificate) fits(old, ca *x509.Certificate) bool {
	want := c.template()
	return old.CheckSignatureFrom(ca) == nil &&
		old.Subject.CommonName == c.name &&
		slices.Equal(old.DNSNames, want.DNSNames) &&
		slices.EqualFunc(old.IPAddresses, want.IPAddresses, net.IP.Equal)
}

const serviceAccountKeySecret = "sa-signing-key"

func keepServiceAccountKey(existing files) (files, error) {
	if existing["service-account.key"] != nil {
		return existing, nil
	}
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, fmt.Errorf("making the service account key: %w", err)
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return nil, err
	}
	return files{
		"service-account.key": pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}),
		"service-account.pub": pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}),
	}, nil
}

// validity starts an hour ago: a worker's clock may be slow.
func validity(now time.Time, t *x509.Certificate) *x509.Certificate {
	t.NotBefore, t.NotAfter = now.Add(-time.Hour), now.AddDate(1, 0, 0)
	return t
}

func pair(template, parent *x509.Certificate, key *ecdsa.PrivateKey, parentKey crypto.Signer, certFile, keyFile string) (files, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	template.SerialNumber = serial
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), parentKey)
	if err != nil {
		return nil, err
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	return files{
		certFile: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		keyFile:  pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER}),
	}, nil
}

func readCertificate(text []byte) (*x509.Certificate, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("no PEM certificate in %d bytes", len(text))
	}
	return x509.ParseCertificate(block.Bytes)
}

func readKey(text []byte) (crypto.Signer, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("no PEM key in %d bytes", len(text))
	}
	return x509.ParseECPrivateKey(block.Bytes)
}

// bundle is a file of certificate authorities.
func bundle(all map[string]files, trusted ...authority) []byte {
	var b bytes.Buffer
	for _, a := range trusted {
		b.Write(all[a.secret][a.cert])
	}
	return b.Bytes()
}
