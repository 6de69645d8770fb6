package diffcli

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/change"
	"github.com/cldmnky/oooi/internal/foresee"
)

// NewManager reads the settings of an operator from its manifests.
func NewManager(manifests []Manifest, parse Parser) (Settings, error) {
	for _, m := range manifests {
		if m.GetKind() != "Deployment" || !labels.SelectorFromSet(labels.Set(operator)).Matches(labels.Set(m.GetLabels())) {
			continue
		}
		var d appsv1.Deployment
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(m.Object, &d); err != nil {
			return Settings{}, fmt.Errorf("%s: %w", m.File, err)
		}
		return fromDeployment(d, parse)
	}
	return Settings{}, errors.New("there is no Deployment of the operator (with labels app.kubernetes.io/name: oooi and app.kubernetes.io/component: manager) in what --manager names; write for example: helm template oooi charts/oooi --namespace oooi-system | oooi diff --manager -")
}

// OfManager says what another operator does: what it writes at once, and which pods get another template once somebody has them updated. It
// plans as this binary does, so this should be of the other operator's release.
func OfManager(ctx context.Context, api client.Client, now, next Settings) (r Report, err error) {
	c := newCluster(api, nil)
	d := differ{cluster: c, metrics: now.Metrics, before: c.observer(now), after: c.observer(next)}
	all := &v1alpha1.InfraList{}
	if err := c.List(ctx, all); err != nil {
		return r, err
	}
	for i := range all.Items {
		is, err := d.managed(ctx, client.ObjectKeyFromObject(&all.Items[i]))
		if err != nil {
			return r, err
		}
		if !is.None() || is.Updated != nil {
			r.Infras = append(r.Infras, is)
		}
	}
	r.NotJudged = append(now.Notes, c.notes()...)
	return r, nil
}

// managed is what becomes of one Infra. The operator that runs may plan otherwise than this binary, so children are compared as they are.
func (d *differ) managed(ctx context.Context, key types.NamespacedName) (is Infra, err error) {
	before, err := foresee.Now(ctx, d.before, d.before.Planned, key)
	if err != nil || before.Infra == nil {
		return is, err
	}
	planned := before.Plan.Objects
	before.Plan.Objects = nil
	after, err := foresee.Then(ctx, d.after, d.after.Planned, key, before)
	if err != nil || after.Infra == nil {
		return is, err
	}
	before.Plan.Objects = planned
	is.Change = change.Between(before, after)
	if updated := change.Between(before, after.Updated()); len(updated.Pods) > len(is.Pods) {
		is.Updated = &updated
	}
	pods := is.Pods
	if is.Updated != nil {
		pods = is.Updated.Pods
	}
	is.Streams = d.streams(ctx, before, pods)
	return is, nil
}
