package status

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/observe"
	"github.com/cldmnky/oooi/internal/plan/bridge"
)

// provisioning is the phase until the hosted cluster exists.
const provisioning = "Provisioning"

// Bridge is a bridge's status.
func Bridge(seen observe.Bridge, p bridge.Plan, out Outcome, now time.Time) dpuv1.DPUHCPBridgeStatus {
	b := seen.Input.Bridge
	mirror := mirrored(seen.Input)
	making, serving := ownVerdicts(seen, p, out)
	all := slices.Concat(mirror, making, serving, []verdict{privileged(b.Status.Conditions, p, out), joinable(out, mirror, making, serving)})
	return dpuv1.DPUHCPBridgeStatus{
		Conditions: conditions(b.Status.Conditions, b.Generation, now, all...), ObservedGeneration: b.Generation,
		BlueFieldContainerImage: p.Image, CertificateRequests: out.Requests,
	}
}

func mirrored(in bridge.Input) (all []verdict) {
	for _, c := range in.Mirror() {
		all = append(all, verdict{c.Type, c.Status, c.Reason, c.Message})
	}
	return all
}

// ownVerdicts come in the order in which a bridge comes about: what the hosted cluster is made of, then what is done with it.
func ownVerdicts(seen observe.Bridge, p bridge.Plan, out Outcome) (making, serving []verdict) {
	b := seen.Input.Bridge
	before, cluster := b.Status.Conditions, bridge.ClusterKey(b)
	bound := judged(dpuv1.ConditionDPUClusterBound, out.Findings, yes(dpuv1.ConditionDPUClusterBound, "Bound", "DPUCluster "+cluster.String()+" is this bridge's"))
	applied := func(kind, reason, message string) verdict {
		return judged(kind, out.Findings, unlessFrozen(out, before, yes(kind, reason, message)))
	}
	injected := no(dpuv1.ConditionKubeconfigInjected, bound.Reason, "nothing is injected while the DPUCluster is not bound")
	if p.Inject != nil {
		injected = yes(dpuv1.ConditionKubeconfigInjected, "Injected", "DPUCluster "+cluster.String()+" refers to Secret "+bridge.InjectedKey(b).Name)
	}
	making = []verdict{
		bound,
		judged(dpuv1.ConditionSecretsValid, out.Findings, yes(dpuv1.ConditionSecretsValid, "Valid", "both Secrets are valid and copied")),
		judged(dpuv1.ConditionBlueFieldContainerImageAvailable, out.Findings, kept(before, dpuv1.ConditionBlueFieldContainerImageAvailable)),
		applied(dpuv1.ConditionMetalLBConfigured, "Configured", "MetalLB has "+bridge.VirtualIP(b).String()+" for the hosted API"),
		applied(dpuv1.ConditionIgnitionConfigured, "Configured", "the NodePool's ignition pins "+p.Image+served(p.Templates)),
	}
	serving = []verdict{judged(dpuv1.ConditionKubeconfigInjected, out.Findings, injected), approving(before, p, out, bound)}
	if d := p.Services.Deployment; d.Name != "" {
		serving = append(serving, judged(dpuv1.ConditionServiceTemplatesReady, out.Findings,
			yes(dpuv1.ConditionServiceTemplatesReady, "Found", "everything that the services of DPUDeployment "+d.String()+" name exists")))
	}
	return making, serving
}

// served ends the sentence about ignition.
func served(t bridge.Templating) string {
	if t.Served == 0 {
		return ""
	}
	return fmt.Sprintf("; templates from which DPF installs DPUs: %d", t.Served)
}

// approving says whether CSRs are approved; only for a DPUCluster that is the bridge's.
func approving(before []metav1.Condition, p bridge.Plan, out Outcome, bound verdict) verdict {
	const kind = dpuv1.ConditionCSRAutoApprovalActive
	switch {
	case p.Approve != nil && connecting(out.Findings, kind) && meta.IsStatusConditionTrue(before, kind):
		return kept(before, kind) // a restart of the manager does not change it
	case p.Approve != nil:
		return judged(kind, out.Findings, yes(kind, "Watching", "certificate requests of DPUs are decided as they arrive"))
	case bound.Status != metav1.ConditionTrue:
		return no(kind, bound.Reason, "nothing is approved while the DPUCluster is not bound")
	}
	return judged(kind, out.Findings, no(kind, "WaitingForKubeconfig", "nothing can be approved until the HostedCluster names its kubeconfig"))
}

// privileged says whether pods of DPF's services may be privileged; while the hosted cluster is not read, what was seen last.
func privileged(before []metav1.Condition, p bridge.Plan, out Outcome) verdict {
	const kind = dpuv1.ConditionPrivilegedPodsAllowed
	was := kept(before, kind)
	if p.Approve == nil || connecting(out.Findings, kind) && bridge.WasSeen(was.Reason) {
		return was
	}
	return judged(kind, out.Findings, was)
}

// connecting says whether the hosted cluster has not been read yet.
func connecting(all []finding.Finding, kind string) bool {
	return slices.ContainsFunc(all, func(f finding.Finding) bool { return f.Condition == kind && f.Reason == "Connecting" })
}

// joinable is Ready: the first verdict that is not True says why DPUs cannot join.
func joinable(out Outcome, mirror, making, serving []verdict) verdict {
	const kind = dpuv1.ConditionReady
	available := unknown(dpuv1.ConditionHostedClusterAvailable, provisioning, "there is no HostedCluster yet")
	for _, v := range mirror {
		if v.Type == dpuv1.ConditionHostedClusterAvailable {
			available = v
		}
	}
	verdict := yes(kind, "Ready", "DPUs can join")
	if bad, found := firstNot(making...); found {
		verdict = no(kind, bad.Reason, bad.Type+": "+bad.Message)
	} else if available.Status != metav1.ConditionTrue {
		verdict = no(kind, provisioning, available.Type+": "+available.Message)
	} else if bad, found := firstNot(serving...); found {
		verdict = no(kind, bad.Reason, bad.Type+": "+bad.Message)
	}
	if out.Paused != "" && verdict.Status != metav1.ConditionTrue {
		verdict = no(kind, "Paused", out.Paused)
	}
	return judged(kind, out.Findings, verdict)
}

// Ending is the status of a bridge that is being deleted: the progress, and the HostedCluster's conditions, which DPF needs until the last
// DPU is gone. Once what remains was read and the HostedCluster is gone, so is all that was made for it, and the conditions about either;
// DPUClusterBound stays to the end, and so does what is known of the image, whose copy goes last.
func Ending(in bridge.Input, read bool, cleanup metav1.ConditionStatus, reason, message string, now time.Time) dpuv1.DPUHCPBridgeStatus {
	b, mirror := in.Bridge, mirrored(in)
	status := *b.Status.DeepCopy()
	if read && len(mirror) == 0 {
		status.CertificateRequests = nil
		status.Conditions = slices.DeleteFunc(status.Conditions, func(c metav1.Condition) bool {
			return c.Type != dpuv1.ConditionDPUClusterBound && c.Type != dpuv1.ConditionBlueFieldContainerImageAvailable
		})
	}
	all := append(mirror,
		verdict{dpuv1.ConditionHostedClusterCleanup, cleanup, reason, message},
		no(dpuv1.ConditionCSRAutoApprovalActive, "Deleting", "nothing is approved any more"),
		no(dpuv1.ConditionReady, "Deleting", message),
	)
	for _, c := range conditions(b.Status.Conditions, b.Generation, now, all...) {
		if was := meta.FindStatusCondition(status.Conditions, c.Type); was != nil {
			*was = c
			continue
		}
		status.Conditions = append(status.Conditions, c)
	}
	status.ObservedGeneration = b.Generation
	return status
}

// Bridge writes a bridge's status if it changed.
func (w *Writer) Bridge(ctx context.Context, b *dpuv1.DPUHCPBridge, want dpuv1.DPUHCPBridgeStatus) error {
	if equality.Semantic.DeepEqual(b.Status, want) {
		return nil
	}
	if err := w.write(ctx, b, want, names.ManagerFieldOwner); err != nil {
		return err
	}
	w.tell(b, b.Status.Conditions, want.Conditions)
	return nil
}
