package render

import (
	"encoding/json"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/cldmnky/oooi/internal/nad"
)

var clusterNetworkKind = schema.GroupVersionKind{Group: "k8s.ovn.org", Version: "v1", Kind: "ClusterUserDefinedNetwork"}

// clusterNetwork is what of a ClusterUserDefinedNetwork decides over its NetworkAttachmentDefinitions, of which OVN-Kubernetes makes one in
// each namespace (go-controller/pkg/clustermanager/userdefinednetwork/template).
type clusterNetwork struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	Spec     struct {
		NamespaceSelector metav1.LabelSelector `json:"namespaceSelector"`
		Network           struct {
			Localnet *localnet `json:"localnet"`
		} `json:"network"`
	} `json:"spec"`
}

type localnet struct {
	PhysicalNetworkName string   `json:"physicalNetworkName"`
	MTU                 int32    `json:"mtu"`
	Subnets             []string `json:"subnets"`
	VLAN                struct {
		Access struct {
			ID int `json:"id"`
		} `json:"access"`
	} `json:"vlan"`
}

// networksOf a ClusterUserDefinedNetwork of topology Localnet, in the namespaces that it selects by name: of others nothing is known here.
func networksOf(doc []byte) (Objects, error) {
	var n clusterNetwork
	if err := yaml.Unmarshal(doc, &n); err != nil || n.Spec.Network.Localnet == nil {
		return nil, err
	}
	var all Objects
	for _, namespace := range namesSelected(n.Spec.NamespaceSelector) {
		made := &nad.NetworkAttachmentDefinition{ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: n.Metadata.Name,
			OwnerReferences: []metav1.OwnerReference{{APIVersion: clusterNetworkKind.GroupVersion().String(), Kind: clusterNetworkKind.Kind, Name: n.Metadata.Name}},
		}}
		made.SetGroupVersionKind(nad.GroupVersion.WithKind("NetworkAttachmentDefinition"))
		made.Spec.Config = n.Spec.Network.Localnet.config(namespace, n.Metadata.Name)
		all = append(all, made)
	}
	return all, nil
}

// madeHere says whether an object stands for one that only a cluster has.
func madeHere(o metav1.Object) bool {
	owners := o.GetOwnerReferences()
	return o.GetUID() == "" && len(owners) == 1 && owners[0].Kind == clusterNetworkKind.Kind && owners[0].UID == ""
}

func (l localnet) config(namespace, name string) string {
	const usualMTU = 1500
	config := map[string]any{
		"cniVersion": "1.1.0", "type": "ovn-k8s-cni-overlay", "name": "cluster_udn_" + name, "netAttachDefName": namespace + "/" + name,
		"topology": "localnet", "role": "secondary", "mtu": usualMTU, "physicalNetworkName": l.PhysicalNetworkName,
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
	text, err := json.Marshal(config)
	if err != nil {
		panic(fmt.Sprintf("%v is no JSON: %v", config, err)) // texts and numbers
	}
	return string(text)
}

// namesSelected are the namespaces that a selector has by their names alone.
func namesSelected(s metav1.LabelSelector) []string {
	const name = "kubernetes.io/metadata.name"
	if only := s.MatchLabels[name]; only != "" && len(s.MatchLabels) == 1 && len(s.MatchExpressions) == 0 {
		return []string{only}
	}
	if len(s.MatchLabels) > 0 || len(s.MatchExpressions) != 1 || s.MatchExpressions[0].Key != name || s.MatchExpressions[0].Operator != metav1.LabelSelectorOpIn {
		return nil
	}
	return s.MatchExpressions[0].Values
}
