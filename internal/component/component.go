// Package component describes the services that an Infra has on its VLAN, each in one place: code about all of them ranges over All.
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

// Name is a component's in spec.infraComponents and label app.
type Name string

// Component is one service. Its Server is the object that configures it: a DHCPServer, a DNSServer, a ProxyServer.
type Component struct {
	Name
	// Kind of its Server, and Resource as Roles name it.
	Kind, Resource string
	// Workload is the kind that runs its pod: StatefulSet or Deployment.
	Workload string
	// FieldOwner is under which its daemon writes to its Server's status; names.InstanceFieldOwner has those of further instances.
	FieldOwner string
	// Ready is the condition of an Infra that repeats its Server's Ready.
	Ready string
	// Needs are conditions that its daemon writes, and that must be True for its Server's Ready.
	Needs []string
	// NoResolver describes it to somebody who lists its address as a resolver.
	NoResolver string
	// Stops is what ends with the node of one that has no second instance.
	Stops string
	// IPv4Only: it does not serve an IPv6 VLAN.
	IPv4Only bool

	// New is an empty Server, and NewList a list of them.
	New     func() Server
	NewList func() List
	// Wanted is what an Infra says about it.
	Wanted func(v1alpha1.InfraComponents) Wanted
	// Written is what its Server says.
	Written func(Server) Written
	// Status is its Server's current status, and the controller's part of it as it should be.
	Status func(Server, Report) (has, want any)
}

// Server is a Kubernetes object that configures a component.
type Server interface {
	metav1.Object
	runtime.Object
}

// List is a list of Servers.
type List interface {
	metav1.ListInterface
	runtime.Object
}

// Wanted is what an Infra says about a component.
type Wanted struct {
	// Enabled is true if the Infra does not mention it.
	Enabled bool
	// ServerIP is empty if none is set.
	ServerIP string
	// Second: a second instance is wanted, at SecondIP if that is set.
	Second    bool
	SecondIP  string
	Placement v1alpha1.Placement
	// Images are those that are set, by field.
	Images map[string]string
}

// Written is what a Server says.
type Written struct {
	Attachment v1alpha1.Attachment
	ServerIP   string
	// AdditionalServerIPs are those of further instances.
	AdditionalServerIPs []v1alpha1.IPAddress
	// OfFirst: clients have addresses that only the first instance serves.
	OfFirst bool
	// Images are those that are set, by field.
	Images map[string]string
	// Conditions and Instances of its status, which describes ObservedGeneration.
	Conditions         []metav1.Condition
	Instances          []v1alpha1.Instance
	ObservedGeneration int64
}

// ServerIPs are the addresses of all instances, the first's first.
func (w Written) ServerIPs() []v1alpha1.IPAddress {
	return append([]v1alpha1.IPAddress{v1alpha1.IPAddress(w.ServerIP)}, w.AdditionalServerIPs...)
}

// Report is what the controller says about a Server.
type Report struct {
	Conditions []metav1.Condition
	Instances  []v1alpha1.Instance
	// Alone: no workload is left of an instance that is no longer wanted.
	Alone bool
	// Workload is the name of what runs its pod.
	Workload string
	// Service of its pod, and its address; empty while there is none.
	Service, ServiceIP string
	// HealthyBackends of a proxy.
	HealthyBackends string
}

// Names are those of All, in its order.
func Names() (all []Name) {
	for _, c := range All {
		all = append(all, c.Name)
	}
	return all
}

// Second is the name by which the address of its second instance is known.
func (n Name) Second() Name { return n + "-1" }

// Seconds are those of all second instances.
func Seconds() (all []Name) {
	for _, c := range All {
		all = append(all, c.Name.Second())
	}
	return all
}

// Of is the component of a Server; false if an object is none.
func Of(object any) (Component, bool) {
	i := slices.IndexFunc(All, func(c Component) bool { return c.Serves(object) })
	if i < 0 {
		return Component{}, false
	}
	return All[i], true
}

// OfKind is the component whose Server has this kind; false if none has.
func OfKind(kind string) (Component, bool) {
	i := slices.IndexFunc(All, func(c Component) bool { return c.Kind == kind })
	if i < 0 {
		return Component{}, false
	}
	return All[i], true
}

// Serves says whether an object is a Server of the component.
func (c Component) Serves(object any) bool { return reflect.TypeOf(c.New()) == reflect.TypeOf(object) }

// Applied is the component whose Server an apply configuration describes.
func Applied(object runtime.ApplyConfiguration) (Component, bool) {
	of, is := object.(interface{ GetKind() *string })
	if !is {
		return Component{}, false
	}
	return OfKind(ptr.Deref(of.GetKind(), ""))
}

// GVK is that of its Server.
func (c Component) GVK() schema.GroupVersionKind { return v1alpha1.GroupVersion.WithKind(c.Kind) }

// WorkloadGVK is that of what runs its pod.
func (c Component) WorkloadGVK() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: c.Workload}
}

// Field is the path of a component's field in an Infra.
func (n Name) Field(name string) string { return "spec.infraComponents." + string(n) + "." + name }
