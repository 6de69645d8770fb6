package csr

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	certificates "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// largest bounds spec.request. One with an RSA key of 4096 bits has some 1,800 bytes; verifying a signature by a key of megabytes would
// take hours.
const largest = 4 << 10

// bootstrapper and nodePrefix are who asks (openshift/machine-config-operator: the token in a worker's Ignition is node-bootstrapper's);
// the groups are those that the API server gives them (apiserver pkg/authentication: serviceaccount.MakeGroupNames, user.AllAuthenticated).
const (
	bootstrapper = "system:serviceaccount:openshift-machine-config-operator:node-bootstrapper"
	nodePrefix   = "system:node:"
	nodesGroup   = "system:nodes"
)

var (
	bootstrapperGroups = []string{"system:authenticated", "system:serviceaccounts", "system:serviceaccounts:openshift-machine-config-operator"}
	nodeGroups         = []string{"system:authenticated", nodesGroup}
)

// form is a parsed request.
type form struct {
	*certificates.CertificateSigningRequest
	*contents
	oddPEM string // what is odd about spec.request; empty when nothing is
	parsed *x509.CertificateRequest
	unread string // why parsed is nil
	asked  Asked
}

func formOf(r *certificates.CertificateSigningRequest) *form {
	f := &form{CertificateSigningRequest: r, asked: Asked{Kind: Serving, Name: r.Name, Created: r.CreationTimestamp.Time}}
	der, odd := derOf(r.Spec.Request)
	f.oddPEM, f.contents = odd, contentsOf(der)
	if parsed, err := x509.ParseCertificateRequest(der); err != nil {
		f.unread = err.Error()
	} else {
		f.parsed, f.asked.Key = parsed, sha256.Sum256(parsed.RawSubjectPublicKeyInfo)
	}
	if r.Spec.SignerName == certificates.KubeAPIServerClientKubeletSignerName {
		f.asked.Kind = Bootstrap
	}
	if names := f.texts(commonName); len(names) > 0 {
		f.asked.Host = strings.TrimPrefix(names[len(names)-1], nodePrefix)
	}
	for _, n := range f.names {
		if ip, ok := netip.AddrFromSlice(n.value); ok && n.kind == ipAddress {
			f.asked.Addresses = append(f.asked.Addresses, ip.Unmap())
		}
	}
	return f
}

// derOf decodes the first PEM block, which is the one that signers use.
func derOf(text []byte) (der []byte, odd string) {
	block, rest := pem.Decode(text)
	switch {
	case block == nil:
		return nil, "it is no PEM"
	case block.Type != "CERTIFICATE REQUEST":
		odd = "its type is " + short(block.Type)
	case len(block.Headers) > 0:
		odd = "it has headers"
	case len(bytes.TrimSpace(rest)) > 0 || !bytes.HasPrefix(bytes.TrimSpace(text), []byte("-----BEGIN")):
		odd = "there is something beside it"
	}
	return block.Bytes, odd
}

// formRules apply to requests of both kinds.
var formRules = []rule[*form]{
	{RulePending, (*form).isPending},
	{"Signer", (*form).namesAKubeletSigner},
	{"OnePEMBlock", (*form).isOnePEMBlock},
	{"Readable", (*form).isReadable},
	{"SubjectShape", (*form).hasShape},
	{"SubjectText", (*form).hasText},
	{"OneCommonName", (*form).hasOneCommonName},
	{"CommonName", (*form).namesAHost},
	{"Organization", (*form).hasOneOrganization},
	{"KnownAttributes", (*form).knowsAttributes},
	{"KnownExtensions", (*form).knowsExtensions},
	{"Key", (*form).hasUsualKey},
}

var bootstrapForm = []rule[*form]{
	{"BootstrapRequester", (*form).isAskedByTheBootstrapper},
	{"BootstrapGroups", (*form).hasBootstrapperGroups},
	{"BootstrapUsages", (*form).isForClients},
	{"NoNames", (*form).hasNoNames},
}

var servingForm = []rule[*form]{
	{"ServingRequester", (*form).isAskedByItsNode},
	{"ServingGroups", (*form).hasNodeGroups},
	{"ServingUsages", (*form).isForServers},
	{"FewNames", (*form).hasFewNames},
	{"NameTypes", (*form).hasNamesOfHostsOnly},
	{"DNSNames", (*form).hasItsDNSName},
	{"PlainAddresses", (*form).hasPlainAddresses},
}

func (f *form) isPending() (bool, string) {
	for _, c := range f.Status.Conditions {
		if c.Type == certificates.CertificateApproved || c.Type == certificates.CertificateDenied || c.Type == certificates.CertificateFailed {
			return false, fmt.Sprintf("it is %s already (%s)", c.Type, short(c.Reason))
		}
	}
	return true, "nobody has decided yet"
}

func (f *form) namesAKubeletSigner() (bool, string) {
	known := []string{certificates.KubeAPIServerClientKubeletSignerName, certificates.KubeletServingSignerName}
	return slices.Contains(known, f.Spec.SignerName), "spec.signerName is " + short(f.Spec.SignerName)
}

func (f *form) isOnePEMBlock() (bool, string) {
	if f.oddPEM != "" {
		return false, "spec.request is not one PEM block of a certificate request: " + f.oddPEM
	}
	return true, "spec.request is one PEM block"
}

func (f *form) isReadable() (bool, string) {
	if f.fault != "" {
		return false, "it is no certification request of RFC 2986: " + f.fault
	}
	return true, "all of the certification request was read"
}

// isSigned comes last, when all other rules passed: it costs the most. x509.ParseCertificateRequest does not check the signature.
func (f *form) isSigned() (bool, string) {
	if err := f.parsed.CheckSignature(); err != nil {
		return false, "its signature is not by the key in it: " + short(err.Error())
	}
	return true, "it is signed by the key in it"
}

// hasShape: the organizations, then the common names, each in an RDN of its own, and nothing else. crypto/x509/pkix writes them so, and
// with it every kubelet.
func (f *form) hasShape() (bool, string) {
	last := organization
	for _, rdn := range f.subject {
		if len(rdn) != 1 {
			return false, "an RDN of the subject has not one attribute"
		}
		switch kind := rdn[0].kind; {
		case !kind.Equal(organization) && !kind.Equal(commonName):
			return false, "the subject has the attribute " + short(kind.String())
		case kind.Equal(organization) && last.Equal(commonName):
			return false, "an organization follows the common name"
		default:
			last = kind
		}
	}
	return true, "the subject is an organization and a common name"
}

func (f *form) hasText() (bool, string) {
	for _, a := range slices.Concat(f.subject...) {
		if !slices.Contains(textTags, a.tag) {
			return false, "an attribute of the subject is neither UTF8String nor PrintableString but of tag " + strconv.Itoa(a.tag)
		}
	}
	return true, "the subject is text"
}

func (f *form) hasOneCommonName() (bool, string) {
	names := f.texts(commonName)
	return len(names) == 1, "common names: " + list(names)
}

func (f *form) namesAHost() (bool, string) {
	names := f.texts(commonName)
	if len(names) == 0 {
		return false, "there is no common name"
	}
	host, ok := strings.CutPrefix(names[len(names)-1], nodePrefix)
	return ok && len(validation.IsDNS1123Subdomain(host)) == 0, "the common name is " + short(names[len(names)-1])
}

func (f *form) hasOneOrganization() (bool, string) {
	all := f.texts(organization)
	return slices.Equal(all, []string{nodesGroup}), "organizations: " + list(all)
}

func (f *form) knowsAttributes() (bool, string) {
	for _, kind := range f.attributes {
		if !kind.Equal(extensionRequest) {
			return false, "it has the attribute " + short(kind.String())
		}
	}
	return len(f.attributes) <= 1, fmt.Sprintf("attributes: %d", len(f.attributes))
}

func (f *form) knowsExtensions() (bool, string) {
	for _, kind := range f.extensions {
		if !kind.Equal(subjectAltName) {
			return false, "it has the extension " + short(kind.String())
		}
	}
	return len(f.extensions) <= 1, fmt.Sprintf("extensions: %d", len(f.extensions))
}

func (f *form) isAskedByTheBootstrapper() (bool, string) {
	return f.Spec.Username == bootstrapper, "the requester is " + short(f.Spec.Username)
}

func (f *form) hasBootstrapperGroups() (bool, string) {
	return f.hasGroups(bootstrapperGroups)
}

func (f *form) isForClients() (bool, string) {
	return f.hasUsages(certificates.UsageClientAuth)
}

func (f *form) hasNoNames() (bool, string) {
	has := slices.ContainsFunc(f.extensions, subjectAltName.Equal)
	return !has, map[bool]string{true: "it has subject alternative names", false: "it has no subject alternative name"}[has]
}

func (f *form) isAskedByItsNode() (bool, string) {
	return f.Spec.Username == nodePrefix+f.asked.Host, fmt.Sprintf("the requester is %s, the certificate for host %s", short(f.Spec.Username), short(f.asked.Host))
}

func (f *form) hasNodeGroups() (bool, string) {
	return f.hasGroups(nodeGroups)
}

func (f *form) isForServers() (bool, string) {
	return f.hasUsages(certificates.UsageServerAuth)
}

// hasFewNames bounds what is kept of a pending request.
func (f *form) hasFewNames() (bool, string) {
	const most = 64
	return len(f.names) <= most, fmt.Sprintf("subject alternative names: %d, at most %d", len(f.names), most)
}

func (f *form) hasNamesOfHostsOnly() (bool, string) {
	for _, n := range f.names {
		if n.kind != dnsName && n.kind != ipAddress {
			return false, "it has a subject alternative name that is neither a DNS name nor an address"
		}
	}
	return true, "it has DNS names and addresses only"
}

func (f *form) hasItsDNSName() (bool, string) {
	var all []string
	for _, n := range f.names {
		if n.kind == dnsName {
			all = append(all, string(n.value))
		}
	}
	return slices.Equal(all, []string{f.asked.Host}), fmt.Sprintf("DNS names: %s, for host %s", list(all), short(f.asked.Host))
}

// hasPlainAddresses: ::ffff:192.0.2.1 prints as 192.0.2.1 but is a different name.
func (f *form) hasPlainAddresses() (bool, string) {
	for _, n := range f.names {
		if n.kind != ipAddress {
			continue
		}
		if ip, ok := netip.AddrFromSlice(n.value); !ok || ip.Is4In6() {
			return false, fmt.Sprintf("the address of bytes %x is neither IPv4 nor plain IPv6", n.value[:min(len(n.value), 16)])
		}
	}
	return true, fmt.Sprintf("addresses: %d", len(f.asked.Addresses))
}

func (f *form) hasGroups(want []string) (bool, string) {
	return slices.Equal(slices.Sorted(slices.Values(f.Spec.Groups)), want), "the requester's groups: " + list(f.Spec.Groups)
}

// hasUsages: kubelets with an RSA key also ask for key encipherment.
func (f *form) hasUsages(auth certificates.KeyUsage) (bool, string) {
	var all []string
	for _, u := range f.Spec.Usages {
		all = append(all, string(u))
	}
	slices.Sort(all)
	with := []string{string(auth), string(certificates.UsageDigitalSignature)}
	slices.Sort(with)
	rsa := append(slices.Clone(with), string(certificates.UsageKeyEncipherment))
	slices.Sort(rsa)
	return slices.Equal(all, with) || slices.Equal(all, rsa), "usages: " + list(all)
}
