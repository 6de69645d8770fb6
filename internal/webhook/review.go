// Package webhook answers the API server's admission requests: it warns of what preflight finds, and refuses only what the specification
// says. Whatever else is wrong with an object, its conditions say; they are the gate.
package webhook

import (
	"context"
	"maps"
	"reflect"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/kept"
	"github.com/cldmnky/oooi/internal/observe"
	"github.com/cldmnky/oooi/internal/plan"
	"github.com/cldmnky/oooi/internal/plan/input"
	"github.com/cldmnky/oooi/internal/plan/permission"
	"github.com/cldmnky/oooi/internal/preflight"
)

// patience bounds reading the cluster. It is below the API server's timeout for us (timeoutSeconds in config/webhook), so that what is
// refused without reading is still refused.
const patience = 2 * time.Second

// notJudged is the warning when reading failed.
const notJudged = "NotJudged: the operator could not read the cluster; once this object is stored, its conditions say whether it works"

// reviewer answers admission requests. It writes nothing, so a dry run leaves no trace.
type reviewer struct {
	observer *observe.Observer
	plan     func(input.Input) plan.InfraPlan
	bridges  *observe.Bridges // nil where DPUHCPBridges are not served
	scheme   *runtime.Scheme
	decoder  admission.Decoder
	log      logr.Logger
}

// Handle implements admission.Handler. An object that cannot be decoded is let through: enforcing the schema is the API server's job.
func (r reviewer) Handle(ctx context.Context, request admission.Request) admission.Response {
	before, after, err := r.decode(request)
	if err != nil {
		r.log.Error(err, "reading an admission request", "kind", request.Kind.Kind, "namespace", request.Namespace, "name", request.Name)
		return admission.Allowed("")
	}
	if leftAlone(before, after) {
		return admission.Allowed("")
	}
	if because := r.refused(before, after); len(because) > 0 {
		return admission.Denied(strings.Join(because, "; "))
	}
	switch after := after.(type) {
	case *v1alpha1.Infra:
		was, _ := before.(*v1alpha1.Infra)
		return admission.Allowed("").WithWarnings(r.warnings(ctx, was, after)...)
	case *dpuv1.DPUHCPBridge:
		return r.bridge(ctx, before, after)
	}
	return admission.Allowed("")
}

// leftAlone says whether a request deletes, or does not change the spec. matchConditions keep these away, but webhooks that OLM makes can have
// none (docs/adr/0021-a-bundle-made-at-the-site.md).
func leftAlone(before, after runtime.Object) bool {
	if object, is := after.(client.Object); is && object.GetDeletionTimestamp() != nil {
		return true
	}
	spec := func(o runtime.Object) any { return reflect.ValueOf(o).Elem().FieldByName("Spec").Interface() }
	return before != nil && equality.Semantic.DeepEqual(spec(before), spec(after))
}

// decode returns the object and its old version, which is nil for a new object.
func (r reviewer) decode(request admission.Request) (before, after runtime.Object, err error) {
	kind := schema.GroupVersionKind(request.Kind)
	if after, err = r.scheme.New(kind); err != nil {
		return nil, nil, err
	}
	if err := r.decoder.DecodeRaw(request.Object, after); err != nil || len(request.OldObject.Raw) == 0 {
		return nil, after, err
	}
	if before, err = r.scheme.New(kind); err != nil {
		return nil, nil, err
	}
	return before, after, r.decoder.DecodeRaw(request.OldObject, before)
}

// refused says what this change may not write. What was stored before may stay: mending something else is not refused.
func (r reviewer) refused(before, after runtime.Object) (because []string) {
	was, images := permission.WrittenImages(before), permission.WrittenImages(after)
	maps.DeleteFunc(images, func(field, image string) bool { return was[field] == image })
	for _, f := range permission.ImageOverrides(r.observer.Settings, images) {
		because = append(because, f.Reason+": "+f.Message)
	}
	if f := tooLarge(after); f != nil && tooLarge(before) == nil {
		because = append(because, f.Reason+": "+f.Message)
	}
	return because
}

// tooLarge is the finding that the object would get once stored.
func tooLarge(object runtime.Object) *finding.Finding {
	written, is := object.(kept.Object)
	if !is {
		return nil
	}
	for _, f := range kept.Judge(v1alpha1.ConditionAccepted, kept.AsWritten(written)) {
		return &f
	}
	return nil
}

func (r reviewer) warnings(ctx context.Context, before, after *v1alpha1.Infra) []string {
	unheard := r.observer.Over() // an Infra that is not stored gets no events
	seen, err := unheard.Around(ctx, after)
	if err != nil {
		r.log.Error(err, "looking around an Infra that is to be written", "namespace", after.Namespace, "name", after.Name)
		return []string{notJudged}
	}
	planned := r.plan(seen.Input)
	return warningsOf(append(preflight.Of(seen.Input, planned).Findings, r.interruptions(ctx, before, after, planned)...), ofInfras)
}
