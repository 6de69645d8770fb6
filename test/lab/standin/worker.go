package standin

import (
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	machineKind  = schema.GroupVersionKind{Group: "cluster.x-k8s.io", Version: "v1beta1", Kind: "Machine"}
	vmKind       = schema.GroupVersionKind{Group: "kubevirt.io", Version: "v1", Kind: "VirtualMachine"}
	instanceKind = schema.GroupVersionKind{Group: "kubevirt.io", Version: "v1", Kind: "VirtualMachineInstance"}
)

// Worker is one virtual machine of the NodePool.
type Worker struct {
	Name, MAC, Network string // Network is the attachment definition, namespace/name
}

type object = map[string]any

func (c Cluster) workerObject(kind schema.GroupVersionKind, w Worker, content object) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(kind)
	u.SetName(w.Name)
	u.SetNamespace(c.Namespace())
	u.SetLabels(map[string]string{hyperv1.NodePoolNameLabel: c.nodePool(), "hypershift.openshift.io/infra-id": c.infraID(), "cluster.x-k8s.io/cluster-name": c.infraID()})
	return u
}

// objects are what Cluster API's KubeVirt provider and KubeVirt leave in the management cluster for a running worker whose only card is on
// the NodePool's additional network.
func (w Worker) objects(c Cluster) []*unstructured.Unstructured {
	machine := c.workerObject(machineKind, w, object{"spec": object{
		"clusterName": c.infraID(), "bootstrap": object{"dataSecretName": c.userDataSecret()},
		"infrastructureRef": object{"apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha1", "kind": "KubevirtMachine", "name": w.Name, "namespace": c.Namespace()},
	}})
	vm := c.workerObject(vmKind, w, object{"spec": object{"runStrategy": "Always", "template": object{"spec": w.instance()}}})
	return []*unstructured.Unstructured{machine, vm, c.workerObject(instanceKind, w, object{"spec": w.instance()})}
}

func (w Worker) instance() object {
	const card = "iface1"
	return object{
		"domain":   object{"devices": object{"interfaces": []any{object{"name": card, "macAddress": w.MAC, "bridge": object{}}}}},
		"networks": []any{object{"name": card, "multus": object{"networkName": w.Network}}},
	}
}

// machineStatus and instanceStatus are what the hypervisor knows before the guest reports anything; with an address, also what the guest
// agent adds.
func (w Worker) machineStatus(address string) object {
	addresses := []any{object{"type": "InternalDNS", "address": w.Name}, object{"type": "Hostname", "address": w.Name}}
	if address != "" {
		addresses = append(addresses, object{"type": "InternalIP", "address": address})
	}
	return object{"phase": "Provisioned", "infrastructureReady": true, "bootstrapReady": true, "addresses": addresses}
}

func (w Worker) instanceStatus(address string) object {
	card := object{"name": "iface1", "mac": w.MAC, "infoSource": "domain"}
	if address != "" {
		card["ipAddress"], card["ipAddresses"], card["infoSource"] = address, []any{address}, "domain, guest-agent"
	}
	return object{"phase": "Running", "interfaces": []any{card}}
}

func (c Cluster) userDataSecret() string {
	return "user-data-" + c.nodePool() + "-" + c.configVersion()
}
