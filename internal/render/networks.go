package render

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/nad"
	"github.com/cldmnky/oooi/internal/plan/input"
	"github.com/cldmnky/oooi/internal/plan/provision"
	"github.com/cldmnky/oooi/internal/plan/vlan"
)

// The kinds from which a cluster makes NetworkAttachmentDefinitions.
var (
	clusterNetworkKind  = schema.GroupVersionKind{Group: "k8s.ovn.org", Version: "v1", Kind: "ClusterUserDefinedNetwork"}
	userNetworkKind     = schema.GroupVersionKind{Group: "k8s.ovn.org", Version: "v1", Kind: "UserDefinedNetwork"}
	operatorNetworkKind = schema.GroupVersionKind{Group: "operator.openshift.io", Version: "v1", Kind: "Network"}
)

// source has the fields of all three that decide over the networks made from them.
type source struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		NamespaceSelector metav1.LabelSelector `json:"namespaceSelector"`
		Network           struct {
			Topology string    `json:"topology"`
			Localnet *localnet `json:"localnet"`
		} `json:"network"`
		Topology           string       `json:"topology"`
		AdditionalNetworks []additional `json:"additionalNetworks"`
	} `json:"spec"`
}

type localnet struct {
	PhysicalNetworkName string   `json:"physicalNetworkName"`
	MTU                 int32    `json:"mtu"`
	Subnets             []string `json:"subnets"`
	IPAM                struct {
		Mode string `json:"mode"`
	} `json:"ipam"`
	MACSecurity struct { // ovn-kubernetes: docs/okeps/okep-3926-disable-port-security.md
		Mode string `json:"mode"`
	} `json:"macSecurity"`
	VLAN struct {
		Access struct {
			ID int `json:"id"`
		} `json:"access"`
	} `json:"vlan"`
}

// additional is a network that OpenShift's network operator makes (openshift/api: operator/v1, AdditionalNetworkDefinition).
type additional struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	Config    string `json:"rawCNIConfig"`
	Type      string `json:"type"`
	Macvlan   struct {
		Master string `json:"master"`
		Mode   string `json:"mode"`
		MTU    int    `json:"mtu"`
	} `json:"simpleMacvlanConfig"`
}

// config is what the network operator renders; an address is always assigned (cluster-network-operator:
// pkg/network/additional_networks.go).
func (a additional) config() string {
	if a.Type != "SimpleMacvlan" {
		return a.Config
	}
	config := map[string]any{
		"cniVersion": "0.3.1", "name": a.Name, "type": "macvlan", "mode": cmp.Or(strings.ToLower(a.Macvlan.Mode), "bridge"),
		"master": a.Macvlan.Master, "ipam": map[string]any{"type": "dhcp"},
	}
	if a.Macvlan.MTU != 0 {
		config["mtu"] = a.Macvlan.MTU
	}
	return text(config)
}

func sourceOf(doc []byte, kind schema.GroupVersionKind) (Objects, error) {
	n := &source{}
	if err := yaml.Unmarshal(doc, n); err != nil {
		return nil, fmt.Errorf("%s: %w", kind.Kind, inYAML(err))
	}
	if kind == userNetworkKind { // the others have no namespace
		placed(n)
	}
	return Objects{n}, nil
}

// DeepCopyObject copies n only one level deep: nothing below is written to.
func (n *source) DeepCopyObject() runtime.Object {
	out := *n
	return &out
}

// withNetworks adds the NetworkAttachmentDefinitions that a cluster would make, and returns what it had to assume.
func (o Objects) withNetworks() (all Objects, assumed []string) {
	all = slices.DeleteFunc(slices.Clone(o), func(one runtime.Object) bool { _, is := one.(*source); return is })
	for _, n := range pick[source](o, "") {
		for _, at := range n.makes(o, &assumed) {
			if find[nad.NetworkAttachmentDefinition](all, named(at.Namespace, at.Name)) == nil {
				all = append(all, at)
			}
		}
	}
	return all, assumed
}

func (n *source) makes(o Objects, assumed *[]string) (all []*nad.NetworkAttachmentDefinition) {
	switch n.Kind {
	case operatorNetworkKind.Kind:
		for _, a := range n.Spec.AdditionalNetworks {
			if config := a.config(); config != "" {
				all = append(all, n.network(cmp.Or(a.Namespace, metav1.NamespaceDefault), a.Name, config))
			}
		}
	case userNetworkKind.Kind:
		all = append(all, n.network(n.Namespace, n.Name, n.overlay(n.Spec.Topology, n.Namespace)))
	default:
		for _, namespace := range n.selected(o, assumed) {
			config := n.overlay(n.Spec.Network.Topology, namespace)
			if l := n.Spec.Network.Localnet; l != nil {
				config = l.config(namespace, n.Name)
			}
			all = append(all, n.network(namespace, n.Name, config))
		}
	}
	return all
}

func (n *source) network(namespace, name, config string) *nad.NetworkAttachmentDefinition {
	made := &nad.NetworkAttachmentDefinition{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name,
		OwnerReferences: []metav1.OwnerReference{{APIVersion: n.APIVersion, Kind: n.Kind, Name: n.Name, Controller: new(true)}},
	}}
	made.SetGroupVersionKind(nad.GroupVersion.WithKind("NetworkAttachmentDefinition"))
	made.Spec.Config = config
	return made
}

// overlay configures a network that does not leave the cluster: only its topology is judged.
func (n *source) overlay(topology, namespace string) string {
	return text(map[string]any{
		"cniVersion": "1.1.0", "type": "ovn-k8s-cni-overlay", "name": namespace + "_" + n.Name, "netAttachDefName": namespace + "/" + n.Name,
		"topology": strings.ToLower(topology), "role": "secondary",
	})
}

// config is what OVN-Kubernetes renders (ovn-kubernetes: go-controller/pkg/clustermanager/userdefinednetwork/template).
func (l localnet) config(namespace, name string) string {
	config := map[string]any{
		"cniVersion": "1.1.0", "type": "ovn-k8s-cni-overlay", "name": "cluster_udn_" + name, "netAttachDefName": namespace + "/" + name,
		"topology": "localnet", "role": "secondary", "mtu": nad.UsualMTU, "physicalNetworkName": l.PhysicalNetworkName,
	}
	if l.MTU != 0 {
		config["mtu"] = l.MTU
	}
	if l.VLAN.Access.ID != 0 {
		config["vlanID"] = l.VLAN.Access.ID
	}
	if len(l.Subnets) > 0 {
		config["subnets"] = strings.Join(l.Subnets, ",")
	}
	if l.MACSecurity.Mode != "" {
		config["macSecurityMode"] = l.MACSecurity.Mode
	}
	if l.IPAM.Mode == "DHCP" { // ovn-kubernetes: docs/okeps/okep-6224-dhcp-ipam-localnet.md
		config["ipam"] = map[string]any{"type": "dhcp"}
	}
	return text(config)
}

func text(config map[string]any) string {
	out, err := json.Marshal(config)
	if err != nil {
		panic(fmt.Sprintf("%v is no JSON: %v", config, err)) // it holds only strings and numbers
	}
	return string(out)
}

// selected are the namespaces that a ClusterUserDefinedNetwork selects, among those that the files have or mention. A namespace that is
// only mentioned has its name label, and is assumed to have the other labels that the selector wants: something there is to be on this
// network.
func (n *source) selected(o Objects, assumed *[]string) (all []string) {
	selector, err := metav1.LabelSelectorAsSelector(&n.Spec.NamespaceSelector)
	if err != nil {
		return nil // the API server refuses it
	}
	required, _ := selector.Requirements()
	for _, namespace := range o.spokenOf(n) {
		known := labels.Set{corev1.LabelMetadataName: namespace}
		there := find[corev1.Namespace](o, named("", namespace))
		if there != nil {
			known = labels.Merge(there.Labels, known)
		}
		unsure := false
		if slices.ContainsFunc(required, func(r labels.Requirement) bool {
			asks := r.Key() != corev1.LabelMetadataName && there == nil
			unsure = unsure || asks
			return !asks && !r.Matches(known)
		}) {
			continue
		}
		if unsure {
			*assumed = append(*assumed, fmt.Sprintf("ClusterUserDefinedNetwork %s is taken to select namespace %s: the files hold no such Namespace, whose labels say it", n.Name, namespace))
		}
		all = append(all, namespace)
	}
	return all
}

// spokenOf are the namespaces of the files, and those in which something is to be on this network.
func (o Objects) spokenOf(n *source) (all []string) {
	for _, namespace := range pick[corev1.Namespace](o, "") {
		all = append(all, namespace.Name)
	}
	for _, at := range o.attachments() {
		if at.Name == n.Name {
			all = append(all, at.Namespace)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// attachments are the networks that Infras, HostedClusters' annotations and NodePools name.
func (o Objects) attachments() (all []types.NamespacedName) {
	for _, infra := range pick[v1alpha1.Infra](o, "") {
		all = append(all, input.Refs(infra).NAD)
	}
	for _, hc := range pick[hyperv1.HostedCluster](o, "") {
		all = append(all, provision.Input{HostedCluster: hc}.Attachment())
		for _, pool := range o.nodePools(named(hc.Namespace, hc.Name)) {
			all = append(all, vlan.Attachments(&pool, hc)...)
		}
	}
	return all
}
