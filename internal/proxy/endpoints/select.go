// Package endpoints finds the pods behind the Services that backends name.
package endpoints

import (
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/cldmnky/oooi/internal/unroutable"
)

// Of lists what may be dialled behind one port of a Service: ready pods of the Service's own namespace, or, if none is ready, those that still
// serve while they terminate. Anything else in an EndpointSlice (bare addresses, names, pods of other namespaces, addresses and ports that the
// named pod does not have) could lead the VLAN's clients where its author has no access (CVE-2021-25740).
func Of(service *corev1.Service, owned []*discoveryv1.EndpointSlice, pods Pods, port uint16) ([]netip.AddrPort, error) {
	wanted, err := portOf(service, port)
	if err != nil {
		return nil, err
	}
	var ready, leaving []netip.AddrPort
	for _, slice := range owned {
		number, found := slicePort(slice, wanted)
		if !found || slice.AddressType == discoveryv1.AddressTypeFQDN {
			continue
		}
		for _, e := range slice.Endpoints {
			switch addresses := podAddresses(e, slice.Namespace, pods, number, wanted); {
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
	ready = slices.Compact(ready)
	if len(ready) > mostTargets {
		return ready[:mostTargets], fmt.Errorf("service %s/%s has more than %d pods, of which the proxy dials no more", service.Namespace, service.Name, mostTargets)
	}
	return ready, nil
}

// mostTargets of a Service are dialled: Envoy checks each once a second, and a control plane has three.
const mostTargets = 256

// portOf finds a Service's port. EndpointSlices refer to it by its name.
func portOf(service *corev1.Service, port uint16) (corev1.ServicePort, error) {
	if service.Spec.Type == corev1.ServiceTypeExternalName {
		return corev1.ServicePort{}, fmt.Errorf("service %s/%s is an ExternalName; the proxy dials pods only", service.Namespace, service.Name)
	}
	for _, p := range service.Spec.Ports {
		if p.Port == int32(port) && (p.Protocol == "" || p.Protocol == corev1.ProtocolTCP) {
			return p, nil
		}
	}
	return corev1.ServicePort{}, fmt.Errorf("service %s/%s has no TCP port %d", service.Namespace, service.Name, port)
}

// slicePort returns the number that an EndpointSlice has for a Service's port.
func slicePort(slice *discoveryv1.EndpointSlice, wanted corev1.ServicePort) (uint16, bool) {
	for _, p := range slice.Ports {
		if ptr.Deref(p.Name, "") == wanted.Name && ptr.Deref(p.Protocol, corev1.ProtocolTCP) == corev1.ProtocolTCP && p.Port != nil {
			return uint16(*p.Port), true
		}
	}
	return 0, false
}

// Pods finds a pod of the Service's namespace by its name; false if there is none.
type Pods func(name string) (*corev1.Pod, bool)

func podAddresses(e discoveryv1.Endpoint, namespace string, pods Pods, port uint16, wanted corev1.ServicePort) []netip.AddrPort {
	if !ofPod(e, namespace) {
		return nil
	}
	pod, found := pods(e.TargetRef.Name)
	if !found || !servesAt(pod, wanted, int32(port)) {
		return nil
	}
	own := addressesOf(pod)
	var all []netip.AddrPort
	for _, s := range e.Addresses {
		if addr, err := netip.ParseAddr(s); err == nil && !unroutable.Is(addr) && slices.Contains(own, addr.Unmap()) {
			all = append(all, netip.AddrPortFrom(addr.Unmap(), port))
		}
	}
	return all
}

// servesAt says whether a Service's port leads to a port number of a pod. A named target port means the number that a container declares, as in
// Kubernetes (pkg/api/v1/pod, FindPort), not the slice's number. On the host's network, a port that no container declares is the node's own: its
// kubelet, its API server. HyperShift has no such pod behind a Service that workers dial.
func servesAt(pod *corev1.Pod, wanted corev1.ServicePort, number int32) bool {
	byName := wanted.TargetPort.Type == intstr.String
	if !byName && wanted.TargetPort.IntVal != number {
		return false
	}
	return !byName && !pod.Spec.HostNetwork || slices.ContainsFunc(declared(pod), func(p corev1.ContainerPort) bool {
		return p.ContainerPort == number && (!byName || p.Name == wanted.TargetPort.StrVal)
	})
}

// addressesOf returns a pod's addresses from its status, which kubelets write. A pod that has ended has none: another may have its addresses by
// now.
func addressesOf(pod *corev1.Pod) (all []netip.Addr) {
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return nil
	}
	for _, has := range pod.Status.PodIPs {
		if addr, err := netip.ParseAddr(has.IP); err == nil {
			all = append(all, addr.Unmap())
		}
	}
	return all
}
