package diagnosecli

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/internal/diagnose"
	"github.com/cldmnky/oooi/internal/step"
)

// kubevirt is the API of virtual machines.
var kubevirt = schema.GroupVersion{Group: "kubevirt.io", Version: "v1"}

// machine is what we read of a VirtualMachine or a VirtualMachineInstance.
type machine struct {
	metadata `json:"metadata"`
	Spec     struct {
		instance `json:",inline"`
		Template *struct {
			Spec instance `json:"spec"`
		} `json:"template"`
	} `json:"spec"`
	Status struct {
		Phase string `json:"phase"`
		// Transitions say when the phases began.
		Transitions []struct {
			Phase string      `json:"phase"`
			At    metav1.Time `json:"phaseTransitionTimestamp"`
		} `json:"phaseTransitionTimestamps"`
		PrintableStatus string `json:"printableStatus"`
		Interfaces      []struct {
			Name string `json:"name"`
			MAC  string `json:"mac"`
		} `json:"interfaces"`
	} `json:"status"`
}

// metadata without what is large: annotations and managed fields.
type metadata struct {
	Name              string            `json:"name"`
	Labels            map[string]string `json:"labels"`
	CreationTimestamp metav1.Time       `json:"creationTimestamp"`
	DeletionTimestamp *metav1.Time      `json:"deletionTimestamp"`
}

type instance struct {
	Domain struct {
		Devices struct {
			Interfaces []struct {
				Name       string `json:"name"`
				MACAddress string `json:"macAddress"`
			} `json:"interfaces"`
		} `json:"devices"`
	} `json:"domain"`
	Networks []struct {
		Name   string `json:"name"`
		Multus *struct {
			NetworkName string `json:"networkName"`
		} `json:"multus"`
	} `json:"networks"`
}

// machines are the NodePools' of the control-plane namespace.
func (r reader) machines() (all step.Read[[]diagnose.Machine]) {
	if r.controlPlane == "" {
		return all
	}
	var vms, vmis []machine
	var whys [2]string
	together(
		func() { vms, whys[0] = r.ofKubeVirt("VirtualMachine", "virtualmachines.kubevirt.io") },
		func() { vmis, whys[1] = r.ofKubeVirt("VirtualMachineInstance", "virtualmachineinstances.kubevirt.io") },
	)
	if all.Unread = cmp.Or(whys[0], whys[1]); all.Unread != "" {
		return all
	}
	instances := map[string]*machine{}
	for _, i := range vmis {
		instances[i.Name] = &i
	}
	for _, vm := range vms {
		if pool := vm.Labels[hyperv1.NodePoolNameLabel]; pool != "" {
			all.Is = append(all.Is, ofMachine(vm, instances[vm.Name], r.controlPlane))
		}
	}
	return all
}

// machinesAtOnce is how many are in memory at a time as KubeVirt wrote them, with 10 KiB each.
const machinesAtOnce = 50

func (r reader) ofKubeVirt(kind, resource string) (all []machine, unread string) {
	var list machineList
	for {
		list.SetGroupVersionKind(kubevirt.WithKind(kind + "List"))
		if unread := r.list(&list, r.controlPlane, resource, client.Limit(machinesAtOnce), client.Continue(list.GetContinue())); unread != "" {
			return nil, unread
		}
		all = append(all, list.machines...)
		if list.GetContinue() == "" {
			return all, ""
		}
	}
}

// machineList is decoded without the maps of an UnstructuredList, which take many times as much memory as what we read of them.
type machineList struct {
	unstructured.UnstructuredList
	machines []machine
}

// UnmarshalJSON leaves out a machine that is none as we know them.
func (l *machineList) UnmarshalJSON(text []byte) error {
	var list struct {
		Metadata metav1.ListMeta   `json:"metadata"`
		Items    []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(text, &list); err != nil {
		return err
	}
	l.SetContinue(list.Metadata.Continue)
	l.machines = nil
	for _, item := range list.Items {
		var m machine
		if json.Unmarshal(item, &m) == nil {
			l.machines = append(l.machines, m)
		}
	}
	return nil
}

// ofMachine is a VirtualMachine with its instance; nil if it has none.
func ofMachine(vm machine, i *machine, namespace string) diagnose.Machine {
	m := diagnose.Machine{Name: vm.Name, Pool: vm.Labels[hyperv1.NodePoolNameLabel], Created: vm.CreationTimestamp.Time, Changes: changes(vm, i)}
	var spec instance
	if i != nil {
		m.Started, m.Runs, spec = i.started(), i.Status.Phase == running, i.Spec.instance
	} else if i = (&machine{}); vm.Spec.Template != nil {
		spec = vm.Spec.Template.Spec
	}
	m.Status = cmp.Or(vm.Status.PrintableStatus, i.Status.Phase, "it has no instance that runs")
	macs := map[string]string{}
	for _, n := range i.Status.Interfaces {
		macs[n.Name] = n.MAC
	}
	networks := map[string]string{}
	for _, n := range spec.Networks {
		if n.Multus != nil {
			networks[n.Name] = qualified(n.Multus.NetworkName, namespace)
		}
	}
	for _, n := range spec.Domain.Devices.Interfaces {
		m.Cards = append(m.Cards, diagnose.Card{MAC: cmp.Or(macs[n.Name], n.MACAddress), Network: networks[n.Name]})
	}
	return m
}

// running is the phase of an instance whose guest runs.
const running = "Running"

// started is when the guest began to run; before that the instance waited for a node, and for its disks.
func (m *machine) started() time.Time {
	for _, t := range m.Status.Transitions {
		if t.Phase == running {
			return t.At.Time
		}
	}
	return m.CreationTimestamp.Time
}

// broken are the printable statuses that somebody has to mend (kubevirt.io/api core/v1, VirtualMachinePrintableStatus).
var broken = []string{"CrashLoopBackOff", "ErrorUnschedulable", "ErrImagePull", "ImagePullBackOff", "ErrorPvcNotFound", "ErrorDataVolumeNotFound", "DataVolumeError"}

// changes says whether KubeVirt is at work: it deletes the machine or its instance, or has not brought it to run yet.
func changes(vm machine, i *machine) bool {
	if vm.DeletionTimestamp != nil || i != nil && i.DeletionTimestamp != nil {
		return true
	}
	if slices.Contains(broken, vm.Status.PrintableStatus) {
		return false
	}
	if i == nil {
		return vm.Status.PrintableStatus != "Stopped"
	}
	return slices.Contains([]string{"", "Pending", "Scheduling", "Scheduled"}, i.Status.Phase)
}

// qualified is a network's name with its namespace, which is the machine's if none is written.
func qualified(network, namespace string) string {
	if strings.Contains(network, "/") {
		return network
	}
	return namespace + "/" + network
}

// together calls all at once, and waits for them.
func together(all ...func()) {
	var group sync.WaitGroup
	for _, do := range all {
		group.Go(do)
	}
	group.Wait()
}
