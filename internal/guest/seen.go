package guest

import (
	"cmp"
	"encoding/json"
	"net/netip"
	"net/url"

	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/plan/input"
)

// servicesOf an Infra, in all namespaces: one that an earlier configuration named is removed too. Not by the Infra's UID, which is
// another after a restore: only one Infra has its name.
func servicesOf(infra types.NamespacedName) collection[*corev1.Service] {
	selector := names.LabelInfra + "=" + infra.Name + "," + names.LabelInfraNamespace + "=" + infra.Namespace
	return collection[*corev1.Service]{path: "/api/v1/services", selects: labelled(selector), of: whole[corev1.Service]}
}

// portsOf the Service of a name; nothing else is kept of it.
func portsOf(name types.NamespacedName) collection[*corev1.Service] {
	return collection[*corev1.Service]{
		path: "/api/v1/namespaces/" + name.Namespace + "/services", selects: named(name.Name),
		of: func(object []byte) (*corev1.Service, error) {
			s, err := whole[corev1.Service](object)
			return &corev1.Service{Spec: corev1.ServiceSpec{Ports: s.Spec.Ports}}, err
		},
	}
}

// ownersOf the Service of a name: the Infra that its labels name.
func ownersOf(name types.NamespacedName) collection[types.NamespacedName] {
	return collection[types.NamespacedName]{
		path: "/api/v1/namespaces/" + name.Namespace + "/services", selects: named(name.Name), metadataOnly: true,
		of: func(object []byte) (types.NamespacedName, error) {
			o, err := whole[metav1.PartialObjectMetadata](object)
			return types.NamespacedName{Namespace: o.Labels[names.LabelInfraNamespace], Name: o.Labels[names.LabelInfra]}, err
		},
	}
}

// nodeObject is a Node without the images, volumes and conditions that make up most of it.
type nodeObject struct {
	Metadata struct {
		Name              string       `json:"name"`
		DeletionTimestamp *metav1.Time `json:"deletionTimestamp"`
	} `json:"metadata"`
	Status struct {
		Addresses  []corev1.NodeAddress `json:"addresses"`
		Conditions []struct {
			Type   corev1.NodeConditionType `json:"type"`
			Status corev1.ConditionStatus   `json:"status"`
		} `json:"conditions"`
	} `json:"status"`
}

func (n *nodeObject) ready() bool {
	ready := false
	for _, c := range n.Status.Conditions {
		ready = ready || c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	}
	return ready
}

var nodes = collection[input.GuestNode]{path: "/api/v1/nodes", of: func(object []byte) (input.GuestNode, error) {
	n, err := whole[nodeObject](object)
	node := input.GuestNode{Name: n.Metadata.Name, Deleting: n.Metadata.DeletionTimestamp != nil, Ready: n.ready()}
	for _, a := range n.Status.Addresses {
		if ip, err := netip.ParseAddr(a.Address); err == nil && ip.Zone() == "" && a.Type == corev1.NodeInternalIP {
			node.Addresses = append(node.Addresses, ip)
		}
	}
	return node, err
}}

// routers are the pods of the default IngressController; its operator names their ports, with the strategy's numbers
// (cluster-ingress-operator, pkg/operator/controller/ingress/deployment.go).
var routers = collection[input.GuestRouter]{
	path: "/api/v1/namespaces/" + input.RouterNamespace + "/pods", selects: labelled(input.RouterLabel + "=" + input.RouterIngress.Name),
	of: func(object []byte) (input.GuestRouter, error) {
		pod, err := whole[corev1.Pod](object)
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

// ingress is how the default IngressController publishes its routers: as they are (status), else as they are to be.
var ingress = collection[*operatorv1.EndpointPublishingStrategy]{
	path: "/apis/operator.openshift.io/v1/namespaces/" + input.RouterIngress.Namespace + "/ingresscontrollers", selects: named(input.RouterIngress.Name),
	of: func(object []byte) (*operatorv1.EndpointPublishingStrategy, error) {
		i, err := whole[operatorv1.IngressController](object)
		return cmp.Or(i.Status.EndpointPublishingStrategy, i.Spec.EndpointPublishingStrategy), err
	},
}

// MetalLB's kinds have one version (go.universe.tf/metallb/api/v1beta1, and its operator's).
const metallb = "/apis/metallb.io/v1beta1/"

var metalLBs = collection[input.GuestMetalLBObject]{path: metallb + "metallbs", of: func(object []byte) (input.GuestMetalLBObject, error) {
	var m struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
		Spec     struct {
			LoadBalancerClass string `json:"loadBalancerClass"`
		} `json:"spec"`
	}
	err := json.Unmarshal(object, &m)
	return input.GuestMetalLBObject{Namespace: m.Metadata.Namespace, Name: m.Metadata.Name, Class: m.Spec.LoadBalancerClass}, err
}}

var advertisements = collection[string]{path: metallb + "l2advertisements", metadataOnly: true, of: func(object []byte) (string, error) {
	o, err := whole[metav1.PartialObjectMetadata](object)
	return o.Name, err
}}

// controllers and speakers, by the labels that MetalLB's manifests and its operator give them.
var (
	controllers = workloads("Deployment", "deployments", "controller")
	speakers    = workloads("DaemonSet", "daemonsets", "speaker")
)

// workloads of a kind with a component of MetalLB. A DaemonSet's fields that are read are a Deployment's too.
func workloads(kind, resource, component string) collection[input.GuestWorkload] {
	return collection[input.GuestWorkload]{
		path: "/apis/apps/v1/" + resource, selects: labelled("app=metallb,component=" + component),
		of: func(object []byte) (input.GuestWorkload, error) {
			d, err := whole[appsv1.Deployment](object)
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

// definition of a kind that a guest may lack; only whether it is there is read.
func definition(crd string) collection[struct{}] {
	return collection[struct{}]{
		path: "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", selects: named(crd), metadataOnly: true,
		of: func([]byte) (struct{}, error) { return struct{}{}, nil },
	}
}

func labelled(selector string) url.Values { return url.Values{"labelSelector": {selector}} }

func named(name string) url.Values { return url.Values{"fieldSelector": {"metadata.name=" + name}} }

func whole[T any](object []byte) (*T, error) {
	o := new(T)
	return o, json.Unmarshal(object, o)
}
