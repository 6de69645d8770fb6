package leasekube

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/dhcp/lease"
)

// ListPast gives all records to take, each with its past.
func (s *Store) ListPast(ctx context.Context, take func(lease.Record, []lease.Past)) error {
	_, err := s.list(ctx, func(object *v1alpha1.DHCPLease) {
		s.understood(func(r lease.Record) { take(r, past(object.Spec.History)) })(object)
	})
	return err
}

// succeeded is the history of an object after the write of a record.
func (s *Store) succeeded(was *v1alpha1.DHCPLease, r lease.Record) ([]v1alpha1.FormerLease, error) {
	record, err := s.Record(was)
	return History(lease.Succession(past(was.Spec.History), record, r)), err
}

// History converts the past of an address to that of a DHCPLease.
func History(past []lease.Past) (all []v1alpha1.FormerLease) {
	for _, p := range past {
		all = append(all, former(p))
	}
	return all
}

func former(p lease.Past) v1alpha1.FormerLease {
	f := v1alpha1.FormerLease{
		MAC: v1alpha1.MACAddress(p.Client.MAC), ClientID: p.ClientID, Hostname: p.Hostname, VMRef: referenceTo(p.VM),
		FromTime: timeOf(p.From), UntilTime: metav1.NewTime(p.Until), Ended: v1alpha1.LeaseEnd(p.End),
	}
	if p.Client.ID != "" {
		f.ClientID = p.Client.ID
	}
	return f
}

func past(history []v1alpha1.FormerLease) (all []lease.Past) {
	for _, f := range history {
		all = append(all, ended(f))
	}
	return all
}

func ended(f v1alpha1.FormerLease) lease.Past {
	p := lease.Past{
		Client: ClientOf(f.MAC, f.ClientID), ClientID: f.ClientID, Hostname: f.Hostname, VM: machineOf(f.VMRef), Until: f.UntilTime.UTC(), End: lease.End(f.Ended),
	}
	if f.FromTime != nil {
		p.From = f.FromTime.UTC()
	}
	return p
}

// ClientOf is the key of a client: its client identifier counts only without a MAC address.
func ClientOf(mac v1alpha1.MACAddress, clientID string) lease.Client {
	if mac == "" {
		return lease.Client{ID: clientID}
	}
	return lease.Client{MAC: string(mac)}
}

func timeOf(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	return &metav1.Time{Time: t}
}

func referenceTo(vm lease.VM) *v1alpha1.VMReference {
	if vm.UID == "" {
		return nil
	}
	return &v1alpha1.VMReference{Namespace: v1alpha1.ObjectName(vm.Namespace), Name: v1alpha1.ObjectName(vm.Name), UID: types.UID(vm.UID)}
}

func machineOf(r *v1alpha1.VMReference) lease.VM {
	if r == nil {
		return lease.VM{}
	}
	return lease.VM{Namespace: string(r.Namespace), Name: string(r.Name), UID: string(r.UID)}
}
