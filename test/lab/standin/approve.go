package standin

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"slices"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
)

// Machine is what the machine approver knows about a machine.
type Machine struct {
	Name      string
	Created   time.Time
	HasNode   bool
	Addresses []string // names and IPs
	Healthy   string   // the status of NodeHealthy
}

// approve decides about a kubelet's request by the machine approver's rules: nil means yes, an error says why not. The reason may pass (a
// machine gets its addresses later), so a no is not final.
func approve(csr *certificatesv1.CertificateSigningRequest, machines []Machine, nodes []string) error {
	request, err := parseRequest(csr.Spec.Request)
	if err != nil {
		return err
	}
	node, isNode := strings.CutPrefix(request.Subject.CommonName, "system:node:")
	if !isNode || node == "" || !slices.Equal(request.Subject.Organization, []string{"system:nodes"}) {
		return fmt.Errorf("the subject %q is no node's", request.Subject)
	}
	at := slices.IndexFunc(machines, func(m Machine) bool { return slices.Contains(m.Addresses, node) })
	if at < 0 {
		return fmt.Errorf("no machine has the name %q", node)
	}
	switch csr.Spec.SignerName {
	case certificatesv1.KubeAPIServerClientKubeletSignerName:
		return approveClient(csr, machines[at], slices.Contains(nodes, node))
	case certificatesv1.KubeletServingSignerName:
		return approveServing(csr, request, node, machines[at])
	}
	return fmt.Errorf("the signer %s is not a kubelet's", csr.Spec.SignerName)
}

// approveClient lets a machine join once, within two hours of its creation.
func approveClient(csr *certificatesv1.CertificateSigningRequest, m Machine, nodeExists bool) error {
	const inTime = 2 * time.Hour
	switch {
	case csr.Spec.Username != bootstrapper:
		return fmt.Errorf("asked for by %q, not by the node bootstrapper", csr.Spec.Username)
	case nodeExists:
		return fmt.Errorf("the node exists already")
	case m.HasNode:
		return fmt.Errorf("machine %s has its node already", m.Name)
	case csr.CreationTimestamp.Sub(m.Created) > inTime:
		return fmt.Errorf("machine %s is older than %s: delete it", m.Name, inTime)
	}
	return nil
}

// approveServing lets a node serve only under its machine's names and addresses.
func approveServing(csr *certificatesv1.CertificateSigningRequest, request *x509.CertificateRequest, node string, m Machine) error {
	if csr.Spec.Username != "system:node:"+node {
		return fmt.Errorf("asked for by %q, not by the node", csr.Spec.Username)
	}
	asked := slices.Clone(request.DNSNames)
	for _, ip := range request.IPAddresses {
		asked = append(asked, ip.String())
	}
	for _, name := range asked {
		if !slices.Contains(m.Addresses, name) {
			return fmt.Errorf("machine %s has no address %s yet", m.Name, name)
		}
	}
	return nil
}

func parseRequest(text []byte) (*x509.CertificateRequest, error) {
	block, _ := pem.Decode(text)
	if block == nil || block.Type != "CERTIFICATE REQUEST" {
		return nil, fmt.Errorf("no certificate request in the request")
	}
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("reading the request: %w", err)
	}
	return request, request.CheckSignature()
}
