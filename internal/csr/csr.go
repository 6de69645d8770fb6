// Package csr decides whether a certificate that a kubelet of a hosted cluster asks for may be approved. It reads no clock and connects to
// nothing. It never denies: what may not be approved stays pending, for a person or for better facts.
package csr

import (
	"crypto/sha256"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	certificates "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Kind of a certificate that a kubelet asks for.
type Kind string

const (
	// Bootstrap is the certificate with which a DPU becomes a Node.
	Bootstrap Kind = "bootstrap"
	// Serving is the certificate with which a Node answers the API server (logs, exec).
	Serving Kind = "serving"
)

// Facts are what a decision depends on besides the request.
type Facts struct {
	// Cluster is the DPUCluster whose Nodes are in this hosted cluster.
	Cluster types.NamespacedName
	// DPUs include all of Cluster's; there may be others.
	DPUs []DPU
	// Nodes of the hosted cluster, by name.
	Nodes map[string]Node
	// Holders says which Nodes have an address, as the function Holders does; nil: it is worked out for each request.
	Holders map[netip.Addr][]string
	// Leases say when each Node, by name, last renewed its Lease.
	Leases map[string]time.Time
	// Approved are the bootstrap CSRs that were approved, by host.
	Approved map[string][]Approval
	// Services maps the addresses of the hosted cluster's Services, unmapped, to their names.
	Services map[netip.Addr]string
	// ServicesUnknown: there are more Services than are kept.
	ServicesUnknown bool
	// ServiceNetworks are the ranges of Services' addresses: an address free today may be a Service's before the certificate expires.
	ServiceNetworks []netip.Prefix
	// API are the hosted API server's addresses as the management cluster knows them; HostedAPI, as the hosted cluster does.
	API       []netip.Addr
	HostedAPI map[netip.Addr]bool
	// NoRebootstrap: a host gets no bootstrap certificate if its Node exists, or if different keys ask for it.
	NoRebootstrap bool
	// Hidden: more keys asked for the host than are kept; its own may be missing from Asking.
	Hidden bool
	// Asking are the pending bootstrap CSRs, by host.
	Asking map[string][]Asked
	Now    time.Time
}

// DPU is a card that may become a Node of the same name.
type DPU struct {
	Namespace, Name string
	UID             types.UID
	Created         time.Time
	Cluster         types.NamespacedName // spec.cluster
	Deleting        bool
	OSInstalled     bool
	Addresses       []netip.Addr
}

// Node of the hosted cluster, as far as a serving certificate depends on it.
type Node struct {
	Ready     bool
	Addresses []netip.Addr
}

// Approval of a bootstrap CSR.
type Approval struct {
	Name    string    // of the CSR
	DPU     types.UID // that it was for; empty when somebody else approved
	Key     Key
	Created time.Time // when the CSR was made
	At      time.Time
}

// Verdict of one rule.
type Verdict struct {
	Name    string `json:"name"`
	Passed  bool   `json:"passed"`
	Because string `json:"because"`
}

// Decision about one CSR.
type Decision struct {
	Kind    Kind
	Host    string
	DPU     DPU
	Approve bool
	// Rejoins: it is a bootstrap CSR, and the host's Node exists already.
	Rejoins bool
	Rules   []Verdict
	// Again is when the mere passing of time may change the decision; zero when it cannot.
	Again time.Time
}

// Broken is the name of the first rule that did not pass; empty when all did.
func (d Decision) Broken() string { return Broken(d.Rules) }

// RulePending is broken by a CSR that is already approved, denied or failed.
const RulePending = "Pending"

// Broken is the name of the first rule that did not pass; empty when all did.
func Broken(rules []Verdict) string {
	if i := slices.IndexFunc(rules, func(v Verdict) bool { return !v.Passed }); i >= 0 {
		return rules[i].Name
	}
	return ""
}

// Decide asks every rule, and approves when all pass. The signature is verified only when all others pass: it costs the most, and anybody
// with a bootstrap token may ask for any host.
func Decide(r *certificates.CertificateSigningRequest, f Facts) Decision {
	form, verdicts := read(r)
	if form == nil {
		return Decision{Rules: verdicts}
	}
	d := form.asked.judge(f, judge)
	d.Rules = append(verdicts, d.Rules...)
	if d.Broken() == "" {
		d.Rules = append(d.Rules, judge(signature, form)...)
	}
	d.Approve = d.Broken() == ""
	return d
}

// Asked is what the rules about facts need of a well-formed request.
type Asked struct {
	Kind      Kind
	Name      string // of the CSR
	Host      string // that the certificate is for
	Key       Key
	Addresses []netip.Addr
	Created   time.Time
}

// Key is the SHA-256 of a SubjectPublicKeyInfo (RFC 5280 §4.1.2.7); zero when there is none that can be read.
type Key [sha256.Size]byte

// IsOurs tells whether a request is ours to decide. A Node's renewal of its client certificate is not: Kubernetes' own approver handles it
// (pkg/controller/certificates/approver, selfnodeclient).
func IsOurs(r *certificates.CertificateSigningRequest) bool {
	switch r.Spec.SignerName {
	case certificates.KubeletServingSignerName:
		return true
	case certificates.KubeAPIServerClientKubeletSignerName:
		return !strings.HasPrefix(r.Spec.Username, nodePrefix)
	}
	return false
}

// Read judges a request without any facts, and does not verify its signature. A request that breaks one of these rules never gets better:
// only a CSR's conditions can change. Of one that is too large, nothing more is read.
func Read(r *certificates.CertificateSigningRequest) (Asked, []Verdict) {
	form, verdicts := read(r)
	if form == nil {
		return Asked{}, verdicts
	}
	return form.asked, verdicts
}

func read(r *certificates.CertificateSigningRequest) (*form, []Verdict) {
	size := sizeOf(r)
	if !size.Passed {
		return nil, []Verdict{size}
	}
	f := formOf(r)
	ofKind := servingForm
	if f.asked.Kind == Bootstrap {
		ofKind = bootstrapForm
	}
	return f, append([]Verdict{size}, judge(slices.Concat(formRules, ofKind), f)...)
}

func sizeOf(r *certificates.CertificateSigningRequest) Verdict {
	size := Verdict{"NotTooLarge", len(r.Spec.Request) <= largest && len(r.Name) <= longestName, fmt.Sprintf(
		"spec.request has %d bytes (at most %d), metadata.name has %d (at most %d)", len(r.Spec.Request), largest, len(r.Name), longestName)}
	if !size.Passed {
		size.Because += "; no kubelet makes such a CSR: delete it"
	}
	return size
}

var signature = []rule[*form]{{"Signature", (*form).isSigned}}

// Judge asks the rules that need facts, up to the first that does not pass.
func (a Asked) Judge(f Facts) Decision { return a.judge(f, judgeToTheFirst) }

func (a Asked) judge(f Facts, ask func([]rule[*question], *question) []Verdict) Decision {
	if f.Holders == nil {
		f.Holders = Holders(f.Nodes)
	}
	q := questionOf(a, f)
	ofKind := servingFacts
	if a.Kind == Bootstrap {
		ofKind = bootstrapFacts
	}
	rules := ask(slices.Concat(factRules, ofKind), q)
	return Decision{Kind: a.Kind, Host: a.Host, DPU: q.dpu, Rejoins: a.Kind == Bootstrap && q.joined, Rules: rules, Again: q.again}
}

// rule is one check. It says what it saw, whether or not that passes.
type rule[T any] struct {
	name  string
	holds func(T) (passed bool, because string)
}

func judge[T any](rules []rule[T], about T) []Verdict {
	verdicts := make([]Verdict, 0, len(rules))
	for _, r := range rules {
		passed, because := r.holds(about)
		verdicts = append(verdicts, Verdict{r.name, passed, because})
	}
	return verdicts
}

// judgeToTheFirst stops at the first rule that does not pass; costlier rules come last, because a bootstrap token can leave thousands
// waiting.
func judgeToTheFirst[T any](rules []rule[T], about T) []Verdict {
	for i := range rules {
		if last := judge(rules[i:i+1], about); !last[0].Passed {
			return last
		}
	}
	return nil
}

// Holders lists the Nodes that have each address, at most two: then at least one is not the Node that asks.
func Holders(nodes map[string]Node) map[netip.Addr][]string {
	all := map[netip.Addr][]string{}
	for name, n := range nodes {
		for _, ip := range n.Addresses {
			if has := all[ip.Unmap()]; len(has) < 2 && !slices.Contains(has, name) {
				all[ip.Unmap()] = append(has, name)
			}
		}
	}
	return all
}
