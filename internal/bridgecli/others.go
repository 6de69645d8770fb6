package bridgecli

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/internal/finding"
)

// others reads all other bridges.
func (p *Platform) others(ctx context.Context, api client.Reader) error {
	all := &dpuv1.DPUHCPBridgeList{}
	if err := api.List(ctx, all); apierrors.IsForbidden(err) {
		p.OthersUnread = true
		return nil
	} else if err != nil {
		return fmt.Errorf("listing DPUHCPBridges: %w", err)
	}
	p.Others = slices.DeleteFunc(all.Items, func(b dpuv1.DPUHCPBridge) bool {
		return b.Namespace == p.Bridge.Namespace && b.Name == p.Bridge.Name
	})
	return nil
}

// behind names the bridges whose hosted clusters are not at a release yet.
func (p Platform) behind(to string) string {
	if p.OthersUnread {
		return "; you may not list the other bridges, whose hosted clusters come before it, too"
	}
	var all []string
	for i := range p.Others {
		if b := &p.Others[i]; isBehind(b, to) {
			all = append(all, fmt.Sprintf("%s/%s (%s)", b.Namespace, b.Name, b.Spec.OCPReleaseImage))
		}
	}
	if len(all) == 0 {
		return ""
	}
	slices.Sort(all)
	return "; other hosted clusters are not at the release yet, and come before it, too: " + finding.Some(all)
}

// isBehind goes by the tags of releases, and where one has none, by the whole name.
func isBehind(b *dpuv1.DPUHCPBridge, to string) bool {
	if meta.IsStatusConditionTrue(b.Status.Conditions, dpuv1.ConditionHostedClusterProgressing) {
		return true
	}
	is := string(b.Spec.OCPReleaseImage)
	runs, target := versionOf(is), versionOf(to)
	if runs == nil || target == nil {
		return is != to
	}
	return runs.LessThan(target)
}
