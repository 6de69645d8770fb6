package guest_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"
	. "github.com/onsi/gomega"
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/internal/dpf"
	"github.com/cldmnky/oooi/internal/guest/appsingress"
	"github.com/cldmnky/oooi/internal/guest/kubeconfig"
	"github.com/cldmnky/oooi/internal/metallb"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/observe"
	"github.com/cldmnky/oooi/internal/plan/bridge"
	"github.com/cldmnky/oooi/internal/plan/input"
	"github.com/cldmnky/oooi/internal/testkit/ports"
	"github.com/cldmnky/oooi/internal/testkit/slowkey"
	"github.com/cldmnky/oooi/internal/unroutable"
)

// good is a kubeconfig that is accepted. Capitals are placeholders that a test fills in.
const good = `apiVersion: v1
kind: Config
preferences: {}
current-context: admin
clusters:
- name: guest
  cluster:
    server: https://api.c1.example.com:6443
    certificate-authority-data: CADATA
contexts:
- name: admin
  context: {cluster: guest, user: admin, namespace: default}
users:
- name: admin
  user:
    client-certificate-data: CERTDATA
    client-key-data: KEYDATA
`

const (
	certAndKey = "    client-certificate-data: CERTDATA\n    client-key-data: KEYDATA\n"
	caData     = "    certificate-authority-data: CADATA\n"
	server     = "https://api.c1.example.com:6443"
)

// hostile is a change of good, and the rule that refuses it.
type hostile struct{ name, rule, old, changed string }

func (h hostile) text() string { return strings.Replace(good, h.old, h.changed, 1) }

var corpus = append([]hostile{
	{"exec", "NoCommand", certAndKey, "    exec: {apiVersion: client.authentication.k8s.io/v1, command: DIR/run, interactiveMode: Never, env: [{name: S, value: SECRET}]}\n"},
	{"exec of an old version", "NoCommand", certAndKey, certAndKey + "    exec: {apiVersion: client.authentication.k8s.io/v1alpha1, command: DIR/run, args: [SECRET]}\n"},
	{"exec without a command", "NoCommand", certAndKey, certAndKey + "    exec: {}\n"},
	{"exec that is text", "NoCommand", certAndKey, certAndKey + "    exec: DIR/run\n"},
	{"exec in capitals", "NoCommand", certAndKey, certAndKey + "    EXEC: {command: DIR/run}\n"},
	{"exec of a user that is not used", "NoCommand", "users:\n", "users:\n- name: other\n  user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: DIR/run}}\n"},
	{"exec through a merge key", "NoCommand", certAndKey, certAndKey + "    <<: {exec: {command: DIR/run}}\n"},
	{"auth-provider", "NoAuthProvider", certAndKey, "    auth-provider: {name: gcp, config: {cmd-path: DIR/run, access-token: SECRET}}\n"},
	{"auth-provider without a name", "NoAuthProvider", certAndKey, certAndKey + "    auth-provider: {}\n"},
	{"token from a file", "NoUserFiles", certAndKey, "    tokenFile: DIR/token\n"},
	{"token from a file and inline", "NoUserFiles", certAndKey, "    token: SECRET\n    tokenFile: DIR/token\n"},
	{"token of our own account", "NoUserFiles", certAndKey, "    tokenFile: /var/run/secrets/kubernetes.io/serviceaccount/token\n"},
	{"certificate from a file", "NoUserFiles", "client-certificate-data: CERTDATA", "client-certificate: DIR/token"},
	{"key from a file", "NoUserFiles", "client-key-data: KEYDATA", "client-key: DIR/token"},
	{"key from a relative path", "NoUserFiles", "client-key-data: KEYDATA", "client-key: ../../../../DIR/token"},
	{"CA from a file", "NoCAFile", caData, "    certificate-authority: DIR/token\n"},
	{"CA from a file and inline", "NoCAFile", caData, caData + "    certificate-authority: DIR/token\n"},
	{"proxy", "NoProxy", caData, caData + "    proxy-url: http://user:SECRET@127.0.0.1:PORT\n"},
	{"SOCKS proxy", "NoProxy", caData, caData + "    proxy-url: socks5://127.0.0.1:PORT\n"},
	{"proxy of a cluster that is not used", "NoProxy", "clusters:\n", "clusters:\n- name: other\n  cluster: {server: " + server + ", proxy-url: 'http://127.0.0.1:PORT'}\n"},
	{"insecure TLS", "VerifiesTLS", caData, "    insecure-skip-tls-verify: true\n"},
	{"insecure TLS beside a CA", "VerifiesTLS", caData, caData + "    insecure-skip-tls-verify: yes\n"},
	{"another server's name", "VerifiesItsName", caData, caData + "    tls-server-name: evil.example.com\n"},
	{"impersonates a user", "NoImpersonation", certAndKey, certAndKey + "    as: system:admin\n"},
	{"impersonates groups", "NoImpersonation", certAndKey, certAndKey + "    as-groups: ['system:masters']\n"},
	{"impersonates a UID", "NoImpersonation", certAndKey, certAndKey + "    as-uid: '0'\n"},
	{"impersonates extras", "NoImpersonation", certAndKey, certAndKey + "    as-user-extra: {scopes: [SECRET]}\n"},
	{"password", "NoPassword", certAndKey, "    username: admin\n    password: SECRET\n"},
	{"user name only", "NoPassword", certAndKey, certAndKey + "    username: SECRET\n"},
	{"no credentials", "CredentialsGiven", certAndKey, "    {}\n"},
	{"no user at all", "CredentialsGiven", "  user:\n" + certAndKey, ""},
	{"certificate without its key", "CredentialsGiven", "    client-key-data: KEYDATA\n", ""},
	{"key without its certificate", "CredentialsGiven", "    client-certificate-data: CERTDATA\n", ""},
	{"key of another", "KeyFits", "KEYDATA", "OTHERKEY"},
	{"certificate that is none", "KeyFits", "CERTDATA", base64.StdEncoding.EncodeToString([]byte("SECRET"))},
	{"certificate with a key in it", "KeyFits", "CERTDATA", "CERTKEYDATA"},
	{"key that takes a minute to parse", "KeyNotTooLarge", "KEYDATA", "HUGERSA"},
	{"key that takes a second to parse", "KeyNotTooLarge", "KEYDATA", "WIDERSA"},
	{"key with primes as large as its modulus may be", "KeyNotTooLarge", "KEYDATA", "EVENRSA"},
	{"key that takes days to parse", "NotTooLarge", "KEYDATA", "ENDLESSRSA"},
	{"key that takes long within PKCS #8", "KeyNotTooLarge", "KEYDATA", "WRAPPEDRSA"},
	{"key that takes long after a good one", "KeyNotTooLarge", "KEYDATA", "SECONDRSA"},
	{"token with a header in it", "TokenIsOneWord", certAndKey, "    token: \"SECRET\\r\\nImpersonate-User: system:admin\"\n"},
	{"token of two words", "TokenIsOneWord", certAndKey, "    token: SECRET and more\n"},
	{"token of other letters", "TokenIsOneWord", certAndKey, "    token: SECRETé\n"},
	{"no CA", "CAGiven", caData, ""},
	{"empty CA", "CAGiven", "CADATA", "''"},
	{"CA that is no certificate", "CAGiven", "CADATA", base64.StdEncoding.EncodeToString([]byte("SECRET"))},
	{"CA that is a key", "CAGiven", "CADATA", "KEYDATA"},
	{"CA with a key in it", "CAGiven", "CADATA", "CERTKEYDATA"},
	{"CA with a certificate that is none", "CAGiven", "CADATA", "FALSECERT"},
	{"CA whose signatures take long to verify", "CAGiven", "CADATA", "HUGECA"},
	{"CA that is not base64", "OnlyKnownFields", "CADATA", "'SECRET !'"},
	{"no current context", "OneContext", "current-context: admin\n", ""},
	{"current context that is not there", "OneContext", "current-context: admin", "current-context: SECRET"},
	{"context of no cluster", "OneContext", "cluster: guest, user", "cluster: SECRET, user"},
	{"context of no user", "OneContext", "user: admin,", "user: SECRET,"},
	{"two contexts of one name", "OneContext", "contexts:\n", "contexts:\n- {name: admin, context: {cluster: guest, user: other}}\n"},
	{"two clusters of one name", "OneContext", "clusters:\n", "clusters:\n- {name: guest, cluster: {server: 'https://evil.example.com'}}\n"},
	{"two users of one name", "OneContext", "users:\n", "users:\n- {name: admin, user: {token: SECRET}}\n"},
	{"another kind", "IsKubeconfig", "kind: Config", "kind: List"},
	{"another version", "IsKubeconfig", "apiVersion: v1", "apiVersion: v2"},
	{"unknown field", "OnlyKnownFields", certAndKey, certAndKey + "    SECRET: true\n"},
	{"field given twice", "OnlyKnownFields", certAndKey, certAndKey + "    token: SECRET\n    token: SECRET2\n"},
	{"not YAML", "OnlyKnownFields", good, "{SECRET"},
	{"a list", "OnlyKnownFields", good, "[SECRET]"},
	{"a word", "OnlyKnownFields", good, "SECRET"},
	{"bytes", "IsUTF8", good, "\x00\xff\xfe\x01"},
	{"UTF-16", "IsUTF8", good, "\xff\xfe[\x00"},
	{"tabs", "OnlyKnownFields", "  context: {", "\tcontext: {"},
	{"a tag of another language", "OnlyKnownFields", "current-context: admin", "current-context: !!python/object/apply:os.system [DIR/run]"},
	{"deep nesting", "FewLevels", good, strings.Repeat("[", 60_000)},
	{"lists as deep as YAML has them", "FewLevels", good, strings.Repeat("[", 9_000) + strings.Repeat("]", 9_000)},
	{"maps as deep as YAML has them", "FewLevels", good, strings.Repeat("{a: ", 9_000) + strings.Repeat("}", 9_000)},
	{"lists of one line without brackets", "FewLevels", good, strings.Repeat("- ", 9_000)},
	{"keys of one line without brackets", "FewLevels", good, strings.Repeat("? ", 9_000)},
	{"lines that end otherwise", "FewParts", good, strings.Repeat("a:\r", 20_000)[:60_000]},
	{"lines that end as no other file's", "FewParts", good, strings.Repeat("-\u0085-\u2028-\u2029", 5_000)},
	{"nothing", "IsKubeconfig", good, ""},
	{"two documents", "OneDocument", good, good + "---\n" + good},
	{"as many users as there is room for", "FewParts", "users:\n", "users: [" + strings.Repeat("{},", 20_000) + "{}]\nusers2:\n"},
	{"an endless name", "NotTooLarge", "name: admin\n", "name: " + strings.Repeat("a", 70_000) + "\n"},
	{"larger than any", "NotTooLarge", good, good + "# " + strings.Repeat("SECRET", 12_000)},
	{"aliases of aliases", "NoAnchors", good, "a: &a [x,x,x,x]\nb: &b [*a,*a,*a,*a]\nc: [*b,*b,*b,*b]\n"},
	{"aliases of one long text", "NoAnchors", good, "a: &a " + strings.Repeat("SECRET", 100) + "\nb: [" + strings.Repeat("*a,", 20_000) + "]\n"},
}, servers()...)

// servers are those that a rule refuses: this machine, its link, metadata services, and what is not https://HOST:PORT.
func servers() (all []hostile) {
	for rule, refused := range map[string][]string{
		"ServerElsewhere": {
			"https://127.0.0.1:PORT", "https://127.8.9.10:PORT", "https://localhost:PORT", "https://LocalHost.:PORT", "https://x.localhost:PORT", "https://localhost.localdomain:PORT",
			"https://ip6-loopback:PORT", "https://2130706433:PORT", "https://0x7f000001:PORT", "https://0x7f.1:PORT", "https://0177.0.0.1:PORT", "https://017700000001:PORT", "https://127.1:PORT",
			"https://0.0.0.0:PORT", "https://0:PORT", "https://[::]:PORT", "https://[::1]:PORT", "https://[::ffff:127.0.0.1]:PORT", "https://[::ffff:7f00:1]:PORT", "https://[::7f00:1]:PORT",
			"https://[64:ff9b::7f00:1]:PORT", "https://[2002:7f00:1::]:PORT", "https://[fe80::1]:PORT", "https://[fe80::1%25lo]:PORT", "https://[fd00::1%25lo]:PORT",
			"https://169.254.169.254", "https://169.254.1.1:PORT", "https://2852039166", "https://[::ffff:169.254.169.254]", "https://[fd00:ec2::254]", "https://100.100.100.200",
			"https://168.63.129.16", "https://metadata.google.internal", "https://metadata", "https://255.255.255.255", "https://224.0.0.1", "https://[ff02::1]",
			"https://[fd00:ec2::23]", "https://[fd20:ce::254]", "https://[fd00:42::42]", "https://metadata.goog", "https://[::ffff:0:169.254.169.254]",
		},
		"ServerIsHTTPS": {
			"http://api.c1.example.com:6443", "http://127.0.0.1:PORT", "''", "api.c1.example.com:6443", "unix:///DIR/token", "file:///DIR/token", "https://", "https://:6443",
			"https://api.c1.example.com:6443@127.0.0.1:PORT", "https://SECRET@api.c1.example.com", "https://api.c1.example.com:0", "https://api.c1.example.com:65536", "'https://api.c1.example.com:'",
			"https://api.c1.example.com/../x", "https://api.c1.example.com?x=SECRET", "https://api.c1.example.com#x", "https://127.0.0.1%00.example.com", "https://127。0。0。1:PORT", "https://[::1:PORT",
			"https://api_c1.example.com", "https://%6cocalhost:PORT", "https:api.c1.example.com",
		},
	} {
		for _, s := range refused {
			all = append(all, hostile{s, rule, server, s})
		}
	}
	return all
}

// canaries sing if somebody runs, opens or connects to what a kubeconfig names.
type canaries struct {
	dir, port string
	inotify   int
	mu        sync.Mutex
	callers   []string
}

func newCanaries(t *testing.T) *canaries {
	t.Helper()
	c := &canaries{dir: t.TempDir()}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.WriteFile(filepath.Join(c.dir, "run"), []byte("#!/bin/sh\ntouch "+c.dir+"/ran\necho '{}'\n"), 0o700))
	must(os.WriteFile(filepath.Join(c.dir, "token"), []byte("a-token-of-ours"), 0o600))
	var err error
	c.inotify, err = unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	must(err)
	t.Cleanup(func() { unix.Close(c.inotify) })
	_, err = unix.InotifyAddWatch(c.inotify, c.dir, unix.IN_OPEN|unix.IN_CREATE)
	must(err)
	c.port = strconv.Itoa(int(ports.Free(t)))
	here, err := net.Listen("tcp4", "127.0.0.1:"+c.port)
	must(err)
	there, err := net.Listen("tcp6", "[::1]:"+c.port)
	must(err)
	for _, l := range []net.Listener{here, there} {
		go c.listen(l)
		t.Cleanup(func() { l.Close() })
	}
	return c
}

func (c *canaries) listen(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		c.mu.Lock()
		c.callers = append(c.callers, conn.RemoteAddr().String())
		c.mu.Unlock()
		conn.Close()
	}
}

// sang says what was run, opened or called.
func (c *canaries) sang() (what []string) {
	events := make([]byte, 4096)
	if n, _ := unix.Read(c.inotify, events); n > 0 {
		what = append(what, "a file was opened or made")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	what, c.callers = append(what, c.callers...), nil
	return what
}

const secret = "s3cr3t-0f-th1s-k4b3c0nf1g"

// fill fills in the placeholders of a text of the corpus, and returns its secrets.
func fill(t testing.TB, text string, c *canaries) (filled string, secrets []string) {
	t.Helper()
	of := func(pem []byte) string { return base64.StdEncoding.EncodeToString(pem) }
	cert, key := identity()
	_, other := otherIdentity()
	filled = strings.NewReplacer(append([]string{
		"CERTKEYDATA", of(append(append([]byte{}, cert...), key...)), "CADATA", of(cert), "CERTDATA", of(cert), "KEYDATA", of(key), "OTHERKEY", of(other),
		"SECONDRSA", of(append(append([]byte{}, key...), slowkey.PEM(5_000)...)), "HUGECA", of(hugeCA()), "RSACERT", of(rsaIdentity().certificate), "RSAKEY", of(rsaIdentity().key),
		"FALSECERT", of([]byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")), "SECRET", secret, "DIR", c.dir, "PORT", c.port,
	}, slowKeys()...)...,
	).Replace(text)
	return filled, []string{secret, of(key), of(cert)[:40], string(key), c.dir, "a-token-of-ours", of([]byte(secret))}
}

// identity is a self-signed CA certificate with its key, as PEM; otherIdentity is another.
var identity, otherIdentity = sync.OnceValues(newIdentity), sync.OnceValues(newIdentity)

func newIdentity() (certificate, key []byte) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	text, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		panic(err)
	}
	return certificateOf(private.Public(), private), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: text})
}

func certificateOf(public any, by crypto.Signer) []byte {
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "admin"}, NotAfter: time.Now().Add(time.Hour), IsCA: true}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, public, by)
	if err != nil {
		panic(err)
	}
	return pemOf(raw)
}

// slowKeys are pairs of a placeholder in the corpus and its key.
var slowKeys = sync.OnceValue(func() []string {
	of := func(pem []byte) string { return base64.StdEncoding.EncodeToString(pem) }
	return []string{
		"HUGERSA", of(slowkey.PEM(32_768)), "WIDERSA", of(slowkey.PEM(5_000)), "EVENRSA", of(slowkey.PEM(4_096)),
		"ENDLESSRSA", of(slowkey.PEM(1 << 20)), // 256 KiB
		"WRAPPEDRSA", of(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8(slowkey.DER(5_000))})),
	}
})

func pkcs8(pkcs1 []byte) []byte {
	der, err := asn1.Marshal(struct {
		Version   int
		Algorithm pkix.AlgorithmIdentifier
		Key       []byte
	}{Algorithm: pkix.AlgorithmIdentifier{Algorithm: asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 1, 1}, Parameters: asn1.NullRawValue}, Key: pkcs1})
	if err != nil {
		panic(err)
	}
	return der
}

func keyPEM(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: der})
}

// hugeCA has an RSA key of 16,384 bits.
var hugeCA = sync.OnceValue(func() []byte {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	modulus := new(big.Int).Add(new(big.Int).Lsh(big.NewInt(1), 16_383), big.NewInt(1))
	return certificateOf(&rsa.PublicKey{N: modulus, E: 65537}, private)
})

// rsaIdentity is what HyperShift writes: an RSA key of 2048 bits in PKCS #1.
var rsaIdentity = sync.OnceValue(func() pair { return newRSA(2048) })

type pair struct{ certificate, key []byte }

func newRSA(bits int) pair {
	private, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		panic(err)
	}
	return pair{certificateOf(private.Public(), private), keyPEM(x509.MarshalPKCS1PrivateKey(private))}
}

func TestAHostileKubeconfigIsRefusedByItsRule(t *testing.T) {
	c := newCanaries(t)
	for _, h := range corpus {
		t.Run(h.name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(h.text()).NotTo(Equal(good), "the text to change is not there")
			text, secrets := fill(t, h.text(), c)
			access, refusal := kubeconfig.Sanitise([]byte(text))
			g.Expect(refusal).NotTo(BeNil())
			g.Expect(refusal.Rule).To(Equal(h.rule))
			g.Expect(access).To(BeZero())
			for _, s := range secrets {
				g.Expect(refusal.Because).NotTo(ContainSubstring(s))
			}
		})
	}
	NewWithT(t).Expect(c.sang()).To(BeEmpty())
}

// costsAtMost is the processor time that a kubeconfig may cost, because somebody may write one again and again.
const costsAtMost = 50 * time.Millisecond

func TestAHostileKubeconfigCostsLittle(t *testing.T) {
	c := &canaries{dir: "/nowhere", port: "1"}
	for _, h := range corpus {
		text, _ := fill(t, h.text(), c)
		cost := time.Hour
		for range 3 { // garbage collection may run during one
			cost = min(cost, costOf(func() { _, _ = kubeconfig.Sanitise([]byte(text)) }))
		}
		if cost > costsAtMost {
			t.Errorf("%s costs %s", h.name, cost)
		}
	}
}

// costOf is the processor time of a function, however busy the machine is.
func costOf(f func()) time.Duration {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before := ofThread()
	f()
	return ofThread() - before
}

func ofThread() time.Duration {
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_THREAD, &used); err != nil {
		panic(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// BenchmarkAHostileKubeconfig measures how long it takes to refuse the slowest of the corpus.
func BenchmarkAHostileKubeconfig(b *testing.B) {
	c := &canaries{dir: "/nowhere", port: "1"}
	var slowest time.Duration
	var which string
	for b.Loop() {
		for _, h := range corpus {
			text, _ := fill(b, h.text(), c)
			begun := time.Now()
			_, _ = kubeconfig.Sanitise([]byte(text))
			if took := time.Since(begun); took > slowest {
				slowest, which = took, h.name
			}
		}
	}
	b.ReportMetric(float64(slowest.Microseconds())/1000, "ms-slowest")
	b.Logf("the slowest: %s", which)
}

func TestAHostileKubeconfigDoesNothingAndTellsNothing(t *testing.T) {
	w, c := newWorld(t, "LoadBalancer"), newCanaries(t)
	w.clusters.Dial = func(_ context.Context, _, address string) (net.Conn, error) {
		t.Errorf("%s was dialled", address)
		return nil, net.ErrClosed
	}
	w.clusters.LookEvery = 0
	w.Expect(len(corpus)).To(BeNumerically(">=", 60))
	for _, h := range corpus {
		t.Run(h.name, func(t *testing.T) {
			g := NewWithT(t)
			text, secrets := fill(t, h.text(), c)
			w.hasKubeconfig([]byte(text))
			seen := w.eventually("the refusal", troubled(input.GuestKubeconfig))
			g.Expect(seen.Problem.Message).To(HavePrefix("the kubeconfig in Secret " + w.want.Secret.String() + " is not used (" + h.rule + "): "))
			for _, s := range secrets {
				g.Expect(seen.Problem.Message).NotTo(ContainSubstring(s))
			}
			g.Expect(c.sang()).To(BeEmpty())
			w.Expect(w.kube.CoreV1().Secrets(w.infra.Namespace).Delete(w.ctx, w.want.Secret.Name, metav1.DeleteOptions{})).To(Succeed())
			w.eventually("that it is gone", troubled(input.GuestWaiting))
		})
	}
	w.Expect(filepath.Join(c.dir, "ran")).NotTo(BeAnExistingFile())
}

// Sanitise judges a name by its text, but it may resolve to any address: that is judged when it is dialled. And of a hosted cluster, only
// the Service that we want is ever dialled.
func TestANameOfAHostileKubeconfigThatLeadsHereIsNotDialled(t *testing.T) {
	w := newWorld(t, "LoadBalancer")
	dialled := make(chan string, 100)
	w.clusters.Dial = func(_ context.Context, _, address string) (net.Conn, error) {
		dialled <- address
		return nil, net.ErrClosed
	}
	asked := resolves(t, map[string]string{"link.example.com.": "169.254.1.1", "cloud.example.com.": "100.100.100.200"})
	for _, host := range []string{"link.example.com:6443", "cloud.example.com:80"} {
		text, _ := fill(t, strings.Replace(good, server, "https://"+host, 1), &canaries{})
		access, refusal := kubeconfig.Sanitise([]byte(text))
		w.Expect(refusal).To(BeNil())
		soon, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		_, err := appsingress.NewClusters(nil, nil).Dial(soon, "tcp", strings.TrimPrefix(access.Server, "https://"))
		cancel()
		w.Expect(err).To(MatchError(unroutable.ErrUnroutable), host)
		w.Expect(asked).To(Receive(), "it was resolved")

		w.hasKubeconfig([]byte(text))
		w.see()
		w.Eventually(dialled).Should(Receive(Equal(w.wire.address())))
		w.Expect(w.kube.CoreV1().Secrets(w.infra.Namespace).Delete(w.ctx, w.want.Secret.Name, metav1.DeleteOptions{})).To(Succeed())
		w.eventually("that it is gone", troubled(input.GuestWaiting))
	}
	for len(dialled) > 0 {
		w.Expect(<-dialled).To(Equal(w.wire.address()))
	}
}

// resolves names to addresses for this process, and returns the queries.
func resolves(t *testing.T, addresses map[string]string) <-chan string {
	t.Helper()
	listener, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	asked, before := make(chan string, 100), net.DefaultResolver
	server := &dns.Server{PacketConn: listener, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, r *dns.Msg) {
		answer, question := new(dns.Msg).SetReply(r), r.Question[0]
		if address := addresses[question.Name]; address != "" && question.Qtype == dns.TypeA {
			asked <- question.Name
			answer.Answer = []dns.RR{&dns.A{Hdr: dns.RR_Header{Name: question.Name, Rrtype: dns.TypeA, Class: dns.ClassINET}, A: net.ParseIP(address)}}
		}
		_ = w.WriteMsg(answer)
	})}
	go server.ActivateAndServe()
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", listener.LocalAddr().String())
	}}
	t.Cleanup(func() { net.DefaultResolver = before; listener.Close() })
	return asked
}

// The same rules refuse a kubeconfig that a bridge would pass to DPF.
func TestAHostileKubeconfigIsHandedToNobody(t *testing.T) {
	g, scheme, c := NewWithT(t), kruntime.NewScheme(), newCanaries(t)
	for _, add := range []func(*kruntime.Scheme) error{clientgoscheme.AddToScheme, dpuv1.AddToScheme, hyperv1.AddToScheme, dpf.AddToScheme, metallb.AddToScheme} {
		g.Expect(add(scheme)).To(Succeed())
	}
	of := metav1.ObjectMeta{Namespace: "clusters", Name: "b1", Labels: map[string]string{
		names.LabelManagedBy: names.ManagedBy, names.LabelBridge: "b1", names.LabelBridgeNamespace: "clusters", names.LabelOwnerUID: "u1",
	}}
	from := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "b1-admin-kubeconfig"}}
	hosted := &hyperv1.HostedCluster{ObjectMeta: of, Status: hyperv1.HostedClusterStatus{KubeConfig: &corev1.LocalObjectReference{Name: from.Name}}}
	live := fake.NewClientBuilder().WithScheme(scheme).WithObjects(hosted, from).Build()
	bridges := observe.Bridges{Observer: &observe.Observer{Reader: fake.NewClientBuilder().WithScheme(scheme).Build(), Live: live}}
	b1 := &dpuv1.DPUHCPBridge{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "b1", UID: "u1"}}
	handed := func(text string) bridge.Kubeconfig {
		from.Data = map[string][]byte{kubeconfig.SecretKey: []byte(text)}
		g.Expect(live.Update(t.Context(), from)).To(Succeed())
		remains, err := bridges.Remains(t.Context(), observe.Bridge{Input: bridge.Input{Bridge: b1, Exists: func(types.UID) bool { return false }}})
		g.Expect(err).NotTo(HaveOccurred())
		return remains.Kubeconfig
	}
	text, _ := fill(t, good, c)
	g.Expect(handed(text).Content).NotTo(BeEmpty())
	for _, h := range corpus {
		text, _ := fill(t, h.text(), c)
		k := handed(text)
		g.Expect(k.Refused).To(Equal(h.rule), h.name)
		g.Expect(k.Content).To(BeEmpty(), h.name)
	}
	g.Expect(c.sang()).To(BeEmpty())
}

// A watch does not report what was deleted before it.
func TestAKubeconfigThatGoesBeforeItIsWatchedIsGone(t *testing.T) {
	w := newWorld(t, "LoadBalancer")
	w.leave()
	asked := rest.CopyConfig(cluster.Admin)
	asked.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return transport(func(r *http.Request) (*http.Response, error) {
			if r.URL.Query().Has("watch") {
				err := w.kube.CoreV1().Secrets(w.infra.Namespace).Delete(w.ctx, w.want.Secret.Name, metav1.DeleteOptions{})
				if err != nil && !apierrors.IsNotFound(err) {
					t.Error(err)
				}
			}
			return next.RoundTrip(r)
		})
	})
	kube, err := kubernetes.NewForConfig(asked)
	w.Expect(err).NotTo(HaveOccurred())
	w.hasKubeconfig([]byte("none"))
	w.start(kube)
	w.eventually("that it is gone", troubled(input.GuestWaiting))
}

// transport is a function that answers requests.
type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestAGoodKubeconfigIsUsed(t *testing.T) {
	c := newCanaries(t)
	for name, change := range map[string]hostile{
		"as it is":                     {},
		"with an RSA key":              {old: certAndKey, changed: "    client-certificate-data: RSACERT\n    client-key-data: RSAKEY\n"},
		"with a token":                 {old: certAndKey, changed: "    token: SECRET\n"},
		"with all of nothing":          {old: certAndKey, changed: certAndKey + "    exec: null\n    tokenFile: ''\n    as-groups: []\n"},
		"of a server without a port":   {old: server, changed: "https://api.c1.example.com"},
		"of a server with a slash":     {old: server, changed: server + "/"},
		"of an address":                {old: server, changed: "https://192.168.100.5:6443"},
		"of an IPv6 address":           {old: server, changed: "https://[fd00::5]:6443"},
		"with an extension":            {old: caData, changed: caData + "    extensions: [{name: x, extension: {y: z}}]\n"},
		"with a second context":        {old: "contexts:\n", changed: "contexts:\n- {name: other, context: {cluster: guest, user: admin}}\n"},
		"that begins with a separator": {old: "apiVersion", changed: "---\napiVersion"},
	} {
		t.Run(name, func(t *testing.T) {
			text, _ := fill(t, change.text(), c)
			access, refusal := kubeconfig.Sanitise([]byte(text))
			g := NewWithT(t)
			g.Expect(refusal).To(BeNil())
			g.Expect(access.CA).To(Equal(first(identity())))
			g.Expect(access.Token + string(access.Key)).NotTo(BeEmpty())
		})
	}
}

func TestTheLargestKeyIsUsed(t *testing.T) {
	g, largest := NewWithT(t), newRSA(4096)
	der, _ := pem.Decode(largest.key)
	for _, key := range [][]byte{largest.key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8(der.Bytes)})} {
		of := base64.StdEncoding.EncodeToString
		ca, _ := identity()
		text := strings.NewReplacer("CADATA", of(ca), "CERTDATA", of(largest.certificate), "KEYDATA", of(key)).Replace(good)
		access, refusal := kubeconfig.Sanitise([]byte(text))
		g.Expect(refusal).To(BeNil())
		g.Expect(access.Key).To(Equal(key))
	}
}

func first(certificate, _ []byte) []byte { return certificate }

// Without this, the test above would pass although no canary can sing.
func TestTheCanariesSingForClientGo(t *testing.T) {
	w, c := NewWithT(t), newCanaries(t)
	for _, name := range []string{"exec", "token from a file", "proxy", "https://127.0.0.1:PORT", "https://[::1]:PORT"} {
		for _, h := range corpus {
			if h.name != name {
				continue
			}
			text, _ := fill(t, h.text(), c)
			config, err := clientcmd.RESTConfigFromKubeConfig([]byte(text))
			w.Expect(err).NotTo(HaveOccurred())
			config.Timeout = time.Second
			kube, err := kubernetes.NewForConfig(config)
			if err == nil {
				_, err = kube.CoreV1().Nodes().Get(t.Context(), "x", metav1.GetOptions{})
			}
			w.Expect(err).To(HaveOccurred())
			w.Eventually(c.sang, 2*time.Second).ShouldNot(BeEmpty(), name)
		}
	}
}

func TestTheServerThatIsWantedIsDialledByNoProxy(t *testing.T) {
	w := newWorld(t, "LoadBalancer")
	w.want.Server = "https://kube-apiserver.clusters-c1.svc:6443"
	dialled, first := make(chan string, 1), make(chan byte, 1)
	w.clusters.Dial = func(_ context.Context, _, address string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go func() {
			hello := make([]byte, 1)
			theirs.Read(hello)
			dialled <- address
			first <- hello[0]
			theirs.Close()
		}()
		return ours, nil
	}
	w.hasKubeconfig(w.kubeconfig())
	w.see()
	w.Eventually(dialled).Should(Receive(Equal("kube-apiserver.clusters-c1.svc:6443")))
	w.Expect(<-first).To(Equal(byte(0x16)), "a TLS handshake (RFC 8446 §5.1), not a proxy's CONNECT")
}

func FuzzSanitise(f *testing.F) {
	c := &canaries{dir: "/nowhere", port: "1"}
	for _, h := range append([]hostile{{}}, corpus...) { // the first changes nothing: it is accepted
		if text, _ := fill(f, h.text(), c); len(text) < 8192 {
			f.Add([]byte(text))
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		access, refusal := kubeconfig.Sanitise(text)
		if refusal == nil {
			if !strings.HasPrefix(access.Server, "https://") || len(access.CA) == 0 || access.Token == "" && (len(access.Key) == 0 || len(access.Certificate) == 0) {
				t.Fatalf("used, though it is not whole: %+v", access)
			}
			return
		}
		said, err := json.Marshal(refusal)
		if err != nil || refusal.Rule == "" || refusal.Because == "" || len(said) > 300 {
			t.Fatalf("refused with %s, %v", said, err)
		}
	})
}
