package cmd

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// certified makes a certificate for itself that holds from and until, counted from now.
func certified(t *testing.T, from, until time.Duration, names ...string) (pair tls.Certificate, certificate, key []byte) {
	t.Helper()
	g := NewWithT(t)
	made, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	g.Expect(err).NotTo(HaveOccurred())
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(from), NotAfter: time.Now().Add(until), DNSNames: names, IsCA: true, BasicConstraintsValid: true}
	if len(names) == 0 {
		template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &made.PublicKey, made)
	g.Expect(err).NotTo(HaveOccurred())
	raw, err := x509.MarshalPKCS8PrivateKey(made)
	g.Expect(err).NotTo(HaveOccurred())
	certificate, key = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw})
	pair, err = tls.X509KeyPair(certificate, key)
	g.Expect(err).NotTo(HaveOccurred())
	return pair, certificate, key
}

// serves answers 401, in TLS if that is given.
func serves(t *testing.T, with *tls.Config) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "Unauthorized", "reason": "Unauthorized", "code": 401}`)
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	if with == nil {
		server.Start()
	} else {
		server.TLS = with
		server.StartTLS()
	}
	t.Cleanup(server.Close)
	return server
}

// kubeconfigOf has a cluster and a user.
func kubeconfigOf(t *testing.T, cluster api.Cluster, user api.AuthInfo) (file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "kubeconfig")
	NewWithT(t).Expect(clientcmd.WriteToFile(api.Config{
		Clusters: map[string]*api.Cluster{"a": &cluster}, AuthInfos: map[string]*api.AuthInfo{"u": &user},
		Contexts: map[string]*api.Context{"a": {Cluster: "a", AuthInfo: "u"}}, CurrentContext: "a",
	}, file)).To(Succeed())
	return file
}

func statusWith(t *testing.T, kubeconfig string) error {
	t.Helper()
	root := Root()
	root.SetOut(io.Discard)
	root.SetErr(io.Discard)
	root.SetArgs([]string{"status", "c1", "--kubeconfig", kubeconfig})
	err := root.ExecuteContext(t.Context())
	NewWithT(t).Expect(ExitCode(err)).To(Equal(unusable))
	return err
}

// Why a connection fails is said in the words of the kubeconfig, without client-go's before it.
func TestAConnectionThatFailsIsExplained(t *testing.T) {
	pair, known, _ := certified(t, -time.Hour, time.Hour)
	expired, knownExpired, key := certified(t, -2*time.Hour, -time.Hour)
	early, knownEarly, _ := certified(t, time.Hour, 2*time.Hour)
	other, knownOther, _ := certified(t, -time.Hour, time.Hour, "api.example.com")
	of := func(pair tls.Certificate) *tls.Config { return &tls.Config{Certificates: []tls.Certificate{pair}} }
	plain, inTLS := serves(t, nil).URL, serves(t, of(pair)).URL
	strict := serves(t, &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: x509.NewCertPool()}).URL
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(gone.Close()).To(Succeed())
	nobody := "https://" + gone.Addr().String()
	stale := api.AuthInfo{ClientCertificateData: knownExpired, ClientKeyData: key}
	for name, c := range map[string]struct {
		cluster api.Cluster
		user    api.AuthInfo
		says    string
	}{
		"http to TLS":             {api.Cluster{Server: strings.Replace(inTLS, "https", "http", 1)}, api.AuthInfo{}, strings.Replace(inTLS, "https", "http", 1) + " speaks TLS, and was asked without: write https://"},
		"TLS to http":             {api.Cluster{Server: strings.Replace(plain, "http", "https", 1)}, api.AuthInfo{}, strings.Replace(plain, "http", "https", 1) + " does not answer in TLS: "},
		"nobody":                  {api.Cluster{Server: nobody}, api.AuthInfo{}, "nobody takes connections at " + nobody + ": "},
		"an unknown authority":    {api.Cluster{Server: inTLS}, api.AuthInfo{}, "the certificate of " + inTLS + " is of an authority that the kubeconfig does not name: "},
		"an expired certificate":  {api.Cluster{Server: serves(t, of(expired)).URL, CertificateAuthorityData: knownExpired}, api.AuthInfo{}, "have the certificate renewed, or set the clock"},
		"an early certificate":    {api.Cluster{Server: serves(t, of(early)).URL, CertificateAuthorityData: knownEarly}, api.AuthInfo{}, ": set the clock"},
		"another's certificate":   {api.Cluster{Server: serves(t, of(other)).URL, CertificateAuthorityData: knownOther}, api.AuthInfo{}, " is for other names (api.example.com): "},
		"an expired client":       {api.Cluster{Server: inTLS, CertificateAuthorityData: known}, stale, inTLS + " does not know you: your certificate in the kubeconfig expired at "},
		"an expired client's TLS": {api.Cluster{Server: strict, CertificateAuthorityData: known}, stale, strict + ` ended the connection with the TLS alert "expired certificate": your certificate in the kubeconfig expired at `},
		"no plugin": {api.Cluster{Server: inTLS, CertificateAuthorityData: known}, api.AuthInfo{Exec: &api.ExecConfig{APIVersion: "client.authentication.k8s.io/v1", Command: "no-such-plugin", InteractiveMode: "Never"}},
			"the kubeconfig has a plugin that gets credentials, and it failed: exec: executable no-such-plugin not found; install or mend it"},
		"a plugin of old": {api.Cluster{Server: inTLS, CertificateAuthorityData: known}, api.AuthInfo{Exec: &api.ExecConfig{APIVersion: "client.authentication.k8s.io/v1alpha1", Command: "x", InteractiveMode: "Never"}},
			" says of its user cannot be used: "},
		"no address": {api.Cluster{Server: "https://a b"}, api.AuthInfo{}, `finding the cluster: "https://a b" is no server's address: `},
		"no PEM":     {api.Cluster{Server: inTLS, CertificateAuthorityData: []byte("none")}, api.AuthInfo{}, "finding the cluster: the certificates that the kubeconfig "},
	} {
		t.Run(name, func(t *testing.T) {
			err := statusWith(t, kubeconfigOf(t, c.cluster, c.user))
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(c.says)))
			for _, words := range []string{"server groups", "Get \"", "x509", "\n"} {
				NewWithT(t).Expect(err.Error()).NotTo(ContainSubstring(words))
			}
		})
	}
}

// An API server that is asked without TLS, as kubectl proxy is, has its own refusals.
func TestARefusalIsReadToItsEnd(t *testing.T) {
	g := NewWithT(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, "the limit is reached")
	}))
	t.Cleanup(server.Close)
	client := &http.Client{Transport: naming{next: http.DefaultTransport, apiServer: server.URL}}
	answer, err := client.Get(server.URL)
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { answer.Body.Close() })
	g.Expect(io.ReadAll(answer.Body)).To(BeEquivalentTo("the limit is reached"))
}

// Who asks why gets the cause below the sentence.
func TestWhatIsExplainedKeepsItsCause(t *testing.T) {
	g := NewWithT(t)
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { silent.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	asks := func(ctx context.Context, until time.Time, url string) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		g.Expect(err).NotTo(HaveOccurred())
		answer, err := naming{next: http.DefaultTransport, apiServer: url, until: until}.RoundTrip(request)
		if err == nil {
			answer.Body.Close()
		}
		return err
	}
	g.Expect(asks(ctx, time.Time{}, "http://"+silent.Addr().String())).To(MatchError(context.DeadlineExceeded))
	g.Expect(asks(t.Context(), time.Now().Add(-time.Hour), serves(t, nil).URL)).To(MatchError(apierrors.IsUnauthorized, "IsUnauthorized"))
}

// What is wrong with a kubeconfig is said in its own words, not in those of Go.
func TestAKubeconfigThatCannotBeReadIsExplained(t *testing.T) {
	const begin = "apiVersion: v1\nkind: Config\n"
	for text, says := range map[string]string{
		"nonsense":                          " cannot be read: it has to begin with apiVersion: v1 and kind: Config; get a new one",
		"apiVersion: v1\nkind: Secret\n":    " cannot be read: it has to begin with apiVersion: v1 and kind: Config; get a new one",
		"apiVersion: v2\nkind: Config\n":    " cannot be read: it has to begin with apiVersion: v1 and kind: Config; get a new one",
		begin + "clusters: nonsense\n":      " cannot be read: clusters is text, and takes a list",
		begin + "current-context: {{ .c }}": " cannot be read: it is no YAML: line 3 has {{",
		begin + "clusters:\n\t- name: a\n":  " cannot be read: it is no YAML: line 4: found character that cannot start any token; get a new one",
		"\x7fELF\x00":                       " cannot be read: it is no text; get a new one",
		begin + "contexts: [{name: a}]\n":   " has no current context: choose one of a with --context",
		begin + "current-context: b\ncontexts: [{name: a}, {name: c}]\n":                         ` has no context "b": choose one of a, c`,
		begin + "current-context: a\ncontexts: [{name: a, context: {cluster: z}}]\n":             ` has no cluster "z", which its context a names`,
		begin + "clusters: [{name: a, cluster: {certificate-authority-data: '@', server: a}}]\n": " cannot be read: one of its fields whose names end in -data is not in base64, or was cut; get a new one",
	} {
		file := filepath.Join(t.TempDir(), "kubeconfig")
		NewWithT(t).Expect(os.WriteFile(file, []byte(text), 0o600)).To(Succeed())
		NewWithT(t).Expect(statusWith(t, file)).To(MatchError(HavePrefix("finding the cluster: the kubeconfig "+file+says)), text)
	}
}
