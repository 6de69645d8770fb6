// Package csrcli implements `oooi csr explain`: it decides about a hosted cluster's CSR as the operator would, and says why.
package csrcli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/internal/csr"
	"github.com/cldmnky/oooi/internal/dpf"
	"github.com/cldmnky/oooi/internal/guest/approve"
	"github.com/cldmnky/oooi/internal/guest/kubeconfig"
	"github.com/cldmnky/oooi/internal/plan/bridge"
	"github.com/cldmnky/oooi/internal/unroutable"
)

// Report is the decision about a CSR.
type Report struct {
	Name   string   `json:"name"`
	Bridge string   `json:"bridge"`
	Kind   csr.Kind `json:"kind"`
	Host   string   `json:"host"`
	// Approve: the operator would approve it now.
	Approve bool `json:"approve"`
	// Stopped is why the operator approves nothing for the bridge; empty if it does.
	Stopped string `json:"stopped,omitempty"`
	// Again is when the mere passing of time may change that.
	Again *time.Time    `json:"again,omitempty"`
	Rules []csr.Verdict `json:"rules"`
}

// Explain reads what the operator would, with the caller's own permissions, and decides.
func Explain(ctx context.Context, api client.Reader, of types.NamespacedName, name string) (Report, error) {
	b, hc, cards, secret := &dpuv1.DPUHCPBridge{}, &hyperv1.HostedCluster{}, &dpf.DPUList{}, &corev1.Secret{}
	if err := api.Get(ctx, of, b); err != nil {
		return Report{}, fmt.Errorf("reading DPUHCPBridge %s: %w", of, err)
	}
	if err := api.Get(ctx, of, hc); err != nil {
		return Report{}, fmt.Errorf("reading HostedCluster %s: %w", of, err)
	}
	if hc.Status.KubeConfig == nil {
		return Report{}, fmt.Errorf("HostedCluster %s names no kubeconfig yet (status.kubeconfig): try again when its control plane is up", of)
	}
	at := types.NamespacedName{Namespace: hc.Namespace, Name: hc.Status.KubeConfig.Name}
	if err := api.Get(ctx, at, secret); err != nil {
		return Report{}, fmt.Errorf("reading Secret %s with the hosted cluster's kubeconfig: %w", at, err)
	}
	if err := api.List(ctx, cards); err != nil {
		return Report{}, fmt.Errorf("reading DPUs: %w", err)
	}
	access, refusal := kubeconfig.Sanitise(secret.Data[kubeconfig.SecretKey])
	if refusal != nil {
		return Report{}, fmt.Errorf("the kubeconfig in Secret %s is not used (%s): %s", at, refusal.Rule, refusal.Because)
	}
	facts := csr.Facts{Cluster: bridge.ClusterKey(b), DPUs: approve.DPUs(cards.Items), API: bridge.APIAddresses(b, hc), ServiceNetworks: bridge.ServiceNetworks(hc),
		NoRebootstrap: b.Spec.Rebootstrap == dpuv1.NeverRebootstrap}
	d, err := approve.Explain(ctx, access, unroutable.DialRoutable, name, facts)
	if err != nil {
		return Report{}, err
	}
	return reportOf(name, b, d), nil
}

func reportOf(name string, b *dpuv1.DPUHCPBridge, d csr.Decision) Report {
	of, stop := client.ObjectKeyFromObject(b), Stopped(b)
	r := Report{Name: name, Bridge: of.String(), Kind: d.Kind, Host: d.Host, Approve: d.Approve && stop == "", Stopped: stop, Rules: d.Rules}
	if again := d.Again.UTC(); !d.Again.IsZero() {
		r.Again = &again
	}
	return r
}

// Stopped says why the operator approves nothing for a bridge; empty if it does. Only its status has what it saw in the hosted cluster.
func Stopped(b *dpuv1.DPUHCPBridge) string {
	const kind = dpuv1.ConditionCSRAutoApprovalActive
	c := meta.FindStatusCondition(b.Status.Conditions, kind)
	switch {
	case b.DeletionTimestamp != nil:
		return "Deleting: the bridge is being deleted"
	case c == nil:
		return "NotReported: the operator has not set condition " + kind + " yet"
	case c.Status != metav1.ConditionTrue:
		return c.Reason + ": " + c.Message
	}
	return ""
}

// Table writes a report for people.
func Table(to io.Writer, r Report) error {
	does := map[bool]string{true: "would be approved", false: "would not be approved"}[r.Approve]
	fmt.Fprintf(to, "CSR %s (%s, host %q) %s for DPUHCPBridge %s\n", r.Name, r.Kind, r.Host, does, r.Bridge)
	if r.Stopped != "" {
		fmt.Fprintf(to, "Approval is stopped: %s\n", r.Stopped)
	}
	if r.Again != nil {
		fmt.Fprintf(to, "Time alone may change that at %s\n", r.Again.Format(time.RFC3339))
	}
	fmt.Fprintln(to)
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "RULE\tPASSED\tBECAUSE")
	for _, v := range r.Rules {
		fmt.Fprintf(table, "%s\t%s\t%s\n", v.Name, map[bool]string{true: "yes", false: "NO"}[v.Passed], v.Because)
	}
	return table.Flush()
}

// JSON writes a report for programs.
func JSON(to io.Writer, r Report) error {
	e := json.NewEncoder(to)
	e.SetIndent("", "  ")
	return e.Encode(r)
}
