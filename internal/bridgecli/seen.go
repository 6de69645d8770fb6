package bridgecli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/internal/dpf"
	"github.com/cldmnky/oooi/internal/guest/approve"
	"github.com/cldmnky/oooi/internal/plan/bridge"
	"github.com/cldmnky/oooi/internal/plan/dpu"
)

// Seen is what was read of a bridge's DPUs.
type Seen struct {
	// DPUs of its DPUCluster, by name.
	DPUs  []dpf.DPU
	Facts dpu.Facts
	// Approved is when an Event last said that a CSR of a host was approved.
	Approved map[string]time.Time
	// NotRead is what the caller may not read, or the cluster does not serve.
	NotRead []string
}

// See reads what a bridge's DPUs depend on, with the caller's own permissions.
func See(ctx context.Context, api client.Reader, b *dpuv1.DPUHCPBridge) (Seen, error) {
	r := reading{ctx: ctx, api: api}
	r.seen.DPUs = r.dpus(b)
	flavors := &dpf.DPUFlavorList{}
	r.list("DPUFlavors", flavors)
	r.seen.Facts.Flavors = flavors.Items
	r.templates()
	r.seen.Approved = r.approved(b)
	return r.seen, r.err
}

// SeeAhead reads what tells, before there are DPUs, what will keep them from being installed.
func SeeAhead(ctx context.Context, api client.Reader, b *dpuv1.DPUHCPBridge, seen Seen) (Seen, error) {
	key := bridge.DeploymentKey(b)
	if key.Name == "" {
		return seen, nil
	}
	r := reading{ctx: ctx, api: api, seen: seen}
	deployments, nodes := &dpf.DPUDeploymentList{}, &dpf.DPUNodeList{}
	r.list("DPUDeployments", deployments, client.InNamespace(key.Namespace))
	r.list("DPUNodes", nodes, client.InNamespace(key.Namespace))
	for i := range deployments.Items {
		if deployments.Items[i].Name == key.Name {
			r.seen.Facts.Deployment = &deployments.Items[i]
		}
	}
	r.seen.Facts.Nodes = nodes.Items
	return r.seen, r.err
}

type reading struct {
	ctx  context.Context
	api  client.Reader
	seen Seen
	err  error
}

// list says whether it could read; what may not be read is noted.
func (r *reading) list(what string, into client.ObjectList, options ...client.ListOption) bool {
	if r.err != nil {
		return false
	}
	err := r.api.List(r.ctx, into, options...)
	switch {
	case err == nil:
		return true
	case apierrors.IsForbidden(err):
		r.seen.NotRead = append(r.seen.NotRead, what+": you may not list them")
	case meta.IsNoMatchError(err):
		r.seen.NotRead = append(r.seen.NotRead, what+": the cluster does not serve them")
	default:
		r.err = fmt.Errorf("reading %s: %w", what, err)
	}
	return false
}

func (r *reading) dpus(b *dpuv1.DPUHCPBridge) []dpf.DPU {
	cards, cluster := &dpf.DPUList{}, bridge.ClusterKey(b)
	if !r.list("DPUs", cards) {
		return nil
	}
	all := slices.DeleteFunc(cards.Items, func(d dpf.DPU) bool { return !d.Joins(cluster) })
	slices.SortFunc(all, func(a, b dpf.DPU) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return all
}

// templates are read where the one DPFOperatorConfig is. Without them, nothing is known of templates.
func (r *reading) templates() {
	configs, templates := &dpf.DPFOperatorConfigList{}, &metav1.PartialObjectMetadataList{}
	templates.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMapList"))
	r.list("DPFOperatorConfigs", configs)
	config, _ := dpf.Only(configs.Items)
	if config != nil && !r.list("bf.cfg templates", templates, client.InNamespace(config.Namespace), client.MatchingLabels{dpf.LabelTemplate: "true"}) {
		return
	}
	r.seen.Facts.Configs = configs.Items
	for _, t := range templates.Items {
		r.seen.Facts.Templates = append(r.seen.Facts.Templates, corev1.ConfigMap{ObjectMeta: t.ObjectMeta})
	}
	r.measured()
}

// measured reads the text of few templates: each may have a megabyte, and other bridges have some, too.
func (r *reading) measured() {
	measured := r.seen.Facts.Measured(r.seen.DPUs)
	for i := range r.seen.Facts.Templates {
		t := &r.seen.Facts.Templates[i]
		key := client.ObjectKeyFromObject(t)
		if r.err != nil || !slices.Contains(measured, key) {
			continue
		}
		switch err := r.api.Get(r.ctx, key, t); {
		case apierrors.IsForbidden(err):
			r.seen.NotRead = append(r.seen.NotRead, fmt.Sprintf("ConfigMap %s: you may not get it", key))
		case client.IgnoreNotFound(err) != nil:
			r.err = fmt.Errorf("reading ConfigMap %s: %w", key, err)
		}
	}
}

// approved reads the Events of the bridge.
func (r *reading) approved(b *dpuv1.DPUHCPBridge) map[string]time.Time {
	told, last := &eventsv1.EventList{}, map[string]time.Time{}
	r.list("Events", told, client.InNamespace(b.Namespace), client.MatchingFields{"regarding.uid": string(b.UID)})
	for _, e := range told.Items {
		at := e.EventTime.Time
		if e.Series != nil {
			at = e.Series.LastObservedTime.Time
		}
		if e.Related == nil || e.Type != corev1.EventTypeNormal {
			continue
		}
		if host := approve.ApprovedHost(e.Note, e.Related.Name); host != "" && at.After(last[host]) {
			last[host] = at
		}
	}
	return last
}
