package diagnosecli

import (
	"cmp"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"

	"github.com/cldmnky/oooi/internal/diagnose"
)

// kubevirt is the API of virtual machines.
var kubevirt = schema.GroupVersion{Group: "kubevirt.io", Version: "v1"}

// machine is what we read of a VirtualMachine or a VirtualMachineInstance.
type machine struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		instance `json:",inline"`
		Template *struct {
			Spec instance `json:"spec"`
		} `json:"template"`
	} `json:"spec"`
	Status struct {
		Phase           string `json:"phase"`
		PrintableStatus string `json:"printableStatus"`
		Interfaces      []struct {
			Name string `json:"name"`
			MAC  string `json:"mac"`
		} `json:"interfaces"`
	} `json:"status"`
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
func (r reader) machines() (all diagnose.Read[[]diagnose.Machine]) {
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
	running := map[string]machine{}
	for _, i := range vmis {
		running[i.Name] = i
	}
	for _, vm := range vms {
		if pool := vm.Labels[hyperv1.NodePoolNameLabel]; pool != "" {
			i, is := running[vm.Name]
			all.Is = append(all.Is, ofMachine(vm, i, is, r.controlPlane))
		}
	}
	return all
}

func (r reader) ofKubeVirt(kind, resource string) (all []machine, unread string) {
	list, unread := readUnstructured(r, kubevirt.WithKind(kind+"List"), r.controlPlane, resource)
	for _, u := range list {
		var m machine
		if runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &m) == nil {
			all = append(all, m)
		}
	}
	return all, unread
}

func readUnstructured(r reader, kind schema.GroupVersionKind, namespace, resource string) ([]unstructured.Unstructured, string) {
	list := unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind)
	unread := r.list(&list, namespace, resource)
	return list.Items, unread
}

func ofMachine(vm, i machine, runs bool, namespace string) diagnose.Machine {
	m := diagnose.Machine{Name: vm.Name, Pool: vm.Labels[hyperv1.NodePoolNameLabel], Created: vm.CreationTimestamp.Time, Status: cmp.Or(vm.Status.PrintableStatus, i.Status.Phase, "it has no instance")}
	spec := i.Spec.instance
	if runs {
		m.Started, m.Runs = i.CreationTimestamp.Time, i.Status.Phase != "Succeeded" && i.Status.Phase != "Failed"
	} else if vm.Spec.Template != nil {
		spec = vm.Spec.Template.Spec
	}
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
