package csr

import (
	"encoding/asn1"
	"slices"
)

// contents are a certification request (RFC 2986 §4) as encoded. crypto/x509 takes the last of two common names, drops attributes and names
// that it does not know, ignores trailing data inside a SEQUENCE, and checks no version.
type contents struct {
	fault      string        // how it departs from RFC 2986; empty when all of it was read
	subject    [][]attribute // RDNs in order
	attributes []asn1.ObjectIdentifier
	extensions []asn1.ObjectIdentifier
	names      []name // of all subjectAltNames
}

type attribute struct {
	kind asn1.ObjectIdentifier
	tag  int
	text string
}

// name is a GeneralName (RFC 5280 §4.2.1.6).
type name struct {
	kind  int // the number of its CHOICE
	value []byte
}

// The choices of a GeneralName that kubelets use; constructed marks any constructed one.
const (
	dnsName     = 2
	ipAddress   = 7
	constructed = -1
)

var (
	commonName       = asn1.ObjectIdentifier{2, 5, 4, 3}                  // RFC 5280 appendix A.1
	organization     = asn1.ObjectIdentifier{2, 5, 4, 10}                 // RFC 5280 appendix A.1
	extensionRequest = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 14} // RFC 2985 §5.4.2
	subjectAltName   = asn1.ObjectIdentifier{2, 5, 29, 17}                // RFC 5280 §4.2.1.6
	textTags         = []int{asn1.TagUTF8String, asn1.TagPrintableString} // RFC 5280 §4.1.2.4
)

func contentsOf(der []byte) *contents {
	c := &contents{}
	var request asn1.RawValue
	after, err := asn1.Unmarshal(der, &request)
	if err != nil || len(after) > 0 {
		c.wrong("it is not one DER value and nothing else")
	}
	outer := c.sequence("CertificationRequest", request, 3)
	info := c.sequence("CertificationRequestInfo", outer[0], 4)
	if v := info[0]; v.Tag != asn1.TagInteger || v.Class != asn1.ClassUniversal || string(v.Bytes) != "\x00" {
		c.wrong("its version is not v1")
	}
	for _, rdn := range c.parts("subject", info[1], asn1.ClassUniversal, asn1.TagSequence) {
		c.subject = append(c.subject, c.rdn(rdn))
	}
	for _, a := range c.parts("attributes", info[3], asn1.ClassContextSpecific, 0) {
		c.attribute(a)
	}
	return c
}

func (c *contents) rdn(v asn1.RawValue) (all []attribute) {
	for _, a := range c.parts("RDN", v, asn1.ClassUniversal, asn1.TagSet) {
		pair := c.sequence("attribute of the subject", a, 2)
		if v := pair[1]; v.Class != asn1.ClassUniversal || v.IsCompound { // the tag alone does not make it text: crypto/x509 ignores the rest
			c.wrong("an attribute of the subject is no plain value")
		}
		all = append(all, attribute{c.identifier(pair[0]), pair[1].Tag, string(pair[1].Bytes)})
	}
	return all
}

func (c *contents) attribute(v asn1.RawValue) {
	pair := c.sequence("attribute", v, 2)
	kind := c.identifier(pair[0])
	c.attributes = append(c.attributes, kind)
	values := c.parts("values of an attribute", pair[1], asn1.ClassUniversal, asn1.TagSet)
	if len(values) != 1 {
		c.wrong("an attribute has not one value")
	}
	if !kind.Equal(extensionRequest) {
		return
	}
	for _, value := range values {
		for _, e := range c.parts("extensions", value, asn1.ClassUniversal, asn1.TagSequence) {
			c.extension(e)
		}
	}
}

// extension reads one that is not critical, as kubelets write it: the subject is not empty, so a subjectAltName need not be critical
// (RFC 5280 §4.2.1.6).
func (c *contents) extension(v asn1.RawValue) {
	pair := c.sequence("extension", v, 2)
	kind := c.identifier(pair[0])
	c.extensions = append(c.extensions, kind)
	if !kind.Equal(subjectAltName) {
		return
	}
	var names asn1.RawValue
	if after, err := asn1.Unmarshal(pair[1].Bytes, &names); err != nil || len(after) > 0 || pair[1].Tag != asn1.TagOctetString {
		c.wrong("its subjectAltName is not one DER value")
	}
	for _, n := range c.parts("subjectAltName", names, asn1.ClassUniversal, asn1.TagSequence) {
		kind := n.Tag
		if n.IsCompound || n.Class != asn1.ClassContextSpecific {
			kind = constructed
		}
		c.names = append(c.names, name{kind, n.Bytes})
	}
}

func (c *contents) identifier(v asn1.RawValue) (id asn1.ObjectIdentifier) {
	if after, err := asn1.Unmarshal(v.FullBytes, &id); err != nil || len(after) > 0 {
		c.wrong("an object identifier cannot be read")
	}
	return id
}

// sequence returns the parts of a SEQUENCE and notes a fault unless there are count; missing ones are empty.
func (c *contents) sequence(what string, v asn1.RawValue, count int) []asn1.RawValue {
	all := c.parts(what, v, asn1.ClassUniversal, asn1.TagSequence)
	if len(all) != count {
		c.wrong("its " + what + " has not the parts that it should have")
	}
	return slices.Concat(all, make([]asn1.RawValue, count))
}

func (c *contents) parts(what string, v asn1.RawValue, class, tag int) (all []asn1.RawValue) {
	if !v.IsCompound || v.Class != class || v.Tag != tag {
		c.wrong("its " + what + " is of another type")
		return nil
	}
	for rest := v.Bytes; len(rest) > 0; {
		var part asn1.RawValue
		var err error
		if rest, err = asn1.Unmarshal(rest, &part); err != nil {
			c.wrong("its " + what + " cannot be read to the end")
			return all
		}
		all = append(all, part)
	}
	return all
}

// wrong records a fault, unless there is one already.
func (c *contents) wrong(what string) {
	if c.fault == "" {
		c.fault = what
	}
}

// texts are those of all subject attributes of a kind.
func (c *contents) texts(kind asn1.ObjectIdentifier) (all []string) {
	for _, rdn := range c.subject {
		for _, a := range rdn {
			if a.kind.Equal(kind) {
				all = append(all, a.text)
			}
		}
	}
	return all
}
