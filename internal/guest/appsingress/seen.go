package appsingress

import (
	"cmp"
	"encoding/json"
	"net/netip"

	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cldmnky/oooi/internal/guest/bounded"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/plan/input"
)

// servicesOf an Infra are in all namespaces, because one of an earlier configuration is removed too. They are found by its name, not by
// its UID, which changes with a restore; only one Infra has its name.
func servicesOf(infra types.NamespacedName) bounded.Collection[*corev1.Service] {
	selector := names.LabelInfra + "=" + infra.Name + "," + names.LabelInfraNamespace + "=" + infra.Namespace
	return bounded.Collection[*corev1.Service]{Path: "/api/v1/services", Selects: bounded.Labelled(selector), Of: bounded.Whole[corev1.Service]}
}

// portsOf is the Service of a name, reduced to its ports.
func portsOf(name types.NamespacedName) bounded.Collection[*corev1.Service] {
	return bounded.Collection[*corev1.Service]{
		Path: "/api/v1/namespaces/" + name.Namespace + "/services", Selects: bounded.Named(name.Name),
		Of: func(object []byte) (*corev1.Service, error) {
			s, err := bounded.Whole[corev1.Service](object)
			return &corev1.Service{Spec: corev1.ServiceSpec{Ports: s.Spec.Ports}}, err
		},
	}
}

// ownersOf is the Infra that the labels of a Service name.
func ownersOf(name types.NamespacedName) bounded.Collection[types.NamespacedName] {
	return bounded.Collection[types.NamespacedName]{
		Path: "/api/v1/namespaces/" + name.Namespace + "/services", Selects: bounded.Named(name.Name), MetadataOnly: true,
		Of: func(object []byte) (types.NamespacedName, error) {
			o, err := bounded.Whole[metav1.PartialObjectMetadata](object)
			return types.NamespacedName{Namespace: o.Labels[names.LabelInfraNamespace], Name: o.Labels[names.LabelInfra]}, err
		},
	}
}

var nodes = bounded.Collection[input.GuestNode]{Path: "/api/v1/nodes", Of: func(object []byte) (input.GuestNode, error) {
	n, err := bounded.Whole[bounded.Node](object)
	node := input.GuestNode{Name: n.Metadata.Name, Deleting: n.Metadata.DeletionTimestamp != nil, Ready: n.Ready()}
	for _, a := range n.Status.Addresses {
		if ip, err := netip.ParseAddr(a.Address); err == nil && ip.Zone() == "" && a.Type == corev1.NodeInternalIP {
			node.Addresses = append(node.Addresses, ip)
		}
	}
	return node, err
}}

// routers are the pods of the default IngressController; its operator names their ports, with the strategy's numbers
// (cluster-ingress-operator, pkg/operator/controller/ingress/deployment.go).
var routers = bounded.Collection[input.GuestRouter]{
	Path: "/api/v1/namespaces/" + input.RouterNamespace + "/pods", Selects: bounded.Labelled(input.RouterLabel + "=" + input.RouterIngress.Name),
	Of: func(object []byte) (input.GuestRouter, error) {
		pod, err := bounded.Whole[corev1.Pod](object)
		ended := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
		r := input.GuestRouter{Node: pod.Spec.NodeName, HostNetwork: pod.Spec.HostNetwork, Ending: pod.DeletionTimestamp != nil || ended}
		for _, c := range pod.Spec.Containers {
			for _, p := range c.Ports {
				switch p.Name {
				case "http":
					r.HTTP = p.ContainerPort
				case "https":
					r.HTTPS = p.ContainerPort
				}
			}
		}
		for _, c := range pod.Status.Conditions {
			r.Ready = r.Ready || c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		}
		return r, err
	},
}

// ingress is how the default IngressController publishes its routers: by status, or else by spec.
var ingress = bounded.Collection[*operatorv1.EndpointPublishingStrategy]{
	Path: "/apis/operator.openshift.io/v1/namespaces/" + input.RouterIngress.Namespace + "/ingresscontrollers", Selects: bounded.Named(input.RouterIngress.Name),
	Of: func(object []byte) (*operatorv1.EndpointPublishingStrategy, error) {
		i, err := bounded.Whole[operatorv1.IngressController](object)
		return cmp.Or(i.Status.EndpointPublishingStrategy, i.Spec.EndpointPublishingStrategy), err
	},
}

// MetalLB's kinds have one version (go.universe.tf/metallb/api/v1beta1, and its operator's).
const metallb = "/apis/metallb.io/v1beta1/"

var metalLBs = bounded.Collection[input.GuestMetalLBObject]{Path: metallb + "metallbs", Of: func(object []byte) (input.GuestMetalLBObject, error) {
	var m struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
		Spec     struct {
			LoadBalancerClass string `json:"loadBalancerClass"`
		} `json:"spec"`
	}
	err := json.Unmarshal(object, &m)
	return input.GuestMetalLBObject{Namespace: m.Metadata.Namespace, Name: m.Metadata.Name, Class: m.Spec.LoadBalancerClass}, err
}}

var advertisements = bounded.Collection[string]{Path: metallb + "l2advertisements", MetadataOnly: true, Of: func(object []byte) (string, error) {
	o, err := bounded.Whole[metav1.PartialObjectMetadata](object)
	return o.Name, err
}}

// controllers and speakers are found by the labels that MetalLB's manifests and its operator set.
var (
	controllers = workloads("Deployment", "deployments", "controller")
	speakers    = workloads("DaemonSet", "daemonsets", "speaker")
)

// workloads are those of a kind that run a component of MetalLB. The fields that we read are the same in a DaemonSet and a Deployment.
func workloads(kind, resource, component string) bounded.Collection[input.GuestWorkload] {
	return bounded.Collection[input.GuestWorkload]{
		Path: "/apis/apps/v1/" + resource, Selects: bounded.Labelled("app=metallb,component=" + component),
		Of: func(object []byte) (input.GuestWorkload, error) {
			d, err := bounded.Whole[appsv1.Deployment](object)
			w := input.GuestWorkload{Kind: kind, Namespace: d.Namespace, Name: d.Name}
			for _, c := range d.Spec.Template.Spec.Containers {
				if c.Name == component {
					w.Container, w.Args = c.Name, c.Args
				}
			}
			return w, err
		},
	}
}

// definition is the CRD of a kind that a hosted cluster may lack; only its existence is read.
func definition(crd string) bounded.Collection[struct{}] {
	return bounded.Collection[struct{}]{
		Path: "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", Selects: bounded.Named(crd), MetadataOnly: true,
		Of: func([]byte) (struct{}, error) { return struct{}{}, nil },
	}
}
