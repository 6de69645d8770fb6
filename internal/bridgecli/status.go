package bridgecli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
)

// order is that in which conditions are printed: the bridge's own as they come about, then the hosted cluster's.
var order = []string{
	dpuv1.ConditionReady, dpuv1.ConditionHostedClusterCleanup,
	dpuv1.ConditionDPUClusterBound, dpuv1.ConditionSecretsValid, dpuv1.ConditionBlueFieldContainerImageAvailable,
	dpuv1.ConditionMetalLBConfigured, dpuv1.ConditionIgnitionConfigured, dpuv1.ConditionKubeconfigInjected, dpuv1.ConditionCSRAutoApprovalActive, dpuv1.ConditionPrivilegedPodsAllowed,
	dpuv1.ConditionHostedClusterAvailable, dpuv1.ConditionHostedClusterProgressing, dpuv1.ConditionHostedClusterDegraded,
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
}

// Of reads a bridge's status.
func Of(b *dpuv1.DPUHCPBridge) Standing {
	s := Standing{Namespace: b.Namespace, Name: b.Name, Because: because(b), Conditions: append([]metav1.Condition{}, b.Status.Conditions...)}
	s.Ready = s.Because == ""
	slices.SortStableFunc(s.Conditions, func(a, b metav1.Condition) int {
		return cmp.Or(cmp.Compare(rank(a.Type), rank(b.Type)), cmp.Compare(a.Type, b.Type))
	})
	return s
}

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

// Table writes a standing for people.
func Table(to io.Writer, s Standing) error {
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
	return table.Flush()
}

// JSON writes a standing for programs.
func JSON(to io.Writer, s Standing) error {
	enc := json.NewEncoder(to)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(s)
}
