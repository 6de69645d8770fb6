package desired

import (
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"
)

// Listening are the port numbers on which pods listen behind one port of a Service. They come from its EndpointSlices, because a targetPort
// may be a name that only the pods define; without slices, from a numeric targetPort.
func Listening(s *corev1.Service, port corev1.ServicePort, endpoints []discoveryv1.EndpointSlice) []int32 {
	var all []int32
	for _, slice := range endpoints {
		if slice.Namespace != s.Namespace || slice.Labels[discoveryv1.LabelServiceName] != s.Name {
			continue
		}
		for _, p := range slice.Ports {
			if ptr.Deref(p.Name, "") == port.Name && p.Port != nil {
				all = append(all, *p.Port)
			}
		}
	}
	if len(all) == 0 && port.TargetPort.IntVal != 0 {
		all = append(all, port.TargetPort.IntVal)
	}
	return all
}
