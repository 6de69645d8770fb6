package picture

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	certv1 "k8s.io/api/certificates/v1"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/internal/diagnose"
	"github.com/cldmnky/oooi/internal/step"
)

// Request is a kubelet's request for a certificate, in the hosted cluster.
type Request struct {
	Name, Host string
	// For what the certificate is: bootstrap or serving.
	For   string
	Asked time.Time
	// Decision is approved, denied or waits, and Outcome how that is shown.
	Decision Decision
	Outcome  step.Outcome
	// Decided is when that was; zero if it waits, or nobody says.
	Decided time.Time
	// Why it is not approved: the rule that it breaks, or what is said of it.
	Why string
}

// Decision about a request.
type Decision string

// The decisions, and the words for them.
const (
	Waits    Decision = "waits"
	Denied   Decision = "denied"
	Approved Decision = "approved"
)

// decisions are all, as they are listed.
var decisions = []Decision{Waits, Denied, Approved}

// mostRequests is how many are shown: who has the token in a worker's Ignition makes any number.
const mostRequests = 40

// longestWhy is how much is shown of what the hosted cluster says, in octets; step.Plain mends what is cut.
const longestWhy = 300

// requests are those of an Infra's hosted cluster, which HyperShift or its admin decides.
func requests(f diagnose.Facts) (all []Request) {
	for _, r := range f.Hosted.Is.Requests {
		if r.Name == "" { // it is larger than any kubelet's
			continue
		}
		one := Request{Name: r.Name, Host: r.Host, For: string(r.Kind), Asked: r.Created, Decision: Waits, Outcome: step.Warn}
		switch r.Decided {
		case certv1.CertificateApproved:
			one.Decision, one.Outcome, one.Decided = Approved, step.OK, r.At
		case certv1.CertificateDenied:
			one.Decision, one.Outcome, one.Decided, one.Why = Denied, step.Fail, r.At, r.Because[:min(len(r.Because), longestWhy)]
		}
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b Request) int {
		return cmp.Or(cmp.Compare(slices.Index(decisions, a.Decision), slices.Index(decisions, b.Decision)), b.Asked.Compare(a.Asked), cmp.Compare(a.Name, b.Name))
	})
	return all
}

// RequestsOf a bridge's hosted cluster are those that its status tells of, in its order.
func RequestsOf(b *dpuv1.DPUHCPBridge) (all []Request) {
	for _, r := range b.Status.CertificateRequests {
		one := Request{Name: r.Name, Host: r.Host, For: strings.ToLower(string(r.Kind)), Asked: r.CreationTime.Time, Decision: Waits, Outcome: step.Warn, Why: r.RefusedBy}
		if r.ApprovalTime != nil {
			one.Decision, one.Outcome, one.Decided = Approved, step.OK, r.ApprovalTime.Time
		}
		all = append(all, one)
	}
	return all
}

// Took is how long it waited for the decision; empty if that is not known.
func (r Request) Took() string {
	if r.Decided.IsZero() {
		return ""
	}
	return max(0, r.Decided.Sub(r.Asked)).Round(time.Second).String() // two servers' clocks
}

// Decisions says how many requests of each kind there are; empty if there are none.
func (p Page) Decisions() string {
	var parts []string
	for _, d := range decisions {
		if n := p.Decided[d]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, map[Decision]string{Waits: "waiting", Denied: "denied", Approved: "approved"}[d]))
		}
	}
	return strings.Join(parts, ", ")
}
