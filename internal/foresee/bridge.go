package foresee

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/internal/change"
	"github.com/cldmnky/oooi/internal/dpf"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/metallb"
	"github.com/cldmnky/oooi/internal/observe"
	"github.com/cldmnky/oooi/internal/plan/bridge"
	"github.com/cldmnky/oooi/internal/plan/desired"
	"github.com/cldmnky/oooi/internal/plan/input"
)

// Bridge is the picture of a DPUHCPBridge as an Observer sees it; without a bridge, if there is none.
func Bridge(ctx context.Context, o *observe.Bridges, key types.NamespacedName) (p change.BridgePicture, err error) {
	b, err := o.Bridge(ctx, key)
	if err != nil || b == nil || b.DeletionTimestamp != nil {
		return p, err
	}
	seen, err := o.Around(ctx, b)
	if err != nil {
		return p, err
	}
	p.Input, p.Paused = seen.Input, seen.Pause.Reason
	if p.PullSecret.Denied || p.SSHKey.Denied || p.Key.Denied {
		p.Unread = "get its Secrets"
	}
	answered(&p)
	if p.WantsTemplates() {
		p.Templates.Payload = p.StandIn()
	}
	p.Plan = bridge.Of(p.Input)
	unshared(&p)
	return p, nil
}

// unshared: whether the operator may read the Secrets with kubeconfigs is not known to who may not, so that no finding says that it may not.
func unshared(p *change.BridgePicture) {
	if !p.Kubeconfig.Secret.Denied && !p.Injected.Denied {
		return
	}
	p.Plan.Findings = slices.DeleteFunc(p.Plan.Findings, func(f finding.Finding) bool {
		return f.Condition == dpuv1.ConditionKubeconfigInjected && f.Reason == input.GuestNotGranted
	})
	p.Unknown = append(p.Unknown, "whether the kubeconfig is handed over: you may not get the Secrets that it is in")
}

// answered assumes that registries have the image that the operator asks them for. Where the release has no tag, they alone know its version, and
// they alone know the image of OVN-Kubernetes that hosts of a single-arch release do not have.
func answered(p *change.BridgePicture) {
	if want := p.OVNLookup(); want != nil {
		p.Unknown = append(p.Unknown, fmt.Sprintf("which image DPUServiceTemplate ovn has: the operator asks registries what release %s:%s lists", want.Repository, want.Version))
	}
	want, hc, release := p.Lookup(), p.HostedCluster, string(p.Bridge.Spec.OCPReleaseImage)
	if want == nil {
		return
	}
	found, _ := p.SaysItFound(want)
	switch {
	case want.Version != "":
		p.Answer.Image = want.Found(want.Version)
		p.Unknown = append(p.Unknown, fmt.Sprintf("whether registries have %s, the BlueField container image of release %s: the operator asks them, and changes nothing of the hosted cluster until it is found", p.Answer.Image, release))
	case hc != nil && hc.Spec.Release.Image == release && found != "":
		p.Answer.Image = found
	default:
		p.Unknown = append(p.Unknown, fmt.Sprintf("what follows once the operator has found the BlueField container image of release %s: it asks registries for the release's version, which has no tag here", release))
	}
}

// Writes are the objects of a bridge's plan that differ from the plan of before, as they are and as server-side apply leaves them. Secrets and
// templates, whose content is nobody's business, are not among them.
func Writes(ctx context.Context, o *observe.Observer, before, after change.BridgePicture) (all []change.Write, err error) {
	var was []runtime.ApplyConfiguration
	if before.Wrote(after) {
		was = slices.Concat(before.Plan.Objects, before.Plan.Services.Apply)
	}
	for _, object := range slices.Concat(after.Plan.Objects, after.Plan.Services.Apply) {
		live, twin := ofBridge(object), encodedTwin(was, object)
		if live == nil || string(twin) == string(desired.Encoded(object)) {
			continue
		}
		w, err := writeOf(ctx, o, live, twin, object)
		if err != nil {
			return nil, err
		}
		all = append(all, w)
	}
	return all, nil
}

func writeOf(ctx context.Context, o *observe.Observer, live client.Object, twin []byte, object runtime.ApplyConfiguration) (w change.Write, err error) {
	w.Kind = change.KindOf(object)
	id, next := identity(object), ofBridge(object)
	err = o.Reader.Get(ctx, id, live)
	switch {
	case apierrors.IsNotFound(err):
		live = ofBridge(object)
	case err != nil:
		return w, fmt.Errorf("reading %s %s: %w", w.Kind, id, err)
	default:
		w.Before = live
	}
	text, err := merged(twin, desired.Encoded(object), desired.Encoded(live))
	if err != nil {
		return w, err
	}
	if err := json.Unmarshal(text, next); err != nil {
		return w, fmt.Errorf("merging %s %s: %w", w.Kind, id, err)
	}
	w.After = next
	return w, nil
}

// ofBridge is an empty object of a kind that a bridge's plan has; nil for Secrets.
func ofBridge(object runtime.ApplyConfiguration) client.Object {
	switch change.KindOf(object) {
	case "HostedCluster":
		return &hyperv1.HostedCluster{}
	case "NodePool":
		return &hyperv1.NodePool{}
	case "ConfigMap":
		return &corev1.ConfigMap{}
	case "IPAddressPool":
		return &metallb.IPAddressPool{}
	case "L2Advertisement":
		return &metallb.L2Advertisement{}
	case "DPUServiceTemplate":
		return &dpf.DPUServiceTemplate{}
	}
	return nil
}
