package approve

import (
	"context"
	"net/netip"

	"k8s.io/apimachinery/pkg/types"

	"github.com/cldmnky/oooi/internal/csr"
	"github.com/cldmnky/oooi/internal/dpf"
	"github.com/cldmnky/oooi/internal/plan/bridge"
	"github.com/cldmnky/oooi/internal/plan/input"
)

// FactSource reads DPUs from the management API, not from a cache, because an approval cannot be revoked.
type FactSource interface {
	// DPUs are those of a DPUCluster, and possibly others.
	DPUs(ctx context.Context, cluster types.NamespacedName) ([]dpf.DPU, error)
}

// State is what is known of approving for a bridge.
type State struct {
	// Active: everything has been read, and CSRs are approved by the rules.
	Active bool
	// Problem is what prevents approvals; nil if nothing does, or nothing is known yet.
	Problem *input.GuestProblem
	// Beyond describes the limits that the hosted cluster exceeds, and what that means; approving continues.
	Beyond []string
	// Privileged is the binding for pods of DPF's services.
	Privileged bridge.Grant
	// Pending are the well-formed CSRs of kubelets that the rules do not approve now.
	Pending int
	// Requests are those CSRs, and approved ones, as far as they are told of. Listed: the hosted cluster's were read for them.
	Requests []Request
	Listed   bool
}

// Reasons of a problem, besides those of input.GuestProblem.
const (
	// ManagementUnreachable: the DPUs cannot be read, so that nothing may be approved.
	ManagementUnreachable = "ManagementUnreachable"
	// ApprovalRefused: the hosted cluster refuses our approvals.
	ApprovalRefused = "ApprovalRefused"
)

// DPUs are what decisions need of DPUs.
func DPUs(cards []dpf.DPU) []csr.DPU {
	var all []csr.DPU
	for _, d := range cards {
		one := csr.DPU{
			Namespace: d.Namespace, Name: d.Name, UID: d.UID, Cluster: types.NamespacedName{Namespace: d.Spec.Cluster.Namespace, Name: d.Spec.Cluster.Name},
			Created: d.CreationTimestamp.Time, Deleting: d.DeletionTimestamp != nil,
		}
		for _, c := range d.Status.Conditions {
			one.OSInstalled = one.OSInstalled || c.Type == dpf.ConditionOSInstalled && c.Status == "True"
		}
		for _, at := range d.Status.Addresses {
			if ip, err := netip.ParseAddr(at.Address); err == nil {
				one.Addresses = append(one.Addresses, ip.Unmap())
			}
		}
		all = append(all, one)
	}
	return all
}
