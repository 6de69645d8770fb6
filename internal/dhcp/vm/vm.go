// Package vm knows which virtual machine has which hardware address: KubeVirt's VirtualMachines, their instances and the
// launcher pods of one namespace, indexed from watches. A lookup never asks the API server.
package vm

import (
	"encoding/json"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cldmnky/oooi/internal/dhcp/lease"
)

// Machine is the few fields that we read of a VirtualMachine or a VirtualMachineInstance.
type Machine struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              machineSpec   `json:"spec,omitempty"`
	Status            machineStatus `json:"status,omitempty"`
}

type machineSpec struct {
	// Template is a VirtualMachine's.
	Template *struct {
		Spec machineSpec `json:"spec,omitempty"`
	} `json:"template,omitempty"`
	Domain struct {
		Devices struct {
			Interfaces []nic `json:"interfaces,omitempty"`
		} `json:"devices,omitempty"`
	} `json:"domain,omitempty"`
}

type machineStatus struct {
	Phase      string `json:"phase,omitempty"`
	Interfaces []nic  `json:"interfaces,omitempty"`
	// Transitions say when the phases of an instance began.
	Transitions []struct {
		Phase string      `json:"phase"`
		At    metav1.Time `json:"phaseTransitionTimestamp"`
	} `json:"phaseTransitionTimestamps,omitempty"`
}

type nic struct {
	Name       string `json:"name,omitempty"`
	MACAddress string `json:"macAddress,omitempty"` // as the spec has it
	MAC        string `json:"mac,omitempty"`        // as the status has it
}

func (m *Machine) nics() []nic {
	spec := m.Spec
	if spec.Template != nil {
		spec = spec.Template.Spec
	}
	return spec.Domain.Devices.Interfaces
}

func (m *Machine) macs() []string {
	var out []string
	for _, n := range append(m.nics(), m.Status.Interfaces...) {
		for _, mac := range []string{n.MACAddress, n.MAC} {
			if mac != "" {
				out = append(out, strings.ToLower(strings.ReplaceAll(mac, "-", ":")))
			}
		}
	}
	return out
}

// over says whether an instance has stopped for good.
func (m *Machine) over() bool { return m.Status.Phase == "Succeeded" || m.Status.Phase == "Failed" }

// started is when the guest of an instance was switched on: when it ran, or, if that is not told yet, when its last phase before began. Before
// that it waited for a node, and for its disks.
func (m *Machine) started() time.Time {
	at := m.CreationTimestamp.Time
	for _, t := range m.Status.Transitions {
		if at = t.At.Time; t.Phase == "Running" {
			break
		}
	}
	return at
}

// owner is the VirtualMachine of an instance; an instance without one is its own.
func (m *Machine) owner() lease.VM {
	for _, o := range m.OwnerReferences {
		if o.Kind == "VirtualMachine" {
			return lease.VM{Namespace: m.Namespace, Name: o.Name, UID: string(o.UID)}
		}
	}
	return m.self()
}

func (m *Machine) self() lease.VM {
	return lease.VM{Namespace: m.Namespace, Name: m.Name, UID: string(m.UID)}
}

// Labels and annotation of launcher pods.
const (
	labelLauncher = "kubevirt.io"
	launcher      = "virt-launcher"
	labelInstance = "kubevirt.io/created-by" // UID of the VirtualMachineInstance
	networkStatus = "k8s.v1.cni.cncf.io/network-status"
)

// launcherMACs are the hardware addresses that Multus gave a launcher pod beside the pod network: with bridge binding they
// are the machine's, and known before KubeVirt's status tells them (upstream.md#machine-addresses).
func launcherMACs(annotations map[string]string) []string {
	var networks []struct {
		MAC     string `json:"mac"`
		Default bool   `json:"default"`
	}
	if json.Unmarshal([]byte(annotations[networkStatus]), &networks) != nil {
		return nil // not written yet, or by a CNI that writes something else
	}
	var out []string
	for _, n := range networks {
		if n.MAC != "" && !n.Default {
			out = append(out, strings.ToLower(n.MAC))
		}
	}
	return out
}
