package approve

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	certv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/cldmnky/oooi/internal/csr"
	"github.com/cldmnky/oooi/internal/guest/bounded"
	"github.com/cldmnky/oooi/internal/guest/kubeconfig"
)

// Explain decides about one CSR as an approver would now, and approves nothing. It connects to the kubeconfig's own server, because its
// caller is seldom where the operator runs.
func Explain(ctx context.Context, access kubeconfig.Access, dial bounded.Dial, name string, f csr.Facts) (csr.Decision, error) {
	d, err := explain(ctx, access, dial, name, f)
	if err != nil {
		return d, fmt.Errorf("the hosted cluster's API %s: %s", access.Server, bounded.Why(err, access))
	}
	return d, nil
}

func explain(ctx context.Context, access kubeconfig.Access, dial bounded.Dial, name string, f csr.Facts) (d csr.Decision, err error) {
	api, err := bounded.Connect(bounded.WithPort(access.Server), access, dial)
	if err != nil {
		return d, err
	}
	defer api.Close()
	r, err := bounded.Read[certv1.CertificateSigningRequest](ctx, api, requests+"/"+name)
	if err != nil {
		return d, err
	}
	asked, _ := csr.Read(r)
	if err := gather(ctx, api, asked.Host, &f); err != nil {
		return d, err
	}
	f.Now = time.Now()
	return csr.Decide(r, f), nil
}

// gather reads the facts about a host.
func gather(ctx context.Context, a *bounded.API, name string, f *csr.Facts) error {
	var around surroundings
	f.Approved, f.Asking = map[string][]csr.Approval{}, map[string][]csr.Asked{}
	for _, read := range []func() error{
		func() error { return bounded.ListAll(ctx, a, hosts, around.haveNodes) },
		func() error { return bounded.ListAll(ctx, a, takenByServices, around.haveServices) },
		func() error { return bounded.ListAll(ctx, a, apiEndpoints, around.haveEndpoints) },
		func() error {
			_, err := bounded.Collection[struct{}]{Path: requests}.List(ctx, a, func(_ watch.EventType, object []byte) error {
				var r certv1.CertificateSigningRequest
				if json.Unmarshal(object, &r) != nil {
					return nil // not a CSR
				}
				if host, given, is := csr.Approved(&r); is && host == name {
					f.Approved[host] = append(f.Approved[host], given)
				} else if asked, form := csr.Read(&r); !is && csr.IsOurs(&r) && csr.Broken(form) == "" && asked.Host == name {
					f.Asking[name] = append(f.Asking[name], asked)
				}
				return nil
			})
			return err
		},
	} {
		if err := read(); err != nil {
			return err
		}
	}
	f.Nodes, f.Services, f.ServicesUnknown, f.HostedAPI = around.nodes, around.services, around.unknown, around.api
	if _, joined := f.Nodes[name]; !joined {
		return nil
	}
	_, renewed, err := readNode(ctx, a, name)
	if !renewed.IsZero() {
		f.Leases = map[string]time.Time{name: renewed}
	}
	return err
}
