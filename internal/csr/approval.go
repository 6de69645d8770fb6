package csr

import (
	"fmt"
	"strings"

	certificates "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Reasons of our approvals.
const (
	ReasonBootstrap = "DPUMayJoin"
	ReasonServing   = "NodeMayServe"
)

// beforeUID precedes the DPU's UID at the end of our approvals' messages. Only those who may approve anyway can write one.
const beforeUID = ", UID "

// Approval is the condition that approves a CSR for a DPUHCPBridge. Call it only when d.Approve.
func (d Decision) Approval(bridge types.NamespacedName) certificates.CertificateSigningRequestCondition {
	reason, does := ReasonBootstrap, "may join"
	if d.Kind == Serving {
		reason, does = ReasonServing, "may serve with its own addresses"
	}
	return certificates.CertificateSigningRequestCondition{
		Type: certificates.CertificateApproved, Status: corev1.ConditionTrue, Reason: reason,
		Message: fmt.Sprintf("DPUHCPBridge %s: all %d rules passed, the host %s: DPU %s%s%s", bridge, len(d.Rules), does, d.DPU, beforeUID, d.DPU.UID),
	}
}

// longestName and longestUID bound what is kept of an approval (Kubernetes: UIDs have 36 characters).
const longestName, longestUID = validation.DNS1123SubdomainMaxLength, 36

// Approved returns the approval of a bootstrap CSR, whoever gave it, and its host. It ignores a Node that renews its own certificate, and
// requests larger than any kubelet's.
func Approved(r *certificates.CertificateSigningRequest) (host string, a Approval, ok bool) {
	ofNode := strings.HasPrefix(r.Spec.Username, nodePrefix)
	if r.Spec.SignerName != certificates.KubeAPIServerClientKubeletSignerName || ofNode || len(r.Spec.Request) > largest || len(r.Name) > longestName {
		return "", Approval{}, false
	}
	for _, c := range r.Status.Conditions {
		if c.Type != certificates.CertificateApproved {
			continue
		}
		a = Approval{Name: r.Name, Created: r.CreationTimestamp.Time, At: c.LastUpdateTime.Time}
		if i := strings.LastIndex(c.Message, beforeUID); i >= 0 && c.Reason == ReasonBootstrap && len(c.Message[i:]) <= len(beforeUID)+longestUID {
			a.DPU = types.UID(strings.Clone(c.Message[i+len(beforeUID):])) // the message may be long
		}
		asked := formOf(r).asked
		a.Key = asked.Key
		return asked.Host, a, true
	}
	return "", Approval{}, false
}
