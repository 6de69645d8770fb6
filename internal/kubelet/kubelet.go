// Package kubelet reads what kubelets say about pods and nodes.
package kubelet

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// PodCondition is a pod's condition of a type; zero if it has none.
func PodCondition(p *corev1.Pod, kind corev1.PodConditionType) corev1.PodCondition {
	if i := slices.IndexFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == kind }); i >= 0 {
		return p.Status.Conditions[i]
	}
	return corev1.PodCondition{}
}

// NodeReady is a node's condition Ready: Unknown if its kubelet, without which its pods do not end, no longer reports; zero if it has none.
func NodeReady(n *corev1.Node) corev1.NodeCondition {
	if i := slices.IndexFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == corev1.NodeReady }); i >= 0 {
		return n.Status.Conditions[i]
	}
	return corev1.NodeCondition{}
}

// Devices are the extended resources, whose names have a domain, unlike cpu and memory.
func Devices(all corev1.ResourceList) corev1.ResourceList {
	devices := maps.Clone(all)
	maps.DeleteFunc(devices, func(name corev1.ResourceName, _ resource.Quantity) bool { return !strings.Contains(string(name), "/") })
	return devices
}
