package guest

import (
	"context"
	"net/netip"
	"reflect"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cldmnky/oooi/internal/csr"
	"github.com/cldmnky/oooi/internal/dpf"
	"github.com/cldmnky/oooi/internal/local"
	"github.com/cldmnky/oooi/internal/plan/input"
)

// FactSource reads DPUs from the management API itself, not from what was seen of it before: an approval cannot be taken back.
type FactSource interface {
	// DPUs of a DPUCluster; others may be among them.
	DPUs(ctx context.Context, cluster types.NamespacedName) ([]dpf.DPU, error)
}

// ApproveWant is where a bridge wants certificates approved.
type ApproveWant struct {
	// Secret with the kubeconfig: HostedCluster.status.kubeconfig. Without a name, there is none yet.
	Secret types.NamespacedName
	// Server that is dialled, https://HOST:PORT. The kubeconfig's own never is.
	Server string
	// Cluster is the DPUCluster.
	Cluster types.NamespacedName
	// API are addresses of the hosted API server, and ServiceNetworks are the hosted Services', which no kubelet may claim.
	API             []netip.Addr
	ServiceNetworks []netip.Prefix
	// NoRebootstrap: a DPU whose Node exists gets no bootstrap certificate.
	NoRebootstrap bool
}

// ApprovalState is how approving stands for a bridge.
type ApprovalState struct {
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

// Approvals approve certificates of kubelets in hosted clusters, one approver for each bridge.
type Approvals struct {
	// Dial opens connections to hosted clusters; local.Dial, unless it is set.
	Dial Dial

	secrets SecretSource
	facts   FactSource
	told    func(bridge types.NamespacedName, n Notice)
	changed func(bridge types.NamespacedName)

	lives[*approver]
}

// NewApprovals approves nothing yet. Told is called after approvals, each as long as they are few, and of each warning, changed when a bridge's ApprovalState
// turned, both from goroutines of that bridge's own.
func NewApprovals(secrets SecretSource, facts FactSource, told func(bridge types.NamespacedName, n Notice), changed func(bridge types.NamespacedName)) *Approvals {
	return &Approvals{
		Dial: local.Dial, secrets: secrets, facts: facts, told: told, changed: changed,
		lives: lives[*approver]{of: map[types.NamespacedName]*approver{}},
	}
}

// See begins to approve for a bridge, or goes on, and tells at once how that stands. DPUs are what is known of them: when they
// change, what waits is decided again. Nothing is approved on their word alone.
func (a *Approvals) See(bridge types.NamespacedName, w ApproveWant, dpus []dpf.DPU) ApprovalState {
	a.mu.Lock()
	defer a.mu.Unlock()
	one := a.of[bridge]
	if (one == nil || !reflect.DeepEqual(one.want, w)) && !a.ended {
		one = a.approver(bridge, w, func(what Notice) {
			if a.told != nil {
				a.told(bridge, what)
			}
		})
		a.begin(bridge, one, one.link(a.secrets), a.changed)
	}
	if one == nil {
		return ApprovalState{}
	}
	return one.sees(DPUs(dpus))
}

func (a *Approvals) approver(bridge types.NamespacedName, w ApproveWant, told func(Notice)) *approver {
	return &approver{
		life: newLife(), by: bridge, want: w, dial: a.Dial, facts: a.facts, told: told,
		warned: map[standing]time.Time{}, served: map[string]*rate.Limiter{}, rejoined: map[string]time.Time{}, events: rate.NewLimiter(rate.Every(eventEvery), eventsAtOnce),
	}
}

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
