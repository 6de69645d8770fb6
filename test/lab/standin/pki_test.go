package standin

import (
	"bytes"
	"crypto/x509"
	"maps"
	"slices"
	"testing"
	"time"
)

func makeSecrets(t *testing.T, c Cluster, existing map[string]files) map[string]files {
	t.Helper()
	all, err := c.secrets(existing, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func leaf(t *testing.T, secret files) *x509.Certificate {
	t.Helper()
	cert, err := readCertificate(secret["tls.crt"])
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

// changed names the Secrets that differ.
func changed(before, after map[string]files) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if !maps.EqualFunc(before[name], after[name], bytes.Equal) {
			names = append(names, name)
		}
	}
	return names
}

func TestKeysAreKept(t *testing.T) {
	before := makeSecrets(t, testCluster, nil)
	if got := changed(before, makeSecrets(t, testCluster, before)); got != nil {
		t.Errorf("a second making changed %v", got)
	}
}

func TestANewIgnitionHostChangesOneCertificate(t *testing.T) {
	before := makeSecrets(t, testCluster, nil)
	moved := testCluster
	moved.IgnitionHost = "ignition.elsewhere.example.com"
	after := makeSecrets(t, moved, before)
	if got := changed(before, after); !slices.Equal(got, []string{"ignition-server-serving-cert"}) {
		t.Errorf("changed: %v", got)
	}
	cert := leaf(t, after["ignition-server-serving-cert"])
	if !slices.Equal(cert.DNSNames, []string{moved.IgnitionHost}) || len(cert.IPAddresses) != 0 {
		t.Errorf("the certificate is for %v %v, want exactly %s", cert.DNSNames, cert.IPAddresses, moved.IgnitionHost)
	}
}

func TestAForeignSignerIsNotTrusted(t *testing.T) {
	before := makeSecrets(t, testCluster, nil)
	other := makeSecrets(t, testCluster, nil)
	mixed := maps.Clone(before)
	mixed["oauth-server-crt"] = other["oauth-server-crt"]
	if got := changed(mixed, makeSecrets(t, testCluster, mixed)); !slices.Equal(got, []string{"oauth-server-crt"}) {
		t.Errorf("made anew: %v", got)
	}
}

func TestCertificatesAreGoodForWhatWorkersDial(t *testing.T) {
	for _, s := range Strategies() {
		c := published(s)
		all := makeSecrets(t, c, nil)
		for service, secret := range map[string]string{
			kubeAPIServer: "kas-server-crt", ignitionServerProxy: "ignition-server-serving-cert",
			oauthServer: "oauth-server-crt", konnectivityServer: "konnectivity-cluster",
		} {
			if err := leaf(t, all[secret]).VerifyHostname(c.host(service)); err != nil {
				t.Errorf("%s: %s under its published host: %v", s, service, err)
			}
		}
		trusted := x509.NewCertPool()
		trusted.AppendCertsFromPEM(bundle(all, ignitionCA))
		_, err := leaf(t, all["ignition-server-serving-cert"]).Verify(x509.VerifyOptions{Roots: trusted, DNSName: c.host(ignitionServerProxy)})
		if err != nil {
			t.Errorf("%s: ignition's certificate by the CA of the user data: %v", s, err)
		}
	}
}
