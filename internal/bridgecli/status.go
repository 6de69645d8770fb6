package bridgecli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/internal/csrcli"
	"github.com/cldmnky/oooi/internal/plan/dpu"
)

// order is that in which conditions are printed: the bridge's own as they come about, then the hosted cluster's.
var order = []string{
	dpuv1.ConditionReady, dpuv1.ConditionHostedClusterCleanup,
	dpuv1.ConditionDPUClusterBound, dpuv1.ConditionSecretsValid, dpuv1.ConditionBlueFieldContainerImageAvailable,
	dpuv1.ConditionMetalLBConfigured, dpuv1.ConditionIgnitionConfigured, dpuv1.ConditionServiceTemplatesReady,
	dpuv1.ConditionKubeconfigInjected, dpuv1.ConditionCSRAutoApprovalActive, dpuv1.ConditionPrivilegedPodsAllowed,
	dpuv1.ConditionHostedClusterAvailable, dpuv1.ConditionHostedClusterProgressing, dpuv1.ConditionHostedClusterDegraded,
	dpuv1.ConditionInfrastructureReady, dpuv1.ConditionEtcdAvailable, dpuv1.ConditionKubeAPIServerAvailable,
	dpuv1.ConditionIgnitionEndpointAvailable, dpuv1.ConditionDataPlaneConnectionAvailable,
	dpuv1.ConditionValidReleaseImage, dpuv1.ConditionValidReleaseInfo, dpuv1.ConditionIgnitionServerValidReleaseInfo,
	dpuv1.ConditionEtcdRecoveryActive, dpuv1.ConditionHostedClusterRestoredFromBackup,
}

// Standing is the state of one bridge.
type Standing struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Ready: DPUs can join, according to a status about the newest spec.
	Ready bool `json:"ready"`
	// Because says why not; empty if Ready.
	Because    string             `json:"because,omitempty"`
	Conditions []metav1.Condition `json:"conditions"`
	// DPUs of the DPUCluster, and what will keep them from being installed.
	DPUs     []dpu.Row `json:"dpus,omitempty"`
	Findings []Finding `json:"findings,omitempty"`
	// Requests of kubelets for certificates, as the bridge's status has them.
	Requests []dpuv1.CertificateRequest `json:"certificateRequests,omitempty"`
	// NotRead is what the caller may not read, or the cluster does not serve.
	NotRead []string `json:"notRead,omitempty"`
}

// Finding is about an object of DPF's.
type Finding struct {
	Code   string `json:"code"`
	Object string `json:"object"`
	Field  string `json:"field"`
	Reason string `json:"reason"`
}

// Of reads a bridge's status, and what was seen of its DPUs.
func Of(b *dpuv1.DPUHCPBridge, seen Seen) Standing {
	s := Standing{Namespace: b.Namespace, Name: b.Name, Because: because(b), Conditions: append([]metav1.Condition{}, b.Status.Conditions...), Requests: b.Status.CertificateRequests, NotRead: seen.NotRead}
	s.Ready = s.Because == ""
	approvals := dpu.Approvals{Stopped: csrcli.Stopped(b), Of: seen.Approved, Explain: fmt.Sprintf("oooi csr explain CSR -n %s --bridge %s", b.Namespace, b.Name)}
	for i := range seen.DPUs {
		s.DPUs = append(s.DPUs, seen.Facts.RowOf(&seen.DPUs[i], approvals))
	}
	for _, f := range seen.Facts.Findings(seen.DPUs) {
		s.Findings = append(s.Findings, Finding{Code: f.Reason, Object: f.Of.String(), Field: f.Field, Reason: f.Message})
	}
	slices.SortStableFunc(s.Conditions, func(a, b metav1.Condition) int {
		return cmp.Compare(rank(a.Type), rank(b.Type))
	})
	return s
}

// rank of a condition; those of a newer operator come last.
func rank(condition string) int {
	if i := slices.Index(order, condition); i >= 0 {
		return i
	}
	return len(order)
}

func because(b *dpuv1.DPUHCPBridge) string {
	ready := meta.FindStatusCondition(b.Status.Conditions, dpuv1.ConditionReady)
	cleanup := meta.FindStatusCondition(b.Status.Conditions, dpuv1.ConditionHostedClusterCleanup)
	switch {
	case b.DeletionTimestamp != nil && cleanup != nil:
		return "it is being deleted: " + cleanup.Reason + ": " + cleanup.Message
	case b.DeletionTimestamp != nil:
		return "it is being deleted"
	case ready == nil:
		return "the operator has not looked at it yet; is it running?"
	case b.Status.ObservedGeneration != b.Generation:
		return "the operator has not seen the newest spec yet"
	case ready.Status != metav1.ConditionTrue:
		return ready.Reason + ": " + ready.Message
	}
	return ""
}

// Table writes a standing for people, as of a time.
func Table(to io.Writer, s Standing, now time.Time) error {
	stands := "ready"
	if !s.Ready {
		stands = "not ready: " + s.Because
	}
	fmt.Fprintf(to, "DPUHCPBridge %s/%s is %s\n\n", s.Namespace, s.Name, stands)
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "CONDITION\tSTATUS\tREASON\tMESSAGE")
	for _, c := range s.Conditions {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", c.Type, c.Status, c.Reason, c.Message)
	}
	if len(s.DPUs) > 0 {
		fmt.Fprintln(table, "\nDPU\tPHASE\tFOR\tTEMPLATE\tOS INSTALLED\tCSR APPROVED\tNODE READY\tWAITS FOR")
	}
	for _, d := range s.DPUs {
		fmt.Fprintf(table, "%s/%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", d.Namespace, d.Name, d.Phase, duration.HumanDuration(now.Sub(d.Since.Time)), cmp.Or(d.Template, "-"),
			ago(d.OSInstalled, now), ago(d.Approved, now), ago(d.NodeReady, now), cmp.Or(d.WaitsFor, "-"))
	}
	if len(s.Findings) > 0 {
		fmt.Fprintln(table, "\nFINDING\tOBJECT\tFIELD\tREASON")
	}
	for _, f := range s.Findings {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", f.Code, f.Object, f.Field, f.Reason)
	}
	if len(s.Requests) > 0 {
		fmt.Fprintln(table, "\nCSR\tHOST\tFOR\tASKED\tAPPROVED AFTER\tREFUSED BY")
	}
	for _, r := range s.Requests {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", r.Name, r.Host, r.Kind, ago(&r.CreationTime, now), after(r), cmp.Or(r.RefusedBy, "-"))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, what := range s.NotRead {
		fmt.Fprintf(to, "\nnot read: %s\n", what)
	}
	return nil
}

// ago is how long ago something happened.
func ago(at *metav1.Time, now time.Time) string {
	if at == nil {
		return "-"
	}
	return duration.HumanDuration(now.Sub(at.Time)) + " ago"
}

// after is how long a request waited for its approval.
func after(r dpuv1.CertificateRequest) string {
	if r.ApprovalTime == nil {
		return "-"
	}
	return duration.HumanDuration(max(0, r.ApprovalTime.Sub(r.CreationTime.Time))) // two servers' clocks
}

// JSON writes a standing for programs.
func JSON(to io.Writer, s Standing, _ time.Time) error {
	enc := json.NewEncoder(to)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(s)
}
