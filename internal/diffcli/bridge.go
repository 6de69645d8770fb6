package diffcli

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/internal/change"
	"github.com/cldmnky/oooi/internal/dpf"
	"github.com/cldmnky/oooi/internal/foresee"
	"github.com/cldmnky/oooi/internal/observe"
	"github.com/cldmnky/oooi/internal/plan/bridge"
	"github.com/cldmnky/oooi/internal/plan/input"
)

// Bridge is what becomes of one DPUHCPBridge.
type Bridge struct {
	change.BridgeChange
	// Other: no file has it.
	Other bool `json:"other,omitempty"`
}

// bridges are those of the files that change, and the others that do. Where the files have neither a bridge nor anything of DPF's, none is read:
// that takes the right to read Secrets.
func (d *differ) bridges(ctx context.Context, all []written, settings *bridge.Settings) (changed []Bridge, unknown []string, err error) {
	ours, others, err := d.bridgesOf(ctx, all)
	if err != nil || len(ours)+len(others) == 0 {
		return nil, nil, err
	}
	if settings == nil {
		changed, err = d.unreconciled(ctx, ours)
		return changed, []string{"DPUHCPBridges: the operator reconciles none (--dpu-bridge=false)"}, err
	}
	before, after := &observe.Bridges{Observer: d.before, Settings: *settings}, &observe.Bridges{Observer: d.after, Settings: *settings}
	for n, key := range slices.Concat(ours, others) {
		c, notes, err := d.bridge(ctx, before, after, key)
		if err != nil {
			return nil, nil, err
		}
		if !c.None() {
			changed = append(changed, Bridge{c, n >= len(ours)})
		}
		unknown = append(unknown, notes...)
	}
	return changed, unknown, nil
}

func (d *differ) bridge(ctx context.Context, before, after *observe.Bridges, key types.NamespacedName) (c change.BridgeChange, notes []string, err error) {
	was, err := d.pictured(ctx, before, key)
	if err != nil {
		return c, nil, err
	}
	is, err := d.pictured(ctx, after, key)
	if err != nil {
		return c, nil, err
	}
	if is.Bridge == nil {
		return d.endingBridge(ctx, key)
	}
	is.Unread = cmp.Or(is.Unread, was.Unread)
	writes, err := foresee.Writes(ctx, d.after, was, is)
	if err != nil {
		return c, nil, err
	}
	if c = change.BetweenBridges(was, is, writes); !c.None() || is.Unread != "" {
		notes = unknownOf(key, c, is)
	}
	return c, notes, nil
}

// pictured is a bridge's picture. A DPUCluster that may not be read is not one that is gone.
func (d *differ) pictured(ctx context.Context, o *observe.Bridges, key types.NamespacedName) (p change.BridgePicture, err error) {
	p, err = foresee.Bridge(ctx, o, key)
	if err != nil || p.Bridge == nil {
		return p, err
	}
	if right := d.right("get", dpf.GroupVersion.WithKind("DPUCluster"), bridge.ClusterKey(p.Bridge).Namespace); p.DPUCluster == nil && d.unread[right] {
		p.Unread = cmp.Or(p.Unread, "get its DPUCluster")
	}
	return p, nil
}

// unreconciled bridges change themselves, and nothing else.
func (d *differ) unreconciled(ctx context.Context, ours []types.NamespacedName) (changed []Bridge, err error) {
	for _, key := range ours {
		c, err := d.asWritten(ctx, key)
		if err != nil {
			return nil, err
		}
		if !c.None() {
			changed = append(changed, Bridge{BridgeChange: c})
		}
	}
	return changed, nil
}

// asWritten is what the files change in a bridge, and no more.
func (d *differ) asWritten(ctx context.Context, key types.NamespacedName) (c change.BridgeChange, err error) {
	was, err := (&observe.Bridges{Observer: d.before}).Bridge(ctx, key)
	if err != nil {
		return c, err
	}
	is, err := (&observe.Bridges{Observer: d.after}).Bridge(ctx, key)
	if err != nil || is == nil {
		return c, err
	}
	return change.OfBridge(was, is), nil
}

// bridgesOf are the bridges of the files, and all others, if the files have what bridges are planned from.
func (d *differ) bridgesOf(ctx context.Context, all []written) (ours, others []types.NamespacedName, err error) {
	var concerned bool
	for _, w := range all {
		_, own := w.planned.(*dpuv1.DPUHCPBridge)
		if own && !slices.Contains(ours, client.ObjectKeyFromObject(w.planned)) {
			ours = append(ours, client.ObjectKeyFromObject(w.planned))
		}
		concerned = concerned || own || slices.Contains(ofDPF, w.after.GroupVersionKind().GroupKind())
	}
	if !concerned {
		return nil, nil, nil
	}
	list := &dpuv1.DPUHCPBridgeList{}
	if err := d.after.Reader.List(ctx, list); err != nil {
		return nil, nil, fmt.Errorf("listing bridges: %w", err)
	}
	for i := range list.Items {
		if key := client.ObjectKeyFromObject(&list.Items[i]); !slices.Contains(ours, key) {
			others = append(others, key)
		}
	}
	return ours, others, nil
}

// unknownOf is what only the operator can say of a bridge's change.
func unknownOf(key types.NamespacedName, c change.BridgeChange, is change.BridgePicture) (all []string) {
	note := func(text string) { all = append(all, fmt.Sprintf("DPUHCPBridge %s: %s", key, text)) }
	if is.Unread != "" {
		note("which objects are written: you may not " + is.Unread + ", from which it is planned")
		return all
	}
	if slices.ContainsFunc(is.Bridge.Status.Conditions, func(c metav1.Condition) bool { return c.Reason == input.GuestNotGranted }) {
		note("whether the operator may write that: its status says " + input.GuestNotGranted + ", and only its own attempts say what it may do")
	}
	for _, text := range is.Unknown {
		note(text)
	}
	if slices.ContainsFunc(c.Templates, func(t change.Template) bool { return t.Verb != change.Delete }) {
		note("the text of its templates, and whether DPF takes one of that size: the operator downloads the ignition that they are made from")
	}
	if len(is.Plan.Adopts) > 0 {
		note("what changes in the HostedCluster once it is taken over: ask again then")
	}
	return all
}
