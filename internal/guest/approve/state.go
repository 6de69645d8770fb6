package approve

import (
	"context"
	"net/netip"

	"k8s.io/apimachinery/pkg/types"

	"github.com/cldmnky/oooi/internal/csr"
	"github.com/cldmnky/oooi/internal/dpf"
	"github.com/cldmnky/oooi/internal/plan/input"
)

// FactSource reads DPUs from the management API itself, not from what was seen of it before: an approval cannot be taken back.
type FactSource interface {
	// DPUs of a DPUCluster; others may be among them.
	DPUs(ctx context.Context, cluster types.NamespacedName) ([]dpf.DPU, error)
}

// State is how approving stands for a bridge.
type State struct {
	// Active: all was read, and what may be approved is.
	Active bool
	// Problem that keeps us from approving; nil when there is none, or nothing is known yet.
	Problem *input.GuestProblem
	// Beyond says what of the hosted cluster is more than is kept, and what that means; it does not end approving.
	Beyond []string
	// Pending are the CSRs of kubelets that no rule lets pass now, as far as they are well formed.
	Pending int
}

// Reasons of a problem beside those of input.GuestProblem.
const (
	// ManagementUnreachable: the DPUs cannot be read, so that nothing may be approved.
	ManagementUnreachable = "ManagementUnreachable"
	// ApprovalRefused: the hosted cluster does not take our approvals.
	ApprovalRefused = "ApprovalRefused"
)

// DPUs are the facts about cards that decisions need.
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
