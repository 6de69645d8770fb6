// Package clusterapi has what is read of Cluster API's Machines: since when a worker has a Node, and since when that is Ready. Its controller
// looks into the hosted cluster for it, so that we do not have to.
package clusterapi

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion of the kind: HyperShift installs this version and no other (hypershift v0.1.60, cmd/install/assets/cluster-api).
var GroupVersion = schema.GroupVersion{Group: "cluster.x-k8s.io", Version: "v1beta1"}

// Machine is one worker.
type Machine struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   MachineSpec   `json:"spec,omitempty"`
	Status MachineStatus `json:"status,omitempty"`
}

// MachineSpec has the fields that we read.
type MachineSpec struct {
	InfrastructureRef Reference `json:"infrastructureRef,omitempty"`
}

// Reference names the object of a provider that a Machine runs on.
type Reference struct {
	Kind string `json:"kind,omitempty"`
	Name string `json:"name,omitempty"`
}

// MachineStatus has the fields that we read. Times are text: the API server takes some for a date-time that we cannot decode, and one of them would
// make all Machines unreadable.
type MachineStatus struct {
	Phase string `json:"phase,omitempty"`
	// LastUpdated is when the phase changed last.
	LastUpdated string      `json:"lastUpdated,omitempty"`
	Conditions  []Condition `json:"conditions,omitempty"`
}

// Condition of a Machine.
type Condition struct {
	Type               string `json:"type"`
	Status             string `json:"status"`
	LastTransitionTime string `json:"lastTransitionTime,omitempty"`
}

// What Cluster API writes (cluster-api v1.9.6: api/v1beta1, machine_phase_types.go and condition_consts.go).
const (
	phaseRunning         = "Running"
	conditionNodeHealthy = "NodeHealthy"
)

// Joined is since when a Machine has a Node, and since when that is Ready; false if it is not, or goes.
//
// The phase becomes Running with nodeRef, which stays, as the infrastructure's readiness does (cluster-api v1.9.6, internal/controllers/machine:
// setMachinePhaseAndLastUpdated, reconcileInfrastructure). NodeHealthy becomes True once the Node is Ready, without pressure on memory, disk or
// PIDs (reconcileNode), and again whenever that was otherwise meanwhile. Both times are of that controller's clock.
func (m *Machine) Joined() (node, ready time.Time, is bool) {
	healthy := m.healthy()
	if len(healthy) == 0 || healthy[0].Status != string(metav1.ConditionTrue) || m.Status.Phase != phaseRunning || m.DeletionTimestamp != nil {
		return node, ready, false
	}
	node, err := time.Parse(time.RFC3339, m.Status.LastUpdated)
	if err != nil {
		return node, ready, false
	}
	ready, err = time.Parse(time.RFC3339, healthy[0].LastTransitionTime)
	return node, ready, err == nil
}

func (m *Machine) healthy() []Condition {
	i := slices.IndexFunc(m.Status.Conditions, func(c Condition) bool { return c.Type == conditionNodeHealthy })
	if i < 0 {
		return nil
	}
	return []Condition{m.Status.Conditions[i]}
}

// VirtualMachine is the name of KubeVirt's that the Machine runs on: that of its KubevirtMachine (cluster-api-provider-kubevirt v0.1.9,
// pkg/kubevirt/utils.go). Empty on other infrastructure.
func (m *Machine) VirtualMachine() string {
	if m.Spec.InfrastructureRef.Kind != "KubevirtMachine" {
		return ""
	}
	return m.Spec.InfrastructureRef.Name
}

// Trimmed is what Joined and VirtualMachine read.
func (m *Machine) Trimmed() *Machine {
	meta := metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name, UID: m.UID, ResourceVersion: m.ResourceVersion, DeletionTimestamp: m.DeletionTimestamp}
	return &Machine{ObjectMeta: meta, Spec: m.Spec, Status: MachineStatus{Phase: m.Status.Phase, LastUpdated: m.Status.LastUpdated, Conditions: m.healthy()}}
}

// MachineList is a list of Machine.
type MachineList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Machine `json:"items"`
}

// AddToScheme registers the kind.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &Machine{}, &MachineList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}

// DeepCopyObject copies m.
func (m *Machine) DeepCopyObject() runtime.Object { return m.deepCopy() }

func (m *Machine) deepCopy() *Machine {
	out := &Machine{TypeMeta: m.TypeMeta, ObjectMeta: *m.ObjectMeta.DeepCopy(), Spec: m.Spec, Status: m.Status}
	out.Status.Conditions = slices.Clone(m.Status.Conditions)
	return out
}

// DeepCopyObject copies l.
func (l *MachineList) DeepCopyObject() runtime.Object {
	out := &MachineList{TypeMeta: l.TypeMeta, ListMeta: *l.ListMeta.DeepCopy()}
	for i := range l.Items {
		out.Items = append(out.Items, *l.Items[i].deepCopy())
	}
	return out
}
