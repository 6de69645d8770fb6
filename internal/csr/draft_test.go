package csr_test

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	certificates "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cldmnky/oooi/internal/csr"
)

// draft is an unsigned CSR in all its parts, and the facts that it is judged by.
type draft struct {
	t          testing.TB
	host       string
	key        crypto.Signer
	version    int
	subject    []rdn
	typed      byte     // ORed into the tag byte of the common name: its class, and whether it is constructed
	attributes [][]byte // DER
	extensions [][]byte // DER; in an extensionRequest, if there are any
	names      [][]byte // DER of GeneralNames; in a subjectAltName, if there are any
	more       []byte   // after the last part of CertificationRequestInfo
	trailing   []byte   // after the DER
	signature  func([]byte) []byte
	pem        func(*pem.Block) []byte
	object     certificates.CertificateSigningRequest
	facts      csr.Facts
}

// rdn is a set of attributes of the subject.
type rdn []attribute

type attribute struct {
	kind asn1.ObjectIdentifier
	tag  int
	text string
}

var (
	oidCN = asn1.ObjectIdentifier{2, 5, 4, 3}
	oidO  = asn1.ObjectIdentifier{2, 5, 4, 10}
	oidOU = asn1.ObjectIdentifier{2, 5, 4, 11}

	oidExtensionRequest  = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 14}
	oidChallengePassword = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 7}
	oidKeyUsage          = asn1.ObjectIdentifier{2, 5, 29, 15}
	oidSAN               = asn1.ObjectIdentifier{2, 5, 29, 17}
)

var (
	now     = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	cluster = types.NamespacedName{Namespace: "dpf", Name: "bluefield"}
)

// good is what a DPU's kubelet sends, and facts by which it passes.
func good(t testing.TB, kind csr.Kind, number int) *draft {
	t.Helper()
	d := &draft{t: t, host: fmt.Sprintf("dpu-%d.example.com", number), key: keyOf(t, number)}
	d.subject = []rdn{{{oidO, asn1.TagPrintableString, "system:nodes"}}, {{oidCN, asn1.TagPrintableString, "system:node:" + d.host}}}
	d.object = certificates.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("csr-%s-%d", kind, number), CreationTimestamp: metav1.NewTime(now.Add(-time.Second))}}
	spec := &d.object.Spec
	d.facts = world(number)
	if kind == csr.Bootstrap {
		spec.SignerName, spec.Username = certificates.KubeAPIServerClientKubeletSignerName, "system:serviceaccount:openshift-machine-config-operator:node-bootstrapper"
		spec.Groups = []string{"system:serviceaccounts", "system:serviceaccounts:openshift-machine-config-operator", "system:authenticated"}
		spec.Usages = []certificates.KeyUsage{certificates.UsageDigitalSignature, certificates.UsageClientAuth}
	} else {
		spec.SignerName, spec.Username, spec.Groups = certificates.KubeletServingSignerName, "system:node:"+d.host, []string{"system:nodes", "system:authenticated"}
		spec.Usages = []certificates.KeyUsage{certificates.UsageDigitalSignature, certificates.UsageServerAuth}
		own := addressesOf(number)
		d.facts.Nodes[d.host] = csr.Node{Ready: number%2 == 0, Addresses: own}
		d.names = [][]byte{dns(d.host), ip(own[0].AsSlice()), ip(own[1].AsSlice())}
	}
	if _, rsa := d.key.(*rsa.PrivateKey); rsa {
		spec.Usages = append(spec.Usages, certificates.UsageKeyEncipherment)
	}
	return d
}

// keys are made once: RSA keys take long to make and to sign with. Of the first ten kubelets two have an RSA key, of the least and of the
// most bits allowed, and two have P-384.
var keys []crypto.Signer

func keyOf(t testing.TB, number int) crypto.Signer {
	t.Helper()
	for len(keys) < 6 {
		key, err := crypto.Signer(nil), error(nil)
		switch len(keys) {
		case 5:
			key, err = rsa.GenerateKey(rand.Reader, 4096)
		case 4:
			key, err = rsa.GenerateKey(rand.Reader, 2048)
		case 3:
			key, err = ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
		default:
			key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		}
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, key)
	}
	switch {
	case number == 9:
		return keys[5]
	case number < 10:
		return keys[number%5]
	}
	return keys[number%4]
}

func addressesOf(number int) []netip.Addr {
	return []netip.Addr{netip.AddrFrom4([4]byte{192, 168, 100, byte(number)}), netip.MustParseAddr(fmt.Sprintf("fd00:100::%x", number+1))}
}

// world has the host's DPU, other DPUs, and a hosted cluster.
func world(number int) csr.Facts {
	dpu := func(n int) csr.DPU {
		return csr.DPU{Namespace: "dpf", Name: fmt.Sprintf("dpu-%d.example.com", n), UID: types.UID(fmt.Sprintf("uid-%d", n)), Cluster: cluster, OSInstalled: true, Created: now.Add(-time.Hour)}
	}
	other := dpu(200)
	other.Addresses = []netip.Addr{netip.MustParseAddr("192.168.100.200")}
	foreign := dpu(201)
	foreign.Cluster.Name = "another"
	return csr.Facts{
		Cluster: cluster, DPUs: []csr.DPU{other, dpu(number), foreign},
		Nodes:  map[string]csr.Node{"dpu-202.example.com": {Ready: true, Addresses: []netip.Addr{netip.MustParseAddr("192.168.100.202")}}},
		Leases: map[string]time.Time{}, Approved: map[string][]csr.Approval{},
		Services:        map[netip.Addr]string{netip.MustParseAddr("172.31.0.1"): "default/kubernetes", netip.MustParseAddr("192.168.50.9"): "openshift-ingress/router"},
		ServiceNetworks: []netip.Prefix{netip.MustParsePrefix("172.31.0.0/16")},
		API:             []netip.Addr{netip.MustParseAddr("192.168.50.5"), netip.MustParseAddr("172.20.0.1")}, Now: now,
	}
}

func tlv(class, tag int, constructed bool, content ...[]byte) []byte {
	der, err := asn1.Marshal(asn1.RawValue{Class: class, Tag: tag, IsCompound: constructed, Bytes: slices.Concat(content...)})
	if err != nil {
		panic(err)
	}
	return der
}

func sequence(content ...[]byte) []byte {
	return tlv(asn1.ClassUniversal, asn1.TagSequence, true, content...)
}

func set(content ...[]byte) []byte { return tlv(asn1.ClassUniversal, asn1.TagSet, true, content...) }

func octets(content ...[]byte) []byte {
	return tlv(asn1.ClassUniversal, asn1.TagOctetString, false, content...)
}

func oid(id asn1.ObjectIdentifier) []byte {
	der, err := asn1.Marshal(id)
	if err != nil {
		panic(err)
	}
	return der
}

func general(kind int, constructed bool, content ...[]byte) []byte {
	return tlv(asn1.ClassContextSpecific, kind, constructed, content...)
}

func dns(name string) []byte { return general(2, false, []byte(name)) }

func ip(address []byte) []byte { return general(7, false, address) }

func text(tag int, value string) []byte { return tlv(asn1.ClassUniversal, tag, false, []byte(value)) }

func (r rdn) der() []byte {
	var all [][]byte
	for _, a := range r {
		all = append(all, sequence(oid(a.kind), text(a.tag, a.text)))
	}
	return set(all...)
}

func (d *draft) subjectDER() []byte {
	var all [][]byte
	for _, r := range d.subject {
		all = append(all, r.der())
	}
	return sequence(all...)
}

func (d *draft) attributesDER() []byte {
	attributes, extensions := slices.Clone(d.attributes), slices.Clone(d.extensions)
	if d.names != nil {
		extensions = append(extensions, sequence(oid(oidSAN), octets(sequence(d.names...))))
	}
	if extensions != nil {
		attributes = append(attributes, sequence(oid(oidExtensionRequest), set(sequence(extensions...))))
	}
	return general(0, true, attributes...)
}

// request builds the CSR as the hosted API server would return it.
func (d *draft) request() *certificates.CertificateSigningRequest {
	subject := d.subjectDER()
	if at := bytes.Index(subject, []byte("system:node:")); d.typed != 0 {
		subject[at-2] |= d.typed
	}
	return d.requestOf(subject, d.attributesDER())
}

func (d *draft) requestOf(subject, attributes []byte) *certificates.CertificateSigningRequest {
	d.t.Helper()
	public, err := x509.MarshalPKIXPublicKey(d.key.Public())
	if err != nil {
		d.t.Fatal(err)
	}
	version := tlv(asn1.ClassUniversal, asn1.TagInteger, false, []byte{byte(d.version)})
	info := sequence(version, subject, public, attributes, d.more)
	signature, algorithm := d.signed(info)
	if d.signature != nil {
		signature = d.signature(signature)
	}
	der := slices.Concat(sequence(info, algorithm, tlv(asn1.ClassUniversal, asn1.TagBitString, false, []byte{0}, signature)), d.trailing)
	block := &pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}
	d.object.Spec.Request = pem.EncodeToMemory(block)
	if d.pem != nil {
		d.object.Spec.Request = d.pem(block)
	}
	return &d.object
}

// signed returns the signature and its AlgorithmIdentifier.
func (d *draft) signed(info []byte) (signature, algorithm []byte) {
	d.t.Helper()
	digest, hash := sha256.Sum256(info), crypto.SHA256
	text := digest[:]
	switch d.key.(type) {
	case *rsa.PrivateKey:
		algorithm = sequence(oid(asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 1, 11}), tlv(asn1.ClassUniversal, asn1.TagNull, false)) // RFC 8017: sha256WithRSAEncryption
	case ed25519.PrivateKey:
		text, hash = info, 0
		algorithm = sequence(oid(asn1.ObjectIdentifier{1, 3, 101, 112})) // RFC 8410 §3: id-Ed25519
	default:
		algorithm = sequence(oid(asn1.ObjectIdentifier{1, 2, 840, 10045, 4, 3, 2})) // RFC 5758 §3.2: ecdsa-with-SHA256
	}
	signature, err := d.key.Sign(rand.Reader, text, hash)
	if err != nil {
		d.t.Fatal(err)
	}
	return signature, algorithm
}

// The kubelet's own code makes the same bytes from this template as a draft makes from parts.
func TestADraftIsWhatKubeletsSend(t *testing.T) {
	for number := range 5 {
		for _, kind := range []csr.Kind{csr.Bootstrap, csr.Serving} {
			d := good(t, kind, number)
			template := &x509.CertificateRequest{Subject: pkix.Name{Organization: []string{"system:nodes"}, CommonName: "system:node:" + d.host}}
			if kind == csr.Serving {
				template.DNSNames = []string{d.host}
				for _, a := range addressesOf(number) {
					template.IPAddresses = append(template.IPAddresses, net.IP(a.AsSlice()))
				}
			}
			der, err := x509.CreateCertificateRequest(rand.Reader, template, d.key)
			if err != nil {
				t.Fatal(err)
			}
			kubelets, err := x509.ParseCertificateRequest(der)
			if err != nil {
				t.Fatal(err)
			}
			block, _ := pem.Decode(d.request().Spec.Request)
			ours, err := x509.ParseCertificateRequest(block.Bytes)
			if err != nil {
				t.Fatal(err)
			}
			if string(ours.RawTBSCertificateRequest) != string(kubelets.RawTBSCertificateRequest) {
				t.Errorf("%s of key %d:\n%x\nwant\n%x", kind, number, ours.RawTBSCertificateRequest, kubelets.RawTBSCertificateRequest)
			}
		}
	}
}
