package csr_test

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"testing"

	"github.com/cldmnky/oooi/internal/csr"
)

// FuzzDER lets a stranger write the subject and the attributes; the rest is in order, the signature included. What is approved must be what
// a kubelet writes, as crypto/x509 reads it and byte for byte, except for the type of its strings.
func FuzzDER(f *testing.F) {
	for _, kind := range []csr.Kind{csr.Bootstrap, csr.Serving} {
		d := good(f, kind, 1)
		f.Add(d.subjectDER(), d.attributesDER(), kind == csr.Serving)
		for _, forged := range forgeries {
			if d := good(f, kind, 1); forged.kind == "" || forged.kind == kind {
				forged.change(d)
				f.Add(d.subjectDER(), d.attributesDER(), kind == csr.Serving)
			}
		}
	}
	f.Fuzz(func(t *testing.T, subject, attributes []byte, serving bool) {
		kind := csr.Bootstrap
		if serving {
			kind = csr.Serving
		}
		d := good(t, kind, 1)
		decision := csr.Decide(d.requestOf(subject, attributes), d.facts)
		if !decision.Approve {
			return
		}
		if !sameText(subject, d.subjectDER()) {
			t.Errorf("approved with the subject %x", subject)
		}
		block, _ := pem.Decode(d.object.Spec.Request)
		request, err := x509.ParseCertificateRequest(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		if !serving && !bytes.Equal(attributes, d.attributesDER()) {
			t.Errorf("approved with the attributes %x", attributes)
		}
		if serving && (len(request.DNSNames) != 1 || request.DNSNames[0] != d.host || len(request.EmailAddresses)+len(request.URIs) > 0) {
			t.Errorf("approved with the names %v %v %v", request.DNSNames, request.EmailAddresses, request.URIs)
		}
	})
}

// sameText compares DER in which PrintableString (19) may stand for UTF8String (12).
func sameText(a, b []byte) bool {
	return bytes.Equal(bytes.ReplaceAll(a, []byte{12}, []byte{19}), bytes.ReplaceAll(b, []byte{12}, []byte{19}))
}

// FuzzRequest lets a stranger write all of spec.request.
func FuzzRequest(f *testing.F) {
	d := good(f, csr.Serving, 1)
	f.Add(d.request().Spec.Request)
	f.Add([]byte("-----BEGIN CERTIFICATE REQUEST-----\nMAA=\n-----END CERTIFICATE REQUEST-----\n"))
	f.Fuzz(func(t *testing.T, request []byte) {
		d := good(t, csr.Serving, 1)
		d.object.Spec.Request = request
		for _, v := range csr.Decide(&d.object, d.facts).Rules {
			if len(v.Because) > 800 {
				t.Errorf("%s says %d bytes", v.Name, len(v.Because))
			}
		}
	})
}
