// Package leasekube keeps leases as DHCPLease objects: the object of an address is both its lock and its record. It is written by Create, or by
// Update with the version that was read; never by Apply, Patch or an unconditioned Delete (dhcp-rules.md#lease-1).
package leasekube

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/daemon"
	"github.com/cldmnky/oooi/internal/dhcp/lease"
	"github.com/cldmnky/oooi/internal/names"
)

// Store is the leases of one DHCPServer.
type Store struct {
	Client    client.Client
	Namespace string
	Server    string
	// Labels of every lease. They say whose it is, since a lease must have no ownerReference (dhcp-rules.md#lease-13).
	Labels func() map[string]string
	Log    *slog.Logger
}

var _ lease.Store = (*Store)(nil)

// selected are the list options of this server's leases: by field, since the labels of a restored backup may be stale.
func (s *Store) selected() []client.ListOption {
	return []client.ListOption{client.InNamespace(s.Namespace), client.MatchingFields{v1alpha1.LeaseFieldServer: s.Server}}
}

// Create implements lease.Store.
func (s *Store) Create(ctx context.Context, r lease.Record) (lease.Record, error) {
	object := s.object(r)
	object.ResourceVersion = ""
	err := s.Client.Create(ctx, object)
	if apierrors.IsAlreadyExists(err) {
		return lease.Record{}, fmt.Errorf("%w: %s", lease.ErrExists, object.Name)
	}
	return s.stored(object, err)
}

// Update implements lease.Store. It reads the object before, for its history: the daemon has no memory for that of all addresses.
func (s *Store) Update(ctx context.Context, r lease.Record) (lease.Record, error) {
	was, err := s.read(ctx, r.IP)
	if errors.Is(err, lease.ErrNotFound) {
		return lease.Record{}, fmt.Errorf("%w: %w", lease.ErrConflict, err)
	}
	if err != nil {
		return lease.Record{}, err
	}
	object := s.object(r)
	keepOthers(object, was)
	if object.Spec.History, err = s.succeeded(was, r); err != nil {
		return lease.Record{}, err
	}
	err = s.Client.Update(ctx, object)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return lease.Record{}, fmt.Errorf("%w: %s", lease.ErrConflict, object.Name)
	}
	return s.stored(object, err)
}

// keepOthers keeps what others have written on a lease, such as a label by which a backup selects it. Only ownerReferences do not stay
// (dhcp-rules.md#lease-13).
func keepOthers(object, was *v1alpha1.DHCPLease) {
	labels := map[string]string{}
	for key, value := range was.Labels {
		if !slices.Contains(names.Labels, key) {
			labels[key] = value
		}
	}
	maps.Copy(labels, object.Labels)
	object.Labels, object.Annotations, object.Finalizers = labels, was.Annotations, was.Finalizers
}

// Trial asks the API server by a dry run whether it would refuse a new lease. A lease that exists already would be accepted.
func (s *Store) Trial(ctx context.Context) error {
	object := s.object(lease.Record{IP: netip.IPv4Unspecified(), Client: lease.Client{MAC: "02:00:00:00:00:00"}, State: lease.Bound, Horizon: time.Now()})
	object.ResourceVersion = ""
	if err := s.Client.Create(ctx, object, client.DryRunAll); !apierrors.IsAlreadyExists(err) {
		return err
	}
	return nil
}

func (s *Store) stored(object *v1alpha1.DHCPLease, err error) (lease.Record, error) {
	if err != nil {
		return lease.Record{}, fmt.Errorf("writing lease %s: %w", object.Name, err)
	}
	return s.Record(object)
}

// Get implements lease.Store. Without a resourceVersion the API server reads with a quorum.
func (s *Store) Get(ctx context.Context, ip netip.Addr) (lease.Record, error) {
	object, err := s.read(ctx, ip)
	if err != nil {
		return lease.Record{}, err
	}
	return s.Record(object)
}

func (s *Store) read(ctx context.Context, ip netip.Addr) (*v1alpha1.DHCPLease, error) {
	object := &v1alpha1.DHCPLease{}
	err := s.Client.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: names.Lease(s.Server, ip)}, object)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("%w: %s", lease.ErrNotFound, ip)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the lease of %s: %w", ip, err)
	}
	return object, nil
}

// pageSize is how many leases are read at once: a list of a /16 as a whole takes more memory than the pod has.
const pageSize = 500

// List implements lease.Store: the leases as they were when the first page was read. An object that is no lease of ours is left out: its address
// is still locked by its name.
func (s *Store) List(ctx context.Context, take func(lease.Record)) (uint64, error) {
	return s.list(ctx, s.understood(take))
}

func (s *Store) list(ctx context.Context, take func(*v1alpha1.DHCPLease)) (uint64, error) {
	version, err := daemon.Pages(&v1alpha1.DHCPLeaseList{}, pageSize, func(page *v1alpha1.DHCPLeaseList, limits ...client.ListOption) error {
		err := s.Client.List(ctx, page, append(limits, s.selected()...)...)
		for i := range page.Items {
			take(&page.Items[i])
		}
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("listing leases: %w", err)
	}
	return strconv.ParseUint(version, 10, 64)
}

// Follow lists with list, which returns what List did, and then tells of changes, until the context ends. It keeps nothing: the table has the leases.
func (s *Store) Follow(ctx context.Context, c client.WithWatch, list func(context.Context) (version uint64, err error), changed, gone func(lease.Record)) {
	daemon.Unkept[*v1alpha1.DHCPLease]{
		List: func(ctx context.Context) (string, error) {
			version, err := list(ctx)
			return strconv.FormatUint(version, 10), err
		},
		Watch: func(ctx context.Context, o client.ListOption) (watch.Interface, error) {
			return c.Watch(ctx, &v1alpha1.DHCPLeaseList{}, append(s.selected(), o)...)
		},
		Changed: s.understood(changed), Gone: s.understood(gone),
	}.Follow(ctx, &v1alpha1.DHCPLease{})
}

// understood reads an object's record for take; one that no daemon of ours wrote it reports.
func (s *Store) understood(take func(lease.Record)) func(*v1alpha1.DHCPLease) {
	return func(object *v1alpha1.DHCPLease) {
		r, err := s.Record(object)
		if err != nil {
			s.Log.Warn("lease not understood", "error", err)
			return
		}
		take(r)
	}
}

func (s *Store) object(r lease.Record) *v1alpha1.DHCPLease {
	return &v1alpha1.DHCPLease{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.Namespace, Name: names.Lease(s.Server, r.IP), Labels: s.Labels(), ResourceVersion: strconv.FormatUint(r.Version, 10),
		},
		Spec: SpecOf(r, s.Server),
	}
}

// SpecOf converts a record of a DHCPServer to the spec of a DHCPLease.
func SpecOf(r lease.Record, server string) v1alpha1.DHCPLeaseSpec {
	spec := v1alpha1.DHCPLeaseSpec{
		IP: v1alpha1.IPv4Address(r.IP.String()), MAC: v1alpha1.MACAddress(r.Client.MAC), ClientID: r.ClientID, Hostname: r.Hostname,
		ServerRef: v1alpha1.ServerReference{Name: v1alpha1.ObjectName(server)}, State: v1alpha1.LeaseState(r.State),
		DurableUntilTime: metav1.NewMicroTime(r.Horizon),
	}
	if r.Client.ID != "" {
		spec.ClientID = r.Client.ID
	}
	if !r.Expires.IsZero() {
		spec.ExpirationTime = r.Expires.UTC().Format(time.RFC3339)
	}
	spec.VMRef = referenceTo(r.VM)
	for _, i := range r.Dropped {
		spec.Dropped = append(spec.Dropped, v1alpha1.IPv4Address(i.String()))
	}
	spec.LastTransitionTime = timeOf(r.Since.Time())
	return spec
}

// Labels of every lease of a server: the Infra's, which the planner put on the DHCPServer (nil: it was not seen yet), and our own.
func Labels(server string, object *v1alpha1.DHCPServer) map[string]string {
	labels := map[string]string{names.LabelServer: server}
	for _, key := range []string{names.LabelInfra, names.LabelInfraNamespace, names.LabelOwnerUID} {
		if object != nil && object.Labels[key] != "" {
			labels[key] = object.Labels[key]
		}
	}
	return labels
}

// Record converts a DHCPLease to a record. An error means that no daemon of ours wrote it.
func (s *Store) Record(object *v1alpha1.DHCPLease) (lease.Record, error) {
	spec := object.Spec
	ip, ipErr := netip.ParseAddr(string(spec.IP))
	version, versionErr := strconv.ParseUint(object.ResourceVersion, 10, 64)
	if err := errors.Join(ipErr, versionErr); err != nil {
		return lease.Record{}, fmt.Errorf("DHCPLease %s: %w", object.Name, err)
	}
	if want := names.Lease(s.Server, ip); object.Name != want {
		return lease.Record{}, fmt.Errorf("DHCPLease %s is of %s and should be named %s; no daemon wrote it, delete it", object.Name, ip, want)
	}
	r := lease.Record{
		IP: ip, Client: ClientOf(spec.MAC, spec.ClientID), ClientID: spec.ClientID, Hostname: spec.Hostname,
		State: lease.State(spec.State), Horizon: spec.DurableUntilTime.UTC(), Version: version, Owner: object.Labels[names.LabelOwnerUID],
	}
	r.VM = machineOf(spec.VMRef)
	if spec.LastTransitionTime != nil {
		r.Since = lease.SecondsOf(spec.LastTransitionTime.Time)
	}
	if at, err := time.Parse(time.RFC3339, spec.ExpirationTime); err == nil {
		r.Expires = at
	}
	for _, i := range spec.Dropped {
		if at, err := netip.ParseAddr(string(i)); err == nil {
			r.Dropped = append(r.Dropped, at)
		}
	}
	return r.Compact(), nil
}
