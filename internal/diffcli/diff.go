package diffcli

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/change"
	"github.com/cldmnky/oooi/internal/foresee"
	"github.com/cldmnky/oooi/internal/observe"
	"github.com/cldmnky/oooi/internal/plan/bridge"
	"github.com/cldmnky/oooi/internal/plan/input"
)

// Settings are what the operator plans with.
type Settings struct {
	Input input.Settings
	// Bridges are those of DPUHCPBridges; nil if the operator reconciles none.
	Bridges *bridge.Settings
	// Now is the API server's clock.
	Now func() time.Time
	// Notes say what of them is not known.
	Notes []string
	// Metrics of pods, for the streams that end with them; nil if no pod is asked.
	Metrics Metrics
}

// Report is what a change does.
type Report struct {
	// Objects of the files that change, except Infras and DPUHCPBridges.
	Objects []change.Object `json:"objects,omitempty"`
	// Infras that change, those of the files first.
	Infras []Infra `json:"infras,omitempty"`
	// Bridges that change, those of the files first.
	Bridges []Bridge `json:"bridges,omitempty"`
	// NotJudged is what could not be read, or is not foretold.
	NotJudged []string `json:"notJudged,omitempty"`
	// Unread are the objects of the files that could not be read: nothing is foretold of them.
	Unread []string `json:"unread,omitempty"`
	// PassedOver are the objects of the files of which it is not foretold what they change.
	PassedOver []string `json:"passedOver,omitempty"`
}

// Infra is what becomes of one Infra, and of its leases.
type Infra struct {
	change.Change
	// Other: no file has it.
	Other bool `json:"other,omitempty"`
	// Leases that the change touches, by their addresses.
	Leases []Lease `json:"leases,omitempty"`
	// Streams that the change ends, by the proxy's addresses.
	Streams []Streams `json:"streams,omitempty"`
	// Updated is what becomes of the Infra once its pod templates are updated too; only for another operator.
	Updated *change.Change `json:"updated,omitempty"`
}

// None says that nothing changes of what was read.
func (r Report) None() bool { return len(r.Objects)+len(r.Infras)+len(r.Bridges) == 0 }

// Of says what applying objects does.
func Of(ctx context.Context, api client.Client, settings Settings, manifests []Manifest, namespace string) (Report, error) {
	c := newCluster(api, homes(manifests, namespace))
	r := Report{}
	all, err := c.writes(ctx, manifests, namespace, &r)
	if err != nil {
		return r, err
	}
	var after []client.Object
	for _, w := range all {
		r.Objects = append(r.Objects, w.objects()...)
		after = append(after, w.planned)
	}
	d := differ{cluster: c, metrics: settings.Metrics, before: c.observer(settings), after: c.observer(settings).Over(after...)}
	if err := d.provisioned(ctx, after); err != nil {
		return r, err
	}
	if r.Infras, err = d.infras(ctx); err != nil {
		return r, err
	}
	var unknown []string
	if r.Bridges, unknown, err = d.bridges(ctx, all, settings.Bridges); err != nil {
		return r, err
	}
	r.NotJudged = slices.Concat(settings.Notes, c.notes(), unknown)
	return r, nil
}

// homes are the namespaces of files.
func homes(manifests []Manifest, namespace string) (all []string) {
	for _, m := range manifests {
		if at := m.GetNamespace(); at != "" {
			all = append(all, at)
		} else {
			all = append(all, namespace)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func (c *cluster) notes() (all []string) {
	for _, right := range slices.Sorted(maps.Keys(c.unread)) {
		all = append(all, "you may not "+right+": what depends on it counts as absent")
	}
	return all
}

// differ compares the cluster as it is with the cluster as it would be.
type differ struct {
	*cluster
	before, after *observe.Observer
	metrics       Metrics
	silent        error // of the first pod that did not answer in time: what keeps the API server from it keeps it from all
	// ours are the Infras that the files have, or ask for.
	ours []types.NamespacedName
}

// infras are the Infras that change.
func (d *differ) infras(ctx context.Context) (all []Infra, err error) {
	list := &v1alpha1.InfraList{}
	if err := d.after.Reader.List(ctx, list); err != nil {
		return nil, err
	}
	keys := slices.Clone(d.ours)
	for i := range list.Items {
		if key := client.ObjectKeyFromObject(&list.Items[i]); !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	for _, key := range keys {
		is, err := d.infra(ctx, key)
		if err != nil {
			return nil, err
		}
		if is.Other = !slices.Contains(d.ours, key); !is.None() || len(is.Leases) > 0 {
			all = append(all, is)
		}
	}
	return all, nil
}

func (d *differ) infra(ctx context.Context, key types.NamespacedName) (is Infra, err error) {
	before, err := foresee.Now(ctx, d.before, d.before.Planned, key)
	if err != nil {
		return is, err
	}
	after, err := foresee.Then(ctx, d.after, d.after.Planned, key, before)
	if err != nil {
		return is, err
	}
	if after.Infra == nil {
		return d.endingInfra(ctx, key)
	}
	is.Change = change.Between(before, after)
	d.follow(key, after)
	if is.Leases, err = d.leases(ctx, before, after); err != nil {
		return is, err
	}
	is.Streams = d.streams(ctx, before, is.Pods)
	return is, nil
}

// follow has the Infras that come later see what becomes of one of the files: which addresses its instances have.
func (d *differ) follow(key types.NamespacedName, after change.Picture) {
	if after.Paused != "" || !slices.Contains(d.ours, key) {
		return
	}
	var children []client.Object
	for _, c := range after.Children {
		children = append(children, c.Server)
	}
	d.after = d.after.Over(children...)
}

// provisioned notes the Infras of the files, and adds those that the files' HostedClusters ask for.
func (d *differ) provisioned(ctx context.Context, written []client.Object) error {
	for _, o := range written {
		if _, infra := o.(*v1alpha1.Infra); infra {
			d.ours = append(d.ours, client.ObjectKeyFromObject(o))
		}
	}
	for _, o := range written {
		if _, hc := o.(*hyperv1.HostedCluster); !hc {
			continue
		}
		infra, err := foresee.Provisioned(ctx, d.before, d.after, client.ObjectKeyFromObject(o))
		if err != nil {
			return err
		}
		if infra != nil {
			infra.UID = cmp.Or(infra.UID, d.newUID())
			d.after = d.after.Over(infra)
			d.ours = append(d.ours, client.ObjectKeyFromObject(infra))
		}
	}
	return nil
}
