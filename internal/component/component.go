// Package component describes the services that an Infra has on its VLAN, each in one place: whoever asks something of all of them
// ranges over All.
package component

import (
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/cldmnky/oooi/api/v1alpha1"
)

// Name of a component, as spec.infraComponents and label app have it.
type Name string

// Component is one service. Its Server is the object that it is configured by: a DHCPServer, a DNSServer, a ProxyServer.
type Component struct {
	Name
	// Kind of its Server, and Resource as Roles name it.
	Kind, Resource string
	// Workload is the kind of what runs its pod: StatefulSet or Deployment.
	Workload string
	// Ready is the condition of an Infra that hands its Server's Ready on.
	Ready string
	// Needs are conditions that its daemon writes, and that its Server's Ready needs.
	Needs []string
	// NoResolver says what it is, where somebody takes it for a resolver.
	NoResolver string
	// Twice: it may have a second instance.
	Twice bool
	// IPv4Only: it has nothing to serve on an IPv6 VLAN.
	IPv4Only bool

	// New is an empty Server, and NewList a list of them.
	New     func() Server
	NewList func() List
	// Wanted is what an Infra says of it.
	Wanted func(v1alpha1.InfraComponents) Wanted
	// Written is what its Server says.
	Written func(Server) Written
	// Status is its Server's as it is, and the controller's part of it as it should be.
	Status func(Server, Report) (has, want any)
}

// Server is a Kubernetes object that a component is configured by.
type Server interface {
	metav1.Object
	runtime.Object
}

// List of Servers.
type List interface {
	metav1.ListInterface
	runtime.Object
}

// Wanted is what an Infra says of a component.
type Wanted struct {
	// Enabled: one that is not mentioned is on.
	Enabled bool
	// ServerIP is empty where none is written.
	ServerIP string
	// Second: a second instance is wanted, at SecondIP where that is written.
	Second    bool
	SecondIP  string
	Placement v1alpha1.Placement
	// Images that are written, by their field.
	Images map[string]string
}

// Written is what a Server says.
type Written struct {
	Attachment v1alpha1.Attachment
	ServerIP   string
	// AdditionalServerIPs are those of further instances.
	AdditionalServerIPs []v1alpha1.IPAddress
	// Images that are written, by their field.
	Images map[string]string
	// Conditions and Instances of its status, which is about ObservedGeneration.
	Conditions         []metav1.Condition
	Instances          []v1alpha1.Instance
	ObservedGeneration int64
}

// Report is what the controller says of a Server.
type Report struct {
	Conditions []metav1.Condition
	Instances  []v1alpha1.Instance
	// Workload that runs its pod.
	Workload string
	// Service of its pod, and the address of that; empty while there is none.
	Service, ServiceIP string
	// HealthyBackends of a proxy.
	HealthyBackends string
}

// Names of all, in their order.
func Names() (all []Name) {
	for _, c := range All {
		all = append(all, c.Name)
	}
	return all
}

// Second is the name by which the address of its second instance is known.
func (n Name) Second() Name { return n + "-1" }

// Seconds are those of all that may have a second instance.
func Seconds() (all []Name) {
	for _, c := range All {
		if c.Twice {
			all = append(all, c.Name.Second())
		}
	}
	return all
}

// Of a Server; false where an object is none.
func Of(object any) (Component, bool) {
	i := slices.IndexFunc(All, func(c Component) bool { return c.Serves(object) })
	if i < 0 {
		return Component{}, false
	}
	return All[i], true
}

// OfKind is the component whose Server has a kind; false where none has.
func OfKind(kind string) (Component, bool) {
	i := slices.IndexFunc(All, func(c Component) bool { return c.Kind == kind })
	if i < 0 {
		return Component{}, false
	}
	return All[i], true
}

// Serves says whether an object is a Server of the component.
func (c Component) Serves(object any) bool { return reflect.TypeOf(c.New()) == reflect.TypeOf(object) }

// Applied is the component whose Server an apply configuration makes.
func Applied(object runtime.ApplyConfiguration) (Component, bool) {
	of, is := object.(interface{ GetKind() *string })
	if !is {
		return Component{}, false
	}
	return OfKind(ptr.Deref(of.GetKind(), ""))
}

// GVK of its Server.
func (c Component) GVK() schema.GroupVersionKind { return v1alpha1.GroupVersion.WithKind(c.Kind) }

// WorkloadGVK is the kind of what runs its pod.
func (c Component) WorkloadGVK() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: c.Workload}
}

// Field of an Infra that belongs to a component.
func (n Name) Field(name string) string { return "spec.infraComponents." + string(n) + "." + name }
