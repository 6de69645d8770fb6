package csr_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/asn1"
	"encoding/pem"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	certificates "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cldmnky/oooi/internal/csr"
)

// forgery is one change to a good CSR, or to the facts about it.
type forgery struct {
	name string
	kind csr.Kind // empty: both
	// breaks are the rules that refuse it. A single one is all that stands between the forgery and an approval.
	breaks []string
	change func(d *draft)
}

func rules(names ...string) []string { return names }

func spec(change func(*certificates.CertificateSigningRequestSpec)) func(*draft) {
	return func(d *draft) { change(&d.object.Spec) }
}

func username(name string) func(*draft) {
	return spec(func(s *certificates.CertificateSigningRequestSpec) { s.Username = name })
}

func signer(name string) func(*draft) {
	return spec(func(s *certificates.CertificateSigningRequestSpec) { s.SignerName = name })
}

func groups(change func([]string) []string) func(*draft) {
	return spec(func(s *certificates.CertificateSigningRequestSpec) { s.Groups = change(slices.Clone(s.Groups)) })
}

func usage(more ...certificates.KeyUsage) func(*draft) {
	return spec(func(s *certificates.CertificateSigningRequestSpec) { s.Usages = append(s.Usages, more...) })
}

func withoutUsage(less certificates.KeyUsage) func(*draft) {
	return spec(func(s *certificates.CertificateSigningRequestSpec) {
		s.Usages = slices.DeleteFunc(s.Usages, func(u certificates.KeyUsage) bool { return u == less })
	})
}

// keyed signs with a key that is generated once.
func keyed(generate func() (crypto.Signer, error)) func(*draft) {
	generated := sync.OnceValues(generate)
	return func(d *draft) {
		key, err := generated()
		if err != nil {
			d.t.Fatal(err)
		}
		d.key = key
		d.object.Spec.Usages = slices.DeleteFunc(d.object.Spec.Usages, func(u certificates.KeyUsage) bool { return u == certificates.UsageKeyEncipherment })
	}
}

func condition(kind certificates.RequestConditionType) func(*draft) {
	return func(d *draft) {
		d.object.Status.Conditions = []certificates.CertificateSigningRequestCondition{{Type: kind, Status: "True", Reason: "x"}}
	}
}

func subject(change func(d *draft, o, cn attribute) []rdn) func(*draft) {
	return func(d *draft) { d.subject = change(d, d.subject[0][0], d.subject[1][0]) }
}

func named(change func(host string) string) func(*draft) {
	return func(d *draft) { d.subject[1][0].text = change(d.host) }
}

func names(change func(d *draft) [][]byte) func(*draft) {
	return func(d *draft) { d.names = append(d.names, change(d)...) }
}

func address(at string) func(*draft) {
	return names(func(*draft) [][]byte { return [][]byte{ip(netip.MustParseAddr(at).AsSlice())} })
}

// has requests an address that the Node's kubelet, as it can, also wrote into its status.
func has(at string) func(*draft) {
	return func(d *draft) {
		n := d.facts.Nodes[d.host]
		n.Addresses = append(slices.Clone(n.Addresses), netip.MustParseAddr(at))
		d.facts.Nodes[d.host] = n
		address(at)(d)
	}
}

func dpu(change func(*csr.DPU)) func(*draft) {
	return func(d *draft) { change(&d.facts.DPUs[1]) }
}

func node(n csr.Node, leaseAge time.Duration) func(*draft) {
	return func(d *draft) {
		d.facts.Nodes[d.host] = n
		if leaseAge >= 0 {
			d.facts.Leases[d.host] = now.Add(-leaseAge)
		}
	}
}

// Who approved: we did, for this DPU, or a person, whose approval names no DPU.
const (
	itsOwn   = types.UID("its own")
	aPersons = types.UID("a person's")
)

func approved(by types.UID, created, at time.Duration) func(*draft) {
	return func(d *draft) {
		of := map[types.UID]types.UID{itsOwn: d.facts.DPUs[1].UID, aPersons: ""}[by]
		d.facts.Approved[d.host] = []csr.Approval{{Name: "another", DPU: of, Created: now.Add(-created), At: now.Add(-at)}}
	}
}

var otherName = sequence(oid(asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 311, 20, 2, 3}), tlv(asn1.ClassContextSpecific, 0, true, text(asn1.TagUTF8String, "root")))

const (
	boot  = csr.Bootstrap
	serve = csr.Serving
)

// forgeries are those of issue 5, and whatever else breaks a rule.
var forgeries = []forgery{
	// The object.
	{"denied already", "", rules("Pending"), condition(certificates.CertificateDenied)},
	{"approved already", "", rules("Pending"), condition(certificates.CertificateApproved)},
	{"failed already", "", rules("Pending"), condition(certificates.CertificateFailed)},
	{"another signer", serve, rules("Signer"), signer("kubernetes.io/legacy-unknown")},
	{"another signer", boot, nil, signer("kubernetes.io/kube-apiserver-client")},
	{"the other kind's signer", boot, nil, signer(certificates.KubeletServingSignerName)},
	{"the other kind's signer", serve, nil, signer(certificates.KubeAPIServerClientKubeletSignerName)},
	{"no signer", serve, rules("Signer"), signer("")},
	{"another account's", boot, rules("BootstrapRequester"), username("system:serviceaccount:default:node-bootstrapper")},
	{"another account of the namespace's", boot, rules("BootstrapRequester"), username("system:serviceaccount:openshift-machine-config-operator:default")},
	{"a longer account's", boot, rules("BootstrapRequester"), username("system:serviceaccount:openshift-machine-config-operator:node-bootstrapper2")},
	{"the admin's", "", nil, username("system:admin")},
	{"nobody's", "", nil, username("")},
	{"another Node's", serve, rules("ServingRequester"), username("system:node:dpu-202.example.com")},
	{"the bootstrapper's", serve, rules("ServingRequester"), username("system:serviceaccount:openshift-machine-config-operator:node-bootstrapper")},
	{"the Node's", boot, rules("BootstrapRequester"), username("system:node:dpu-1.example.com")},
	{"one group more", boot, rules("BootstrapGroups"), groups(func(g []string) []string { return append(g, "system:masters") })},
	{"one group less", boot, rules("BootstrapGroups"), groups(func(g []string) []string { return g[1:] })},
	{"a group twice", boot, rules("BootstrapGroups"), groups(func(g []string) []string { return append(g, g[0]) })},
	{"no groups", boot, rules("BootstrapGroups"), groups(func([]string) []string { return nil })},
	{"one group more", serve, rules("ServingGroups"), groups(func(g []string) []string { return append(g, "system:masters") })},
	{"one group less", serve, rules("ServingGroups"), groups(func(g []string) []string { return g[1:] })},
	{"a group twice", serve, rules("ServingGroups"), groups(func(g []string) []string { return append(g, g[0]) })},
	{"no groups", serve, rules("ServingGroups"), groups(func([]string) []string { return nil })},
	{"for servers too", boot, rules("BootstrapUsages"), usage(certificates.UsageServerAuth)},
	{"for signing", boot, rules("BootstrapUsages"), usage(certificates.UsageCertSign)},
	{"for anything", boot, rules("BootstrapUsages"), usage(certificates.UsageAny)},
	{"a usage twice", boot, rules("BootstrapUsages"), usage(certificates.UsageClientAuth)},
	{"not for clients", boot, rules("BootstrapUsages"), withoutUsage(certificates.UsageClientAuth)},
	{"without digital signature", boot, rules("BootstrapUsages"), withoutUsage(certificates.UsageDigitalSignature)},
	{"for clients too", serve, rules("ServingUsages"), usage(certificates.UsageClientAuth)},
	{"for code", serve, rules("ServingUsages"), usage(certificates.UsageCodeSigning)},
	{"a usage twice", serve, rules("ServingUsages"), usage(certificates.UsageServerAuth)},
	{"not for servers", serve, rules("ServingUsages"), withoutUsage(certificates.UsageServerAuth)},
	{"without digital signature", serve, rules("ServingUsages"), withoutUsage(certificates.UsageDigitalSignature)},

	// Its PEM and DER.
	{"two PEM blocks", "", rules("OnePEMBlock"), func(d *draft) {
		d.pem = func(b *pem.Block) []byte { return append(pem.EncodeToMemory(b), pem.EncodeToMemory(b)...) }
	}},
	{"PEM headers", "", rules("OnePEMBlock"), func(d *draft) {
		d.pem = func(b *pem.Block) []byte {
			b.Headers = map[string]string{"Proc-Type": "4"}
			return pem.EncodeToMemory(b)
		}
	}},
	{"another PEM type", "", rules("OnePEMBlock"), func(d *draft) {
		d.pem = func(b *pem.Block) []byte { b.Type = "NEW CERTIFICATE REQUEST"; return pem.EncodeToMemory(b) }
	}},
	{"text before the PEM", "", rules("OnePEMBlock"), func(d *draft) {
		d.pem = func(b *pem.Block) []byte { return append([]byte("CN=system:admin\n"), pem.EncodeToMemory(b)...) }
	}},
	{"no PEM", "", nil, func(d *draft) { d.pem = func(b *pem.Block) []byte { return b.Bytes } }},
	{"nothing", "", nil, func(d *draft) { d.pem = func(*pem.Block) []byte { return nil } }},
	{"bytes after the DER", "", rules("Readable", "Key"), func(d *draft) { d.trailing = []byte{5, 0} }},
	{"a request that is cut", "", nil, func(d *draft) {
		d.pem = func(b *pem.Block) []byte { b.Bytes = b.Bytes[:len(b.Bytes)/2]; return pem.EncodeToMemory(b) }
	}},
	{"version 2", "", rules("Readable"), func(d *draft) { d.version = 1 }},
	{"a part more in the signed part", "", rules("Readable"), func(d *draft) { d.more = text(asn1.TagUTF8String, "system:masters") }},
	{"an attribute that cannot be read", boot, rules("Readable"), func(d *draft) { d.attributes = [][]byte{sequence(oid(oidExtensionRequest))} }},
	{"too large", "", rules("NotTooLarge"), func(d *draft) {
		d.pem = func(b *pem.Block) []byte { return append(pem.EncodeToMemory(b), strings.Repeat("\n", 4<<10)...) }
	}},
	{"another's signature", "", rules("Signature"), func(d *draft) { d.signature = func(s []byte) []byte { s[len(s)-1] ^= 1; return s } }},
	{"another's key", "", rules("Signature"), func(d *draft) {
		d.signature = func([]byte) []byte { return signedByAnother(d.t) }
	}},
	{"no signature", "", rules("Signature"), func(d *draft) { d.signature = func([]byte) []byte { return nil } }},

	// Its key.
	{"a key of RSA that can be broken", "", rules("Key"), keyed(func() (crypto.Signer, error) { return rsa.GenerateKey(rand.Reader, 1024) })},
	{"a key of RSA with one bit less", "", rules("Key"), keyed(func() (crypto.Signer, error) { return rsa.GenerateKey(rand.Reader, 2047) })},
	{"a key of RSA that takes long", "", rules("Key"), keyed(func() (crypto.Signer, error) { return rsa.GenerateMultiPrimeKey(rand.Reader, 5, 4160) })}, //nolint:staticcheck // a large key that is made fast
	{"a key of a small curve", "", rules("Key"), keyed(func() (crypto.Signer, error) { return ecdsa.GenerateKey(elliptic.P224(), rand.Reader) })},
	{"a key of a large curve", "", rules("Key"), keyed(func() (crypto.Signer, error) { return ecdsa.GenerateKey(elliptic.P521(), rand.Reader) })},
	{"a key of Ed25519", "", rules("Key"), keyed(func() (crypto.Signer, error) {
		_, key, err := ed25519.GenerateKey(rand.Reader)
		return key, err
	})},

	// Its subject.
	{"another common name before", "", rules("OneCommonName"), subject(func(_ *draft, o, cn attribute) []rdn { return []rdn{{o}, {{oidCN, cn.tag, "system:admin"}}, {cn}} })},
	{"the common name twice", "", rules("OneCommonName"), subject(func(_ *draft, o, cn attribute) []rdn { return []rdn{{o}, {cn}, {cn}} })},
	{"another common name after", "", nil, subject(func(_ *draft, o, cn attribute) []rdn { return []rdn{{o}, {cn}, {{oidCN, cn.tag, "system:admin"}}} })},
	{"no common name", "", nil, subject(func(_ *draft, o, _ attribute) []rdn { return []rdn{{o}} })},
	{"no subject", "", nil, subject(func(*draft, attribute, attribute) []rdn { return nil })},
	{"a common name without system:node:", "", rules("CommonName"), named(func(host string) string { return host })},
	{"an empty host", "", nil, named(func(string) string { return "system:node:" })},
	{"a host with NUL", "", nil, named(func(host string) string { return "system:node:" + host + "\x00" })},
	{"a host with a trailing dot", "", nil, named(func(host string) string { return "system:node:" + host + "." })},
	{"a host with a space", "", nil, named(func(host string) string { return "system:node:" + host + " " })},
	{"a host in capitals", "", nil, named(func(host string) string { return "system:node:" + strings.ToUpper(host) })},
	{"another host", "", nil, named(func(string) string { return "system:node:dpu-200.example.org" })},
	{"an organization more", "", rules("Organization"), subject(func(_ *draft, o, cn attribute) []rdn { return []rdn{{o}, {{oidO, o.tag, "system:masters"}}, {cn}} })},
	{"the organization twice", "", rules("Organization"), subject(func(_ *draft, o, cn attribute) []rdn { return []rdn{{o}, {o}, {cn}} })},
	{"another organization", "", rules("Organization"), subject(func(_ *draft, o, cn attribute) []rdn { return []rdn{{{oidO, o.tag, "system:masters"}}, {cn}} })},
	{"no organization", "", rules("Organization"), subject(func(_ *draft, _, cn attribute) []rdn { return []rdn{{cn}} })},
	{"a unit", "", rules("SubjectShape"), subject(func(_ *draft, o, cn attribute) []rdn { return []rdn{{o}, {{oidOU, o.tag, "system:masters"}}, {cn}} })},
	{"the common name first", "", rules("SubjectShape"), subject(func(_ *draft, o, cn attribute) []rdn { return []rdn{{cn}, {o}} })},
	{"one RDN of both", "", rules("SubjectShape"), subject(func(_ *draft, o, cn attribute) []rdn { return []rdn{{cn, o}} })},
	{"an empty RDN", "", rules("SubjectShape"), subject(func(_ *draft, o, cn attribute) []rdn { return []rdn{{o}, {}, {cn}} })},
	{"a common name in T61", "", rules("SubjectText"), func(d *draft) { d.subject[1][0].tag = asn1.TagT61String }},
	{"an organization in IA5", "", rules("SubjectText"), func(d *draft) { d.subject[0][0].tag = asn1.TagIA5String }},

	{"a common name in pieces", "", rules("Readable"), func(d *draft) { d.typed = 0x20 }},
	{"a common name of a private type", "", rules("Readable"), func(d *draft) { d.typed = 0xc0 }},

	// Its attributes and extensions.
	{"a challenge password", "", rules("KnownAttributes"), func(d *draft) {
		d.attributes = [][]byte{sequence(oid(oidChallengePassword), set(text(asn1.TagUTF8String, "x")))}
	}},
	{"two requests for extensions", "", rules("KnownAttributes"), func(d *draft) {
		d.attributes = [][]byte{sequence(oid(oidExtensionRequest), set(sequence()))}
		if d.names == nil {
			d.attributes = append(d.attributes, d.attributes...)
		}
	}},
	{"a key usage", "", rules("KnownExtensions"), func(d *draft) {
		d.extensions = [][]byte{sequence(oid(oidKeyUsage), octets([]byte{3, 2, 1, 6}))}
	}},
	{"two lists of names", serve, nil, func(d *draft) { d.extensions = [][]byte{sequence(oid(oidSAN), octets(sequence(dns(d.host))))} }},
	{"names that are critical", serve, nil, func(d *draft) {
		d.extensions = [][]byte{sequence(oid(oidSAN), []byte{1, 1, 255}, octets(sequence(d.names...)))}
		d.names = nil
	}},
	{"names with something after", serve, nil, func(d *draft) {
		d.extensions = [][]byte{sequence(oid(oidSAN), octets(sequence(d.names...), dns("evil.example.com")))}
		d.names = nil
	}},
	{"a DNS name", boot, rules("NoNames"), names(func(d *draft) [][]byte { return [][]byte{dns(d.host)} })},
	{"an address", boot, rules("NoNames"), address("192.168.100.1")},
	{"an otherName", boot, rules("NoNames"), names(func(*draft) [][]byte { return [][]byte{general(0, true, otherName)} })},
	{"an empty list of names", boot, rules("NoNames"), func(d *draft) { d.names = [][]byte{} }},
	{"an otherName", serve, rules("NameTypes"), names(func(*draft) [][]byte { return [][]byte{general(0, true, otherName)} })},
	{"an email address", serve, rules("NameTypes"), names(func(*draft) [][]byte { return [][]byte{general(1, false, []byte("root@example.com"))} })},
	{"a directory name", serve, rules("NameTypes"), names(func(d *draft) [][]byte { return [][]byte{general(4, true, d.subjectDER())} })},
	{"a URI", serve, rules("NameTypes"), names(func(*draft) [][]byte { return [][]byte{general(6, false, []byte("spiffe://example.com/x"))} })},
	{"a registered ID", serve, rules("NameTypes"), names(func(*draft) [][]byte { return [][]byte{general(8, false, []byte{42, 3})} })},
	{"another DNS name", serve, rules("DNSNames"), names(func(*draft) [][]byte { return [][]byte{dns("kubernetes.default.svc")} })},
	{"the DNS name twice", serve, rules("DNSNames"), names(func(d *draft) [][]byte { return [][]byte{dns(d.host)} })},
	{"no DNS name", serve, rules("DNSNames"), func(d *draft) { d.names = d.names[1:] }},
	{"a DNS name with NUL", serve, rules("DNSNames"), func(d *draft) { d.names[0] = dns(d.host + "\x00.example.com") }},
	{"a DNS name with a trailing dot", serve, rules("DNSNames"), func(d *draft) { d.names[0] = dns(d.host + ".") }},
	{"a DNS name with a space", serve, rules("DNSNames"), func(d *draft) { d.names[0] = dns(d.host + " ") }},
	{"a wildcard", serve, rules("DNSNames"), func(d *draft) { d.names[0] = dns("*.example.com") }},
	{"an IPv4-mapped address of its own", serve, rules("PlainAddresses"), names(func(d *draft) [][]byte {
		mapped := d.facts.Nodes[d.host].Addresses[0].As16()
		return [][]byte{ip(mapped[:])}
	})},
	{"an address with a mask", serve, nil, names(func(*draft) [][]byte { return [][]byte{ip([]byte{0, 0, 0, 0, 0, 0, 0, 0})} })},
	{"more names than a Node has", serve, rules("FewNames"), func(d *draft) {
		for i := range 64 {
			has(fmt.Sprintf("10.1.2.%d", i))(d)
		}
	}},

	// The host.
	{"a host that is no DPU", "", rules("DPUOfThisCluster"), func(d *draft) {
		d.facts.DPUs[1].Name = "dpu-199.example.com"
		d.facts.DPUs[1].OSInstalled = true
		spare(d)
	}},
	{"a host of another DPUCluster", "", rules("DPUOfThisCluster"), dpu(func(d *csr.DPU) { d.Cluster.Name = "another" })},
	{"a host of a DPUCluster elsewhere", "", rules("DPUOfThisCluster"), dpu(func(d *csr.DPU) { d.Cluster.Namespace = "another" })},
	{"two installed DPUs of one name", "", rules("DPUOfThisCluster"), func(d *draft) {
		twin := d.facts.DPUs[1]
		twin.Namespace, twin.UID = "another", "twin"
		d.facts.DPUs = append(d.facts.DPUs, twin)
	}},
	{"a DPU that is deleted", boot, rules("DPUStays"), dpu(func(d *csr.DPU) { d.Deleting = true })},
	{"a DPU that is not installed", boot, rules("OSInstalled"), dpu(func(d *csr.DPU) { d.OSInstalled = false })},
	{"one that the DPU before of the name left", boot, rules("AskedInItsLife"), dpu(func(d *csr.DPU) { d.Created = now })},
	{"one of the second in which the DPU was made", boot, rules("AskedInItsLife"), dpu(func(d *csr.DPU) { d.Created = now.Add(-time.Second) })},
	{"one before, by a clock that is five seconds ahead", boot, rules("AskedInItsLife"), dpu(func(d *csr.DPU) { d.Created = now.Add(-6 * time.Second) })},
	{"a Node that is Ready", boot, rules("NodeInactive"), node(csr.Node{Ready: true}, time.Hour)},
	{"a Node that is Ready and has no Lease", boot, rules("NodeInactive"), node(csr.Node{Ready: true}, -1)},
	{"a Node whose Lease is young", boot, rules("NodeInactive"), node(csr.Node{}, 5*time.Minute-time.Second)},
	{"a Node whose Lease is of tomorrow", boot, rules("NodeInactive"), node(csr.Node{}, 0)},
	{"a Node that is long gone, where none bootstraps again", boot, rules("Rebootstrap"), func(d *draft) {
		d.facts.NoRebootstrap = true
		node(csr.Node{}, time.Hour)(d)
	}},
	{"one of two keys, where none bootstraps again", boot, rules("OneKey"), func(d *draft) {
		d.facts.NoRebootstrap = true
		d.facts.Asking = map[string][]csr.Asked{d.host: {{Kind: csr.Bootstrap, Key: csr.Key{1}, Created: now}}}
	}},
	{"a second one", boot, rules("OneInFifteenMinutes"), approved(itsOwn, time.Minute, 15*time.Minute-time.Second)},
	{"a second one after a person's", boot, rules("OneInFifteenMinutes"), approved(aPersons, time.Minute, time.Minute)},
	{"an older one", boot, rules("Newest"), approved(itsOwn, 0, time.Hour)},
	{"an older one than a person's", boot, rules("Newest"), approved(aPersons, 0, time.Hour)},
	{"no Node", serve, rules("NodeExists"), func(d *draft) { delete(d.facts.Nodes, d.host); d.names = d.names[:1] }},
	{"an address of nobody", serve, rules("AddressesOfItsNode"), address("192.168.100.250")},
	{"another Node's address", serve, nil, address("192.168.100.202")},
	{"another Node's address, as its own", serve, rules("AddressesOfNoOtherNode"), has("192.168.100.202")},
	{"another DPU's address, as its own", serve, rules("AddressesOfNoOtherDPU"), has("192.168.100.200")},
	{"the API's Service", serve, nil, address("172.31.0.1")},
	{"the API's Service, as its own", serve, rules("AddressesOfNoService"), has("172.31.0.1")},
	{"a load balancer's address, as its own", serve, rules("AddressesOfNoService"), has("192.168.50.9")},
	{"an address that a Service may get, as its own", serve, rules("AddressesOfNoService"), has("172.31.200.1")},
	{"any address where Services are not known", serve, rules("AddressesOfNoService"), func(d *draft) {
		d.facts.ServicesUnknown = true
		has("192.168.100.99")(d)
	}},
	{"the API server's address", serve, nil, address("192.168.50.5")},
	{"the API server's address, as its own", serve, rules("AddressesOfNoAPI"), has("192.168.50.5")},
	{"an endpoint of the API, as its own", serve, rules("AddressesOfNoAPI"), has("172.20.0.1")},
	{"a metadata service, as its own", serve, rules("AddressesElsewhere"), has("169.254.169.254")},
	{"Azure's metadata service, as its own", serve, rules("AddressesElsewhere"), has("168.63.129.16")},
	{"Amazon's over IPv6, as its own", serve, rules("AddressesElsewhere"), has("fd00:ec2::254")},
	{"loopback, as its own", serve, rules("AddressesElsewhere"), has("127.0.0.1")},
	{"loopback over IPv6, as its own", serve, rules("AddressesElsewhere"), has("::1")},
	{"every address, as its own", serve, rules("AddressesElsewhere"), has("0.0.0.0")},
	{"a link-local address, as its own", serve, rules("AddressesElsewhere"), has("fe80::1")},
	{"a multicast address, as its own", serve, rules("AddressesElsewhere"), has("224.0.0.1")},
}

// spare adds another cluster's DPU of the host's name, so that only its cluster speaks against it.
func spare(d *draft) {
	d.facts.DPUs = append(d.facts.DPUs, csr.DPU{Namespace: "another", Name: d.host, UID: "spare", OSInstalled: true})
}

func signedByAnother(t testing.TB) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signature, err := key.Sign(rand.Reader, make([]byte, 32), nil)
	if err != nil {
		t.Fatal(err)
	}
	return signature
}

func TestFiftyGoodOnesAreApproved(t *testing.T) {
	for number := range 25 {
		for _, kind := range []csr.Kind{csr.Bootstrap, csr.Serving} {
			d := good(t, kind, number)
			decision := csr.Decide(d.request(), d.facts)
			NewWithT(t).Expect(decision.Approve).To(BeTrue(), "%s of %s: %v", kind, d.host, refusals(decision))
		}
	}
}

func TestAForgeryIsNeverApproved(t *testing.T) {
	total := 0
	for _, f := range forgeries {
		t.Run(string(f.kind)+" "+f.name, func(t *testing.T) {
			g := NewWithT(t)
			hosts := 100
			if slices.Contains(f.breaks, "Key") {
				hosts = 10 // large keys sign slowly
			}
			for number := range hosts {
				for _, kind := range []csr.Kind{csr.Bootstrap, csr.Serving} {
					if f.kind != "" && f.kind != kind {
						continue
					}
					d := good(t, kind, number)
					f.change(d)
					decision := csr.Decide(d.request(), d.facts)
					total++
					g.Expect(decision.Approve).To(BeFalse(), "%s of %s is approved", kind, d.host)
					if f.breaks != nil {
						g.Expect(refusals(decision)).To(HaveLen(len(f.breaks)), "%v", refusals(decision))
						for _, rule := range f.breaks {
							g.Expect(refusals(decision)).To(HaveKey(rule))
						}
					}
				}
			}
		})
	}
	if total < 10_000 || len(forgeries) < 40 {
		t.Errorf("%d forgeries of %d kinds were tried, want ten thousand of forty", total, len(forgeries))
	}
}

// refusals maps each rule that did not pass to its reason.
func refusals(d csr.Decision) map[string]string {
	all := map[string]string{}
	for _, v := range d.Rules {
		if !v.Passed {
			all[v.Name] = v.Because
		}
	}
	return all
}

// TestEveryRuleIsNeeded finds for each rule a forgery that breaks it alone.
func TestEveryRuleIsNeeded(t *testing.T) {
	alone := map[string]bool{}
	for _, f := range forgeries {
		if len(f.breaks) == 1 {
			alone[f.breaks[0]] = true
		}
	}
	for _, kind := range []csr.Kind{csr.Bootstrap, csr.Serving} {
		d := good(t, kind, 1)
		for _, v := range csr.Decide(d.request(), d.facts).Rules {
			if !alone[v.Name] {
				t.Errorf("rule %s: no forgery breaks it alone", v.Name)
			}
		}
	}
}
