package vlan

import (
	"errors"
	"slices"
	"strings"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/cldmnky/oooi/internal/endpoint"
	"github.com/cldmnky/oooi/internal/nad"
	"github.com/cldmnky/oooi/internal/plan/input"
	"github.com/cldmnky/oooi/internal/refgrant"
)

// Machines are the HostedCluster's NodePools of VirtualMachines.
func (j Joined) Machines() []*hyperv1.NodePool { return MachinesOf(j.NodePools) }

// MachinesOf are the NodePools of VirtualMachines that are not being deleted; those that are may drain for hours, and do not count.
func MachinesOf(pools []hyperv1.NodePool) []*hyperv1.NodePool {
	var all []*hyperv1.NodePool
	for i := range pools {
		if p := &pools[i]; p.DeletionTimestamp == nil && p.Spec.Platform.Kubevirt != nil {
			all = append(all, p)
		}
	}
	return all
}

// Attachment is a network that machines are attached to.
type Attachment struct {
	Source *nad.NetworkAttachmentDefinition
	Config nad.Config
}

// Attachments are the networks of the VLAN that machines are attached to.
func (j Joined) Attachments(p *hyperv1.KubevirtNodePoolPlatform) []Attachment {
	if j.HostedCluster == nil {
		return nil
	}
	var all []Attachment
	for _, n := range p.AdditionalNetworks {
		if s, ok := j.attachment(AttachmentOf(n, j.HostedCluster)); ok {
			all = append(all, s)
		}
	}
	return all
}

func (j Joined) attachment(key types.NamespacedName) (Attachment, bool) {
	if key == input.Refs(j.Infra).NAD {
		return Attachment{j.VLAN.Source, j.VLAN.Config}, true
	}
	for i := range j.Attachable {
		n := &j.Attachable[i]
		reference := refgrant.Reference{
			From: j.Infra.Namespace, Namespace: n.Namespace, Annotations: n.Annotations,
			AllowedNamespaces: append([]string{j.HostedCluster.Namespace, j.ControlPlaneNamespace()}, j.Settings.NADSourceNamespaces...),
		}
		if n.Namespace != key.Namespace || n.Name != key.Name || !reference.Allowed() {
			continue
		}
		config, err := nad.Parse(n.Spec.Config)
		return Attachment{n, config}, err == nil
	}
	return Attachment{}, false
}

// AttachmentOf reads namespace/name. KubeVirt looks a bare name up in the namespace of the VM.
func AttachmentOf(n hyperv1.KubevirtNetwork, hc *hyperv1.HostedCluster) types.NamespacedName {
	if key, err := NamespacedName(n.Name); err == nil {
		return key
	}
	return types.NamespacedName{Namespace: endpoint.ControlPlaneNamespace(hc), Name: n.Name}
}

// Attachments are the networks of a NodePool's machines besides the pod network.
func Attachments(pool *hyperv1.NodePool, hc *hyperv1.HostedCluster) (all []types.NamespacedName) {
	if k := pool.Spec.Platform.Kubevirt; k != nil {
		for _, n := range k.AdditionalNetworks {
			all = append(all, AttachmentOf(n, hc))
		}
	}
	return all
}

// NamespacedName reads namespace/name of a NetworkAttachmentDefinition.
func NamespacedName(text string) (types.NamespacedName, error) {
	namespace, name, _ := strings.Cut(text, "/")
	if len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1123Subdomain(name)) > 0 {
		return types.NamespacedName{}, errors.New("it names no NetworkAttachmentDefinition")
	}
	return types.NamespacedName{Namespace: namespace, Name: name}, nil
}

// Lends says whether Multus lets machines use the networks of a namespace. OpenShift's denies a pod those of most other namespaces
// (cluster-network-operator: bindata/network/multus/multus.yaml); elsewhere that depends on the installation.
func (j Joined) Lends(namespace string) bool {
	isolates := j.OpenShift || j.Settings.IsolatesNetworks
	return !isolates || namespace == j.ControlPlaneNamespace() || slices.Contains(j.Settings.NADSourceNamespaces, namespace)
}

// Dotted says whether a name has a dot, which KubeVirt does not allow in the name of an interface.
func Dotted(at types.NamespacedName) bool { return strings.Contains(at.Name, ".") }
