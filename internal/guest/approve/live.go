package approve

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"

	certv1 "k8s.io/api/certificates/v1"
	coordination "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/cldmnky/oooi/internal/guest/bounded"
	"github.com/cldmnky/oooi/internal/names"
)

// approvesIn is how long a hosted cluster may take to answer an approval.
const approvesIn = 5 * time.Second

// readNode reads a Node, nil if there is none, and the time when its Lease was renewed.
func readNode(ctx context.Context, a *bounded.API, name string) (*host, time.Time, error) {
	text, err := a.Do(ctx, bounded.Request{Verb: http.MethodGet, Path: hosts.Path + "/" + name, Accept: bounded.AsJSON})
	if apierrors.IsNotFound(err) {
		return nil, time.Time{}, nil
	} else if err != nil {
		return nil, time.Time{}, err
	}
	node, err := hosts.Of(text)
	if err != nil {
		return nil, time.Time{}, bounded.ErrNoKubernetes
	}
	lease, err := bounded.Read[coordination.Lease](ctx, a, nodeLeases+name)
	if apierrors.IsNotFound(err) || err == nil && lease.Spec.RenewTime == nil {
		return &node, time.Time{}, nil
	} else if err != nil {
		return nil, time.Time{}, err
	}
	return &node, lease.Spec.RenewTime.Time, nil
}

// putApproval updates the approval of a CSR; by its resourceVersion the API server refuses one that changed meanwhile. Once begun it is not
// cancelled, because its outcome would be unknown: Forget waits for it.
func putApproval(ctx context.Context, a *bounded.API, r *certv1.CertificateSigningRequest) error {
	body, err := json.Marshal(r)
	if err := cmp.Or(err, ctx.Err()); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), approvesIn)
	defer cancel()
	_, err = a.Do(ctx, bounded.Request{
		Verb: http.MethodPut, Path: requests + "/" + r.Name + "/approval", Accept: bounded.AsJSON, Content: bounded.AsJSON, Body: body,
		Query: url.Values{"fieldManager": {names.ManagerFieldOwner}},
	})
	return err
}
