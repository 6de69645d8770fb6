// Package csr decides whether a certificate that a kubelet asks for in a hosted cluster may be approved. It reads no clock and
// connects to nothing. It never denies: what may not be approved stays pending, for a person or for better facts.
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

// Facts are what a decision depends on beside the request.
type Facts struct {
	// Cluster is the DPUCluster whose Nodes live in this hosted cluster.
	Cluster types.NamespacedName
	// DPUs of it; others may be among them.
	DPUs []DPU
	// Nodes of the hosted cluster, by name.
	Nodes map[string]Node
	// Holders of the Nodes' addresses, as Holders tells them; found anew for each request where they are nil.
	Holders map[netip.Addr][]string
	// Leases are when Nodes last renewed theirs, by name.
	Leases map[string]time.Time
	// Approved are the bootstrap CSRs that were approved, by host.
	Approved map[string][]Approval
	// Services are the addresses of Services in the hosted cluster, unmapped, and whose they are.
	Services map[netip.Addr]string
	// ServicesUnknown: there are more Services than are kept.
	ServicesUnknown bool
	// ServiceNetworks are where Services get their addresses from: a certificate outlives the day on which one is free.
	ServiceNetworks []netip.Prefix
	// API are the addresses of the hosted cluster's API server, as the management cluster knows them, HostedAPI those that it says itself.
	API       []netip.Addr
	HostedAPI map[netip.Addr]bool
	// NoRebootstrap: a host whose Node exists gets no bootstrap certificate, nor one for which different keys ask.
	NoRebootstrap bool
	// Hidden: more keys asked for the host than are kept; its own may not be among those of Asking.
	Hidden bool
	// Asking are the bootstrap CSRs that wait, by host.
	Asking map[string][]Asked
	Now    time.Time
}

// DPU is a card that may become a Node of its name.
type DPU struct {
	Namespace, Name string
	UID             types.UID
	Created         time.Time
	Cluster         types.NamespacedName // spec.cluster
	Deleting        bool
	OSInstalled     bool
	Addresses       []netip.Addr
}

// Node is what its status says.
type Node struct {
	Ready     bool
	Addresses []netip.Addr
}

// Approval of a bootstrap CSR.
type Approval struct {
	Name    string    // of the CSR
	DPU     types.UID // that it was for; empty when somebody else approved
	Key     Key
	Created time.Time // the CSR
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
	// Again is when time alone may change the decision; zero when it cannot.
	Again time.Time
}

// Broken is the name of the first rule that did not pass; empty when all did.
func (d Decision) Broken() string { return Broken(d.Rules) }

// RulePending is broken by a CSR that somebody has decided about.
const RulePending = "Pending"

// Broken is the name of the first that did not pass; empty when all did.
func Broken(rules []Verdict) string {
	if i := slices.IndexFunc(rules, func(v Verdict) bool { return !v.Passed }); i >= 0 {
		return rules[i].Name
	}
	return ""
}

// Decide asks every rule; one that does not pass is enough. Only of what keeps every other is the signature verified: that costs the most,
// and anybody with a bootstrap token may ask in any host's name.
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

// Asked is what is left to judge of a request that is well formed.
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

// IsOurs tells whether a request is one to decide about. A Node's renewal of the certificate that it joined with is not: Kubernetes' own
// approver has it (pkg/controller/certificates/approver, selfnodeclient).
func IsOurs(r *certificates.CertificateSigningRequest) bool {
	switch r.Spec.SignerName {
	case certificates.KubeletServingSignerName:
		return true
	case certificates.KubeAPIServerClientKubeletSignerName:
		return !strings.HasPrefix(r.Spec.Username, nodePrefix)
	}
	return false
}

// Read judges what a request says without any facts; its signature is not verified. What breaks one of these rules never gets better: all
// but a CSR's conditions is immutable. Of one that is too large nothing more is read.
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

// rule is one clause. It tells what it saw, whether it passes or not.
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

// judgeToTheFirst that does not pass, for the rules that cost more come last: thousands wait of whoever has a bootstrap token.
func judgeToTheFirst[T any](rules []rule[T], about T) []Verdict {
	for i := range rules {
		if last := judge(rules[i:i+1], about); !last[0].Passed {
			return last
		}
	}
	return nil
}

// Holders are the Nodes that have an address, of many two: one of these is not the one that asks.
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
