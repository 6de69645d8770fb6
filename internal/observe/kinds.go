package observe

import (
	"reflect"
	"slices"
	"sync"

	configv1 "github.com/openshift/api/config/v1"
	routev1 "github.com/openshift/api/route/v1"
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/internal/dpf"
	"github.com/cldmnky/oooi/internal/metallb"
	"github.com/cldmnky/oooi/internal/nad"
)

// Kinds knows which of the kinds that a cluster may lack it has. One that it lacks counts as an empty list.
type Kinds struct {
	mu     sync.Mutex
	absent map[reflect.Type]client.Object
}

// NewKinds begins with all of them absent: those that VLAN services read, and those that bridges do.
func NewKinds(vlan, bridges bool) *Kinds {
	k := &Kinds{absent: map[reflect.Type]client.Object{}}
	k.add(&hyperv1.HostedCluster{}, &hyperv1.HostedClusterList{})
	k.add(&hyperv1.NodePool{}, &hyperv1.NodePoolList{})
	if vlan {
		k.add(&hyperv1.HostedControlPlane{}, &hyperv1.HostedControlPlaneList{})
		k.add(&routev1.Route{}, &routev1.RouteList{})
		k.add(&nad.NetworkAttachmentDefinition{}, &nad.List{})
		k.add(&networkingv1.ServiceCIDR{}, &networkingv1.ServiceCIDRList{})
		k.add(&configv1.Network{}, &configv1.NetworkList{})
	}
	if bridges {
		k.add(&dpf.DPUCluster{}, &dpf.DPUClusterList{})
		k.add(&dpf.DPU{}, &dpf.DPUList{})
		k.add(&metallb.IPAddressPool{}, &metallb.IPAddressPoolList{})
		k.add(&metallb.L2Advertisement{}, &metallb.L2AdvertisementList{})
	}
	return k
}

func (k *Kinds) add(kind client.Object, all client.ObjectList) {
	k.absent[reflect.TypeOf(kind)] = kind
	k.absent[reflect.TypeOf(all)] = kind
}

// Served says whether objects (or lists) of this Go type can be read.
func (k *Kinds) Served(object any) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	_, absent := k.absent[reflect.TypeOf(object)]
	return !absent
}

// Absent are the kinds not yet seen.
func (k *Kinds) Absent() []client.Object {
	k.mu.Lock()
	defer k.mu.Unlock()
	var all []client.Object
	for _, kind := range k.absent {
		if !slices.Contains(all, kind) {
			all = append(all, kind)
		}
	}
	return all
}

// Appeared notes that a kind of Absent is there now and watched.
func (k *Kinds) Appeared(kind client.Object) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for t, of := range k.absent {
		if of == kind {
			delete(k.absent, t)
		}
	}
}
