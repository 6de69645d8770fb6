package webhook

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/plan/bridge"
	"github.com/cldmnky/oooi/internal/preflight"
)

// bridge judges a bridge as its conditions would, except for what they say of Secrets: the answer goes to whoever asked.
func (r reviewer) bridge(ctx context.Context, before runtime.Object, after *dpuv1.DPUHCPBridge) admission.Response {
	if r.bridges == nil {
		return admission.Allowed("")
	}
	was, _ := before.(*dpuv1.DPUHCPBridge)
	seen, err := r.bridges.Around(ctx, after)
	if err != nil {
		r.log.Error(err, "looking around a bridge that is to be written", "namespace", after.Namespace, "name", after.Name)
		return admission.Allowed("").WithWarnings(notJudged)
	}
	refused, awaited := bridge.Judge(seen.Input, was)
	if len(refused) > 0 {
		return admission.Denied(refusal(refused))
	}
	return admission.Allowed("").WithWarnings(warningsOf(listed(awaited), ofBridges)...)
}

// refusal is one sentence per finding: the field, what is wrong, how to mend it, and the condition that would say so.
func refusal(findings []finding.Finding) string {
	var all []string
	for _, f := range findings {
		text := fmt.Sprintf("%s (%s=False, %s)", f.Message, f.Condition, f.Reason)
		if f.Field != "" {
			text = f.Field + ": " + text
		}
		all = append(all, text)
	}
	return strings.Join(all, "; ")
}

func listed(findings []finding.Finding) (all []preflight.Finding) {
	for _, f := range findings {
		all = append(all, preflight.Finding{Code: f.Reason, Condition: f.Condition, Field: f.Field, Reason: f.Message})
	}
	return all
}
