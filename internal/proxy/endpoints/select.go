// Package endpoints finds the pods behind the Services that backends name.
package endpoints

import (
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"

	"github.com/cldmnky/oooi/internal/unroutable"
)

// Of lists what may be dialled behind one port of a Service: ready pods of the Service's own namespace, or, when none is
// ready, those that still serve while they terminate. Anything else that an EndpointSlice may hold (bare addresses, pods
// elsewhere, names, an address that the pod it names has not) could lead the VLAN's clients where its author may not go
// (CVE-2021-25740).
func Of(service *corev1.Service, owned []*discoveryv1.EndpointSlice, pods Pods, port uint16) ([]netip.AddrPort, error) {
	name, err := portName(service, port)
	if err != nil {
		return nil, err
	}
	var ready, leaving []netip.AddrPort
	for _, slice := range owned {
		number, found := slicePort(slice, name)
		if !found || slice.AddressType == discoveryv1.AddressTypeFQDN {
			continue
		}
		for _, e := range slice.Endpoints {
			switch addresses := podAddresses(e, slice.Namespace, pods, number); {
			case ptr.Deref(e.Conditions.Ready, true):
				ready = append(ready, addresses...)
			case ptr.Deref(e.Conditions.Serving, false) && ptr.Deref(e.Conditions.Terminating, false):
				leaving = append(leaving, addresses...)
			}
		}
	}
	if len(ready) == 0 {
		ready = leaving
	}
	slices.SortFunc(ready, netip.AddrPort.Compare)
	return slices.Compact(ready), nil
}

// portName is how EndpointSlices call a port of a Service.
func portName(service *corev1.Service, port uint16) (string, error) {
	if service.Spec.Type == corev1.ServiceTypeExternalName {
		return "", fmt.Errorf("service %s/%s is an ExternalName; the proxy dials pods only", service.Namespace, service.Name)
	}
	for _, p := range service.Spec.Ports {
		if p.Port == int32(port) && (p.Protocol == "" || p.Protocol == corev1.ProtocolTCP) {
			return p.Name, nil
		}
	}
	return "", fmt.Errorf("service %s/%s has no TCP port %d", service.Namespace, service.Name, port)
}

func slicePort(slice *discoveryv1.EndpointSlice, name string) (uint16, bool) {
	for _, p := range slice.Ports {
		if ptr.Deref(p.Name, "") == name && ptr.Deref(p.Protocol, corev1.ProtocolTCP) == corev1.ProtocolTCP && p.Port != nil {
			return uint16(*p.Port), true
		}
	}
	return 0, false
}

// Pods finds a pod of the Service's namespace by its name; nil where there is none.
type Pods func(name string) *corev1.Pod

func podAddresses(e discoveryv1.Endpoint, namespace string, pods Pods, port uint16) []netip.AddrPort {
	if e.TargetRef == nil || e.TargetRef.Kind != "Pod" || e.TargetRef.Namespace != namespace {
		return nil
	}
	own := addressesOf(pods(e.TargetRef.Name))
	var all []netip.AddrPort
	for _, s := range e.Addresses {
		if addr, err := netip.ParseAddr(s); err == nil && !unroutable.Is(addr) && slices.Contains(own, addr.Unmap()) {
			all = append(all, netip.AddrPortFrom(addr.Unmap(), port))
		}
	}
	return all
}

// addressesOf a pod, by its status, which kubelets write. One that has ended keeps there what another may have by now.
func addressesOf(pod *corev1.Pod) (all []netip.Addr) {
	if pod == nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return nil
	}
	for _, has := range pod.Status.PodIPs {
		if addr, err := netip.ParseAddr(has.IP); err == nil {
			all = append(all, addr.Unmap())
		}
	}
	return all
}
