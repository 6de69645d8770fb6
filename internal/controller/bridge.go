package controller

import (
	"context"
	"errors"
	"slices"
	"time"

	certv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/internal/apply"
	"github.com/cldmnky/oooi/internal/csr"
	"github.com/cldmnky/oooi/internal/dpf"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/guest/approve"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/observe"
	"github.com/cldmnky/oooi/internal/plan/bridge"
	"github.com/cldmnky/oooi/internal/status"
)

// bridgeReconciler reconciles one DPUHCPBridge to the plan of bridge.Of.
type bridgeReconciler struct {
	parts
	observe *observe.Bridges
	claims  *claims
}

// Reconcile observes, plans, applies and writes the status. Deletion comes before any other gate.
func (r bridgeReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	b, err := r.observe.Bridge(ctx, req.NamespacedName)
	if err == nil && b == nil {
		r.observe.Watches.Follow(req.NamespacedName)
		r.hosted.Approvals.Forget(req.NamespacedName)
		r.hosted.Downloads.Forget(req.NamespacedName)
		r.hosted.Lookups.Follow(req.NamespacedName, nil)
		r.hosted.OVN.Follow(req.NamespacedName, nil)
	}
	if err != nil || b == nil || r.status.Overtook(b) {
		return ctrl.Result{}, err
	}
	release, taken := r.claims.take(wants(b, r.observe.Settings)...)
	if !taken {
		return soonest(retryClaimed), nil
	}
	defer release()
	seen, err := r.observe.Around(ctx, b)
	if err != nil {
		if bridge.Of(seen.Input).Approve == nil { // approval was decided by what was read; an unreadable Secret must not prolong it
			r.hosted.Approvals.Forget(req.NamespacedName)
		}
		return ctrl.Result{}, err
	}
	if seen.Deleting() {
		return r.end(ctx, seen)
	}
	r.download(&seen)
	p := bridge.Of(seen.Input)
	out, err := r.do(ctx, seen, p)
	if out.Wrote { // seen predates the write, whose event brings the next reconcile
		return soonest(retryWritten), err
	}
	if p.End { // no status is written: the deletion rests on the status that says the bridge was bound
		return retry(out, seen.Pause), err
	}
	now := time.Now()
	statusErr := r.status.Bridge(ctx, seen.Input.Bridge, status.Bridge(seen, p, out, now))
	if err != nil && r.observe.Settings.Ungranted("", err.Error()) != nil {
		return soonest(retryTaken), statusErr // Roles are not watched
	}
	return retry(out, seen.Pause, retryForeign(seen)), errors.Join(err, statusErr)
}

// do applies a plan unless it is frozen. The kubeconfig is handed over independently: a wrong release or pull secret must not keep a rotated
// kubeconfig from DPF.
func (r bridgeReconciler) do(ctx context.Context, seen observe.Bridge, p bridge.Plan) (status.Outcome, error) {
	found, requests := r.approve(seen, p)
	out := status.Outcome{Findings: append(p.Findings, found...), Requests: requests, Frozen: p.Frozen || seen.Pause.Active(), Paused: seen.Pause.Reason}
	switch {
	case seen.Pause.Active():
		return out, nil
	case p.End:
		return out, r.follow(ctx, seen)
	}
	b := seen.Input.Bridge
	if err := r.apply.AddFinalizer(ctx, b, names.BridgeFinalizer); err != nil {
		return out, err
	}
	if len(p.Adopts) > 0 {
		err := r.adopt(ctx, b, p.Adopts, &out)
		return out, err
	}
	err := withdraw(ctx, r.apply, p.Templates.Withdraw, &out)
	out.Findings = append(out.Findings, r.failed(dpuv1.ConditionIgnitionConfigured, err)...)
	switch {
	case p.Frozen:
	case len(p.Templates.Withdraw) > 0:
		out.Frozen = true // until they are gone, DPUs could be installed with the release that the hosted cluster leaves
	default:
		err = r.hostedCluster(ctx, seen, p, &out)
		out.Frozen = err != nil // the status must not report objects that could not be applied
		out.Findings = append(out.Findings, r.failed(dpuv1.ConditionReady, err)...)
	}
	templateErr := r.template(ctx, seen.Input, p.Templates, &out)
	out.Findings = append(out.Findings, r.failed(dpuv1.ConditionIgnitionConfigured, templateErr)...)
	serviceErr := r.serve(ctx, seen.Input, p.Services, &out)
	out.Findings = append(out.Findings, r.failed(dpuv1.ConditionServiceTemplatesReady, serviceErr)...)
	injectErr := r.inject(ctx, seen.Input, p.Inject, &out)
	out.Findings = append(out.Findings, r.failed(dpuv1.ConditionKubeconfigInjected, injectErr)...)
	errs := []error{err, templateErr, serviceErr, injectErr}
	for _, o := range p.Former {
		errs = append(errs, r.apply.Remove(ctx, o))
	}
	return out, errors.Join(errs...)
}

// adopt makes a hosted cluster the bridge's.
func (r bridgeReconciler) adopt(ctx context.Context, b *dpuv1.DPUHCPBridge, all []bridge.Adoption, out *status.Outcome) error {
	for _, a := range all {
		if err := r.apply.Adopt(ctx, a.Object, a.Labels); err != nil {
			out.Findings = append(out.Findings, r.failed(dpuv1.ConditionReady, err)...)
			return err
		}
		out.Wrote = true
	}
	r.status.Events.Eventf(b, nil, corev1.EventTypeNormal, "HostedClusterAdopted", "Adopt", "HostedCluster %s/%s is this bridge's now", b.Namespace, b.Name)
	return nil
}

// failed is the finding for a write that failed and is tried again.
func (r bridgeReconciler) failed(condition string, err error) []finding.Finding {
	if err == nil {
		return nil
	}
	return r.orGranting(finding.Wait(condition, "NotApplied").Say("the operator tries again: %v", err))
}

// orGranting returns the finding or, if it reports only a missing Role, the findings that say how to grant that Role.
func (r bridgeReconciler) orGranting(f finding.Finding) []finding.Finding {
	if all := r.observe.Settings.Ungranted(f.Condition, f.Message); all != nil {
		return all
	}
	return []finding.Finding{f}
}

// approve starts or stops the approval of certificates, and returns what was found and asked there. It runs first, and in a pause too: it is the
// service, and writes nothing here.
func (r bridgeReconciler) approve(seen observe.Bridge, p bridge.Plan) ([]finding.Finding, []dpuv1.CertificateRequest) {
	key, a := client.ObjectKeyFromObject(seen.Input.Bridge), p.Approve
	if a == nil {
		r.hosted.Approvals.Forget(key)
		return nil, nil
	}
	state := r.hosted.Approvals.See(key, *a, seen.DPUs)
	return approving(seen, a, state), requestsOf(state, seen.Input.Bridge.Status.CertificateRequests)
}

// requestsOf are those that are told of; until the hosted cluster has been read, the last ones.
func requestsOf(state approve.State, before []dpuv1.CertificateRequest) (all []dpuv1.CertificateRequest) {
	if !state.Listed {
		return before
	}
	for _, r := range state.Requests {
		one := dpuv1.CertificateRequest{Name: r.Name, Host: r.Host, Kind: dpuv1.ServingRequest, CreationTime: metav1.NewTime(r.Created), RefusedBy: r.RefusedBy}
		if r.Kind == csr.Bootstrap {
			one.Kind = dpuv1.BootstrapRequest
		}
		if !r.Approved.IsZero() {
			one.ApprovalTime = &metav1.Time{Time: r.Approved}
		}
		all = append(all, one)
	}
	return all
}

func approving(seen observe.Bridge, a *bridge.Approval, state approve.State) []finding.Finding {
	waiting := func(reason string) finding.Builder {
		return finding.Wait(dpuv1.ConditionCSRAutoApprovalActive, reason)
	}
	switch {
	case state.Problem != nil:
		return []finding.Finding{waiting(state.Problem.Reason).Say("%s", state.Problem.Message)}
	case !state.Active:
		return []finding.Finding{waiting("Connecting").Say("the hosted cluster's certificate requests are not read yet")}
	}
	noted := bridge.UnreadDPUs(seen.DPUs)
	if a.Privileged != nil {
		noted = append(noted, bridge.Privileged(state.Privileged, a.Privileged))
	}
	for _, text := range state.Beyond {
		noted = append(noted, finding.Warn(dpuv1.ConditionCSRAutoApprovalActive, "PartiallyWatching").Say("%s", text))
	}
	return noted
}

// told records an approval or a warning as an Event on the bridge. The CSR is the related object: of Events that differ only in their note,
// client-go keeps the first.
func (r bridgeReconciler) told(key types.NamespacedName, n approve.Notice) {
	b := &dpuv1.DPUHCPBridge{}
	if err := r.observe.Reader.Get(context.Background(), key, b); err != nil {
		return // the approved CSR carries the same message in the hosted cluster, and warnings are counted
	}
	about := &corev1.ObjectReference{APIVersion: certv1.SchemeGroupVersion.String(), Kind: "CertificateSigningRequest", Name: n.Name}
	kind := corev1.EventTypeNormal
	if n.Warning {
		kind = corev1.EventTypeWarning
	}
	r.status.Events.Eventf(b, about, kind, n.Reason, "Approve", "%s", n.Note())
}

// hostedCluster applies the plan's objects, and then removes copies of Secrets that the plan no longer names.
func (r bridgeReconciler) hostedCluster(ctx context.Context, seen observe.Bridge, p bridge.Plan, out *status.Outcome) error {
	b := seen.Input.Bridge
	if p.Key != nil {
		if err := r.apply.Key(ctx, p.Key); err != nil {
			return err
		}
	}
	if p.Recreates {
		r.tellRecreated(b)
	}
	owner := ownerBridge(seen.Input)
	applied, err := r.apply.To(ctx, owner, p.Objects)
	if !p.Recreates && bridge.Reported(b) && slices.ContainsFunc(applied.Made, func(o finding.Object) bool { return o.Kind == "HostedCluster" }) {
		r.tellRecreated(b) // it was deleted between the read and the write
	}
	out.Wrote = out.Wrote || applied.Wrote
	for _, f := range applied.Findings {
		out.Findings = append(out.Findings, r.orGranting(f)...)
		if f.Condition = madeFor[f.Of.Kind]; f.Condition != "" {
			out.Findings = append(out.Findings, r.orGranting(f)...)
		}
	}
	r.tellDrift(b, applied)
	if err != nil || applied.Wrote || len(applied.Findings) > 0 {
		return err
	}
	copies, err := r.observe.Copies(ctx, b)
	if err != nil {
		return err
	}
	wrote, err := r.apply.Keep(ctx, owner, copies, append(p.Copies, names.BridgeKey(b.Name), bridge.InjectedKey(b).Name)...)
	out.Wrote = out.Wrote || wrote
	return err
}

func (r bridgeReconciler) tellRecreated(b *dpuv1.DPUHCPBridge) {
	r.status.Events.Eventf(b, nil, corev1.EventTypeWarning, "HostedClusterRecreated", "Create",
		"HostedCluster %s/%s was deleted, but not by this bridge; the bridge recreates it empty; to remove it for good, delete the bridge", b.Namespace, b.Name)
}

// tellDrift records an Event for each object that somebody else changed or deleted and that is now restored.
func (r bridgeReconciler) tellDrift(b *dpuv1.DPUHCPBridge, applied apply.Applied) {
	mended := slices.Clone(applied.Mended)
	for _, made := range applied.Made {
		if of := madeFor[made.Kind]; of != "" && meta.IsStatusConditionTrue(b.Status.Conditions, of) {
			mended = append(mended, made)
		}
	}
	r.status.TellRestored(b, mended)
}

// madeFor is the condition that reports a kind: while it was True, the object existed; if the object is not applied, it is not True.
var madeFor = map[string]string{
	"IPAddressPool": dpuv1.ConditionMetalLBConfigured, "L2Advertisement": dpuv1.ConditionMetalLBConfigured, "ConfigMap": dpuv1.ConditionIgnitionConfigured,
}

// inject hands the kubeconfig over: first the Secret, then its name in the DPUCluster, then the report that the cluster is created.
func (r bridgeReconciler) inject(ctx context.Context, in bridge.Input, i *bridge.Injection, out *status.Outcome) error {
	if i == nil {
		return nil
	}
	applied, err := r.apply.Add(ctx, ownerBridge(in), i.Secret)
	for _, f := range applied.Findings {
		f.Condition = dpuv1.ConditionKubeconfigInjected
		out.Findings = append(out.Findings, r.orGranting(f)...)
	}
	out.Wrote = out.Wrote || applied.Wrote
	if err != nil || len(applied.Findings) > 0 {
		return err
	}
	if i.Refer {
		err := r.apply.Refer(ctx, in.DPUCluster, bridge.InjectedKey(in.Bridge).Name)
		out.Wrote = out.Wrote || ignoreConflict(err) == nil // the status reports a failed write
		if err != nil {
			return ignoreConflict(err)
		}
	}
	if i.Created {
		err = ignoreConflict(r.apply.Created(ctx, in.DPUCluster, metav1.Now()))
		out.Wrote = out.Wrote || err == nil
	}
	return err
}

// ignoreConflict: the object has changed since it was read, and its event brings the next reconcile.
func ignoreConflict(err error) error {
	if apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// follow deletes the bridge of a DPUCluster that is gone, if the API server itself confirms that.
func (r bridgeReconciler) follow(ctx context.Context, seen observe.Bridge) error {
	b := seen.Input.Bridge
	cluster := &dpf.DPUCluster{}
	err := r.observe.Live.Get(ctx, bridge.ClusterKey(b), cluster)
	if err == nil && cluster.DeletionTimestamp == nil {
		return nil // the cache is behind
	}
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	r.status.Events.Eventf(b, nil, corev1.EventTypeWarning, "DPUClusterDeleted", "Delete",
		"DPUCluster %s is deleted, and dpuClusterDeletionPolicy is Delete: the bridge and its hosted cluster are deleted too", bridge.ClusterKey(b))
	return r.apply.Remove(ctx, b)
}
