package standin

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"net"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var (
	powerOn = time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	worker1 = Machine{Name: "worker-1", Created: powerOn, Addresses: []string{"worker-1", "192.168.100.57"}}
)

// asks makes a request as a kubelet does.
type asks struct {
	user, node, group, signer string
	addresses                 []string
	after                     time.Duration
}

func (a asks) csr(t testing.TB) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	request := &x509.CertificateRequest{Subject: pkix.Name{CommonName: "system:node:" + a.node, Organization: []string{a.group}}}
	for _, address := range a.addresses {
		if ip := net.ParseIP(address); ip != nil {
			request.IPAddresses = append(request.IPAddresses, ip)
		} else {
			request.DNSNames = append(request.DNSNames, address)
		}
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, request, key)
	if err != nil {
		t.Fatal(err)
	}
	return &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(powerOn.Add(a.after))},
		Spec: certificatesv1.CertificateSigningRequestSpec{Username: a.user, SignerName: a.signer,
			Request: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})},
	}
}

const (
	toJoin  = certificatesv1.KubeAPIServerClientKubeletSignerName
	toServe = certificatesv1.KubeletServingSignerName
)

func TestApproverLetsInKnownMachinesAlone(t *testing.T) {
	node1 := "system:node:worker-1"
	for _, c := range []struct {
		name     string
		asks     asks
		machines []Machine
		nodes    []string
		refusal  string // empty: approved
	}{
		{"a new machine joins", asks{user: bootstrapper, node: "worker-1", group: "system:nodes", signer: toJoin}, []Machine{worker1}, nil, ""},
		{"no such machine", asks{user: bootstrapper, node: "worker-2", group: "system:nodes", signer: toJoin}, []Machine{worker1}, nil, "no machine has the name"},
		{"a name that is a machine's with a domain", asks{user: bootstrapper, node: "worker-1.example.com", group: "system:nodes", signer: toJoin}, []Machine{worker1}, nil, "no machine has the name"},
		{"somebody else asks", asks{user: "eve", node: "worker-1", group: "system:nodes", signer: toJoin}, []Machine{worker1}, nil, "not by the node bootstrapper"},
		{"the node is there", asks{user: bootstrapper, node: "worker-1", group: "system:nodes", signer: toJoin}, []Machine{worker1}, []string{"worker-1"}, "exists already"},
		{"the machine has a node", asks{user: bootstrapper, node: "worker-1", group: "system:nodes", signer: toJoin}, []Machine{{Name: "worker-1", Created: powerOn, HasNode: true, Addresses: worker1.Addresses}}, nil, "has its node"},
		{"too late", asks{user: bootstrapper, node: "worker-1", group: "system:nodes", signer: toJoin, after: 2*time.Hour + time.Second}, []Machine{worker1}, nil, "older than"},
		{"another group", asks{user: bootstrapper, node: "worker-1", group: "system:masters", signer: toJoin}, []Machine{worker1}, nil, "no node's"},
		{"no name", asks{user: bootstrapper, node: "", group: "system:nodes", signer: toJoin}, []Machine{worker1}, nil, "no node's"},
		{"another signer", asks{user: bootstrapper, node: "worker-1", group: "system:nodes", signer: "example.com/other"}, []Machine{worker1}, nil, "not a kubelet's"},
		{"a node serves under its addresses", asks{user: node1, node: "worker-1", group: "system:nodes", signer: toServe, addresses: []string{"worker-1", "192.168.100.57"}}, []Machine{worker1}, []string{"worker-1"}, ""},
		{"a node serves under a foreign address", asks{user: node1, node: "worker-1", group: "system:nodes", signer: toServe, addresses: []string{"192.168.100.58"}}, []Machine{worker1}, nil, "no address 192.168.100.58"},
		{"a node serves under another's name", asks{user: "system:node:worker-2", node: "worker-1", group: "system:nodes", signer: toServe, addresses: []string{"worker-1"}}, []Machine{worker1}, nil, "not by the node"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := approve(c.asks.csr(t), c.machines, c.nodes)
			switch {
			case c.refusal == "" && err != nil:
				t.Errorf("refused: %v", err)
			case c.refusal != "" && (err == nil || !strings.Contains(err.Error(), c.refusal)):
				t.Errorf("got %v, want a refusal because %q", err, c.refusal)
			}
		})
	}
}

func FuzzApproverOfAnyRequest(f *testing.F) {
	good := asks{user: bootstrapper, node: "worker-1", group: "system:nodes", signer: toJoin}.csr(f)
	f.Add(good.Spec.Request)
	f.Add([]byte("-----BEGIN CERTIFICATE REQUEST-----\nAA==\n-----END CERTIFICATE REQUEST-----\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		csr := good.DeepCopy()
		csr.Spec.Request = text
		if approve(csr, []Machine{worker1}, nil) != nil {
			return
		}
		request, err := parseRequest(text)
		if err != nil || request.Subject.CommonName != "system:node:worker-1" {
			t.Errorf("approved %q", text)
		}
	})
}
