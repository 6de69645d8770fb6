package live

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/bridgecli"
	"github.com/cldmnky/oooi/internal/diagnosecli"
	"github.com/cldmnky/oooi/internal/picture"
	"github.com/cldmnky/oooi/internal/step"
)

// patience for the reading of one page.
const patience = 9 * time.Second

// Infra reads one, with the API server's time. Only what is looked at is drawn, once for all who look.
func Infra(api client.Reader, of types.NamespacedName, now func() time.Time, share diagnosecli.Share) Reader {
	return func(ctx context.Context) (Shown, error) {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		var infra v1alpha1.Infra
		if err := api.Get(ctx, of, &infra); err != nil {
			return nil, refused(err)
		}
		facts := diagnosecli.Glance(ctx, api, &infra, now(), share)
		page := sync.OnceValue(func() picture.Page { return picture.Of(facts) }) // kept for workers' pages only, for it is large
		whole := sync.OnceValue(func() picture.Document { return picture.Of(facts).Document() })
		return func(worker string) picture.Document {
			if worker != "" {
				return page().Worker(worker)
			}
			return whole()
		}, nil
	}
}

// Overview reads all Infras and bridges of these namespaces; "" are all.
func Overview(api client.Reader, infras, bridges []string) Reader {
	return func(ctx context.Context) (Shown, error) {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		var o picture.Overview
		for _, namespace := range infras {
			var all v1alpha1.InfraList
			if err := api.List(ctx, &all, client.InNamespace(namespace)); err != nil {
				return nil, refused(err)
			}
			for i := range all.Items {
				o.Infras = append(o.Infras, picture.LineOf(&all.Items[i]))
			}
		}
		for _, namespace := range bridges {
			some, err := bridgesIn(ctx, api, namespace)
			if err != nil {
				return nil, refused(err)
			}
			o.Bridges = append(o.Bridges, some...)
		}
		slices.SortFunc(o.Infras, func(a, b picture.Line) int {
			return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
		})
		d := o.Document()
		return func(string) picture.Document { return d }, nil
	}
}

func bridgesIn(ctx context.Context, api client.Reader, namespace string) (all []picture.Bridge, err error) {
	var list dpuv1.DPUHCPBridgeList
	err = api.List(ctx, &list, client.InNamespace(namespace))
	if err != nil && (meta.IsNoMatchError(err) || apierrors.IsForbidden(err)) {
		return nil, nil // a cluster need not have bridges, nor a viewer of Infras see them
	}
	for i := range list.Items {
		seen, err := bridgecli.See(ctx, api, &list.Items[i])
		if err != nil {
			return nil, err
		}
		s := bridgecli.Of(&list.Items[i], seen)
		b := picture.Bridge{Namespace: s.Namespace, Name: s.Name, Ready: step.OK, Says: s.Because, DPUs: s.DPUs, Requests: picture.RequestsOf(&list.Items[i]), NotRead: s.NotRead}
		if !s.Ready {
			b.Ready = step.Fail
		}
		all = append(all, b)
	}
	return all, err
}

// refused says of an API server's refusal what the viewer is answered.
func refused(err error) error {
	switch {
	case apierrors.IsForbidden(err):
		return Refusal{http.StatusForbidden, err.Error()}
	case apierrors.IsUnauthorized(err):
		return Refusal{http.StatusUnauthorized, err.Error()}
	case apierrors.IsNotFound(err):
		return Refusal{http.StatusNotFound, err.Error()}
	case meta.IsNoMatchError(err):
		return Refusal{http.StatusNotFound, err.Error() + "; install the operator's CRDs first"}
	}
	return err
}
