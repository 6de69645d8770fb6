package observe

import (
	"reflect"
	"sync"

	configv1 "github.com/openshift/api/config/v1"
	routev1 "github.com/openshift/api/route/v1"
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/internal/clusterapi"
	"github.com/cldmnky/oooi/internal/dpf"
	"github.com/cldmnky/oooi/internal/metallb"
	"github.com/cldmnky/oooi/internal/nad"
)

// Kinds knows which of the kinds that a cluster may lack are served. One that is not counts as an empty list.
type Kinds struct {
	all []client.Object
	of  map[reflect.Type]client.Object // by the Go type of objects and of lists

	mu     sync.Mutex
	served map[client.Object]bool
}

// NewKinds has the kinds that VLAN services read, and those that bridges do; all are absent at first.
func NewKinds(vlan, bridges bool) *Kinds {
	k := &Kinds{of: map[reflect.Type]client.Object{}, served: map[client.Object]bool{}}
	k.add(&hyperv1.HostedCluster{}, &hyperv1.HostedClusterList{})
	k.add(&hyperv1.NodePool{}, &hyperv1.NodePoolList{})
	k.add(&networkingv1.ServiceCIDR{}, &networkingv1.ServiceCIDRList{})
	k.add(&configv1.Network{}, &configv1.NetworkList{})
	if vlan {
		k.add(&hyperv1.HostedControlPlane{}, &hyperv1.HostedControlPlaneList{})
		k.add(&routev1.Route{}, &routev1.RouteList{})
		k.add(&nad.NetworkAttachmentDefinition{}, &nad.List{})
		k.add(&clusterapi.Machine{}, &clusterapi.MachineList{})
	}
	if bridges {
		k.add(&dpf.DPUCluster{}, &dpf.DPUClusterList{})
		k.add(&dpf.DPU{}, &dpf.DPUList{})
		k.add(&dpf.DPUFlavor{}, &dpf.DPUFlavorList{})
		k.add(&dpf.BFB{}, &dpf.BFBList{})
		k.add(&dpf.DPUDeployment{}, &dpf.DPUDeploymentList{})
		k.add(&dpf.DPUServiceTemplate{}, &dpf.DPUServiceTemplateList{})
		k.add(&dpf.DPUServiceConfiguration{}, &dpf.DPUServiceConfigurationList{})
		k.add(&configv1.ClusterVersion{}, &configv1.ClusterVersionList{})
		k.add(&dpf.DPFOperatorConfig{}, &dpf.DPFOperatorConfigList{})
		k.add(&metallb.IPAddressPool{}, &metallb.IPAddressPoolList{})
		k.add(&metallb.L2Advertisement{}, &metallb.L2AdvertisementList{})
		k.add(&configv1.ImageDigestMirrorSet{}, &configv1.ImageDigestMirrorSetList{})
		k.add(&configv1.ImageTagMirrorSet{}, &configv1.ImageTagMirrorSetList{})
		k.add(&configv1.Image{}, &configv1.ImageList{})
		k.add(&configv1.Proxy{}, &configv1.ProxyList{})
	}
	return k
}

func (k *Kinds) add(kind client.Object, all client.ObjectList) {
	k.all = append(k.all, kind)
	k.of[reflect.TypeOf(kind)], k.of[reflect.TypeOf(all)] = kind, kind
}

// All are the kinds that a cluster may lack.
func (k *Kinds) All() []client.Object { return k.all }

// Served says whether objects (or lists) of this Go type can be read.
func (k *Kinds) Served(object any) bool {
	kind, may := k.of[reflect.TypeOf(object)]
	k.mu.Lock()
	defer k.mu.Unlock()
	return !may || k.served[kind]
}

// Set records whether a kind of All is served and watched.
func (k *Kinds) Set(kind client.Object, served bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.served[kind] = served
}
