package endpoints

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Bounds of what is kept. At most, the pods of a namespace take less than 8 MiB, and a Service with its EndpointSlices less than 0.5 MiB; the
// sidecar's container has 128 MiB.
const (
	// mostPods that run in a namespace: a control plane has a hundred, and one for each virtual machine.
	mostPods = 2000
	// mostPorts of a pod, or of a Service; those of a control plane have three.
	mostPorts = 32
	// mostSlices of a Service, the oldest: Kubernetes fills a slice of one family with a hundred pods before it begins the next, and mostTargets
	// are dialled.
	mostSlices = 4
	// mostAddresses of a pod or an endpoint: a pod has one of each family, and a slice is of one family.
	mostAddresses = 2
)

func named(o client.Object) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: o.GetNamespace(), Name: o.GetName(), CreationTimestamp: o.GetCreationTimestamp()}
}

func first[T any](most int, all []T) []T { return append([]T(nil), all[:min(most, len(all))]...) }

// services are read one by one, by name.
var services = kind[*corev1.Service]{called: "services", new: &corev1.Service{}, list: &corev1.ServiceList{}, most: 1, part: func(s *corev1.Service) *corev1.Service {
	return &corev1.Service{ObjectMeta: named(s), Spec: corev1.ServiceSpec{Type: s.Spec.Type, Ports: first(mostPorts, s.Spec.Ports)}}
}}

// endpointSlices are those of one Service.
var endpointSlices = kind[*discoveryv1.EndpointSlice]{called: "endpointslices", new: &discoveryv1.EndpointSlice{}, list: &discoveryv1.EndpointSliceList{}, most: mostSlices, part: func(s *discoveryv1.EndpointSlice) *discoveryv1.EndpointSlice {
	part := &discoveryv1.EndpointSlice{ObjectMeta: named(s), AddressType: s.AddressType, Ports: first(mostPorts, s.Ports)}
	for _, e := range s.Endpoints {
		if len(part.Endpoints) <= mostTargets && ofPod(e, s.Namespace) {
			ref := &corev1.ObjectReference{Kind: e.TargetRef.Kind, Namespace: e.TargetRef.Namespace, Name: e.TargetRef.Name}
			part.Endpoints = append(part.Endpoints, discoveryv1.Endpoint{Addresses: first(mostAddresses, e.Addresses), Conditions: e.Conditions, TargetRef: ref})
		}
	}
	return part
}}

// ofPod says whether an endpoint names a pod of a namespace. It bounds the name, which may be as long as the slice is large.
func ofPod(e discoveryv1.Endpoint, namespace string) bool {
	return e.TargetRef != nil && e.TargetRef.Kind == "Pod" && e.TargetRef.Namespace == namespace && len(e.TargetRef.Name) <= validation.DNS1123SubdomainMaxLength
}

// running selects the pods that have addresses. Others cost their author nothing.
var running = client.MatchingFields{"status.phase": string(corev1.PodRunning)}

// pods are kept with their addresses and the ports that their containers declare.
var pods = kind[*corev1.Pod]{called: "pods", new: &corev1.Pod{}, list: &corev1.PodList{}, most: mostPods, part: func(p *corev1.Pod) *corev1.Pod {
	part := &corev1.Pod{ObjectMeta: named(p), Status: corev1.PodStatus{Phase: p.Status.Phase, PodIPs: first(mostAddresses, p.Status.PodIPs)}}
	part.Spec.HostNetwork = p.Spec.HostNetwork
	part.Spec.Containers = []corev1.Container{{Ports: first(mostPorts, declared(p))}}
	return part
}}

// declared returns the TCP ports of a pod's containers and sidecars.
func declared(p *corev1.Pod) (all []corev1.ContainerPort) {
	for _, c := range p.Spec.Containers {
		all = append(all, c.Ports...)
	}
	for _, c := range p.Spec.InitContainers {
		if ptr.Deref(c.RestartPolicy, "") == corev1.ContainerRestartPolicyAlways {
			all = append(all, c.Ports...)
		}
	}
	all = slices.DeleteFunc(all, func(p corev1.ContainerPort) bool { return p.Protocol != "" && p.Protocol != corev1.ProtocolTCP })
	for i := range all { // drops hostIP, whose length has no bound
		all[i] = corev1.ContainerPort{Name: all[i].Name, ContainerPort: all[i].ContainerPort}
	}
	return all
}
