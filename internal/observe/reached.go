package observe

import (
	"context"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/internal/plan/workload"
)

// IndexLeading finds Services by leading.
const IndexLeading = "leading"

// leading are the addresses and the node ports that lead to a Service.
func leading(o client.Object) (all []string) {
	s := o.(*corev1.Service)
	for _, a := range workload.AddressesOf(s) {
		all = append(all, a.String())
	}
	for _, p := range s.Spec.Ports {
		if p.NodePort != 0 {
			all = append(all, strconv.Itoa(int(p.NodePort)))
		}
	}
	return all
}

// reached are the Services that a child's pods may reach, and their EndpointSlices.
func (o *Observer) reached(ctx context.Context, named workload.References) (services []corev1.Service, endpoints []discoveryv1.EndpointSlice, err error) {
	for _, key := range append([]types.NamespacedName{workload.APIService}, named.Services...) {
		s, err := get[corev1.Service](ctx, o, key)
		if err != nil {
			return nil, nil, err
		}
		if s != nil {
			services = append(services, *s)
		}
	}
	for _, a := range named.Addresses {
		for _, leading := range []string{a.Addr().Unmap().String(), strconv.Itoa(int(a.Port()))} {
			found := &corev1.ServiceList{}
			if err := o.Reader.List(ctx, found, client.MatchingFields{IndexLeading: leading}, client.UnsafeDisableDeepCopy); err != nil {
				return nil, nil, fmt.Errorf("finding the Service of %s: %w", a, err)
			}
			services = append(services, found.Items...)
		}
	}
	for _, s := range services {
		found, err := list[discoveryv1.EndpointSliceList](ctx, o, s.Namespace, client.MatchingLabels{discoveryv1.LabelServiceName: s.Name})
		if err != nil {
			return nil, nil, err
		}
		endpoints = append(endpoints, found.Items...)
	}
	return services, endpoints, nil
}
