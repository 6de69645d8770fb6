package leasecli

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/cldmnky/oooi/internal/dhcp/lease"
)

// Releasing is a lease to release.
type Releasing struct {
	Store lease.Store
	IP    netip.Addr
	// Exists says whether a virtual machine exists. An error says why that cannot be told.
	Exists func(context.Context, lease.VM) (bool, error)
	// Now is when it is released, by the clock of the leases' DHCP server: a workstation's may be off.
	Now time.Time
	// Instances are those that have to drop the lease; none for a lease file, which no daemon has open.
	Instances []netip.Addr
}

// patience is how long Release waits for the instances, which drop a lease within a second.
var patience = 15 * time.Second

// Release marks the lease as released, and waits until its address is free (dhcp-rules.md#lease-7). tell hears what has been done. An error says
// why the address is not free.
func (r Releasing) Release(ctx context.Context, tell func(string)) error {
	was, err := r.Store.Get(ctx, r.IP)
	if errors.Is(err, lease.ErrNotFound) {
		return fmt.Errorf("%s has no lease: there is nothing to release", r.IP)
	}
	if err != nil {
		return err
	}
	if was.State != lease.Released {
		if err := r.mark(ctx, was); err != nil {
			return err
		}
		tell(fmt.Sprintf("%s of %s is released", r.IP, was.Client))
	}
	return r.dropped(ctx, was.Client, tell)
}

func (r Releasing) mark(ctx context.Context, was lease.Record) error {
	if was.VM.UID != "" && was.State == lease.Bound {
		exists, err := r.Exists(ctx, was.VM)
		if err != nil {
			return fmt.Errorf("%s is leased to VirtualMachine %s/%s, and whether that exists is not known: %w", r.IP, was.VM.Namespace, was.VM.Name, err)
		}
		if exists {
			return fmt.Errorf("%s is leased to VirtualMachine %s/%s, which exists and would get it again: delete the machine, or reserve the address for the machine that needs it and restart both", r.IP, was.VM.Namespace, was.VM.Name)
		}
	}
	now := was
	now.State, now.Dropped, now.Since = lease.Released, nil, lease.SecondsOf(r.Now)
	_, err := r.Store.Update(ctx, now)
	if errors.Is(err, lease.ErrConflict) {
		return fmt.Errorf("the lease of %s has just changed: look at it, and try again", r.IP)
	}
	return err
}

// dropped waits until every instance has forgotten the binding.
func (r Releasing) dropped(ctx context.Context, holder lease.Client, tell func(string)) error {
	missing := r.Instances
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		now, err := r.Store.Get(ctx, r.IP)
		switch {
		case errors.Is(err, lease.ErrNotFound):
			missing = nil
		case err != nil:
			return false, err
		case now.State != lease.Released:
			return false, fmt.Errorf("%s was asked for again, and is %s to %s now: that machine runs", r.IP, strings.ToLower(string(now.State)), now.Client)
		default:
			missing = slices.DeleteFunc(slices.Clone(r.Instances), func(i netip.Addr) bool { return slices.Contains(now.Dropped, i) })
		}
		return len(missing) == 0, nil
	})
	if wait.Interrupted(err) {
		return fmt.Errorf("%s is released, and not free yet: instance %s has not dropped it; it is free once that runs, or horizon and grace are over (oooi leases show %s)", r.IP, strings.Join(texts(missing), " and "), r.IP)
	}
	if err == nil {
		tell(fmt.Sprintf("%s is free; if %s still runs, it gets it again at its next renewal, unless another has it by then", r.IP, holder))
	}
	return err
}
