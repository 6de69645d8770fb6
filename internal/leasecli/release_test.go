package leasecli

import (
	"context"
	"errors"
	"net/netip"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cldmnky/oooi/internal/dhcp/lease"
	"github.com/cldmnky/oooi/internal/dhcp/leaselog"
)

var (
	address = netip.MustParseAddr("192.168.77.20")
	first   = netip.MustParseAddr("192.168.77.2")
	second  = netip.MustParseAddr("192.168.77.3")
	machine = lease.VM{Namespace: "vms", Name: "worker-1", UID: "1"}
)

// stored is a store with a lease of the machine.
func stored(t *testing.T) lease.Store {
	log, err := leaselog.Open(filepath.Join(t.TempDir(), "leases"), nothing, func(error) {})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = log.Close() })
	_, err = log.Create(t.Context(), lease.Record{IP: address, Client: lease.Client{MAC: "52:54:00:00:00:01"}, State: lease.Bound, VM: machine, Horizon: time.Now().Add(time.Hour)})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return log
}

func gone(context.Context, lease.VM) (bool, error) { return false, nil }

func quiet(string) {}

func TestTheLeaseOfAMachineThatExistsIsNotReleased(t *testing.T) {
	g, r := NewWithT(t), Releasing{Store: stored(t), Now: time.Now(), IP: address}
	r.Exists = func(_ context.Context, vm lease.VM) (bool, error) { return vm == machine, nil }
	g.Expect(r.Release(t.Context(), quiet)).To(MatchError("192.168.77.20 is leased to VirtualMachine vms/worker-1, which exists and would get it again: delete the machine, or reserve the address for the machine that needs it and restart both"))
	r.Exists = func(context.Context, lease.VM) (bool, error) { return false, errors.New("you may not get it") }
	g.Expect(r.Release(t.Context(), quiet)).To(MatchError("192.168.77.20 is leased to VirtualMachine vms/worker-1, and whether that exists is not known: you may not get it"))
	g.Expect(r.Store.Get(t.Context(), address)).To(HaveField("State", lease.Bound))
}

// Its machine has another address by then, and the host that was found there may be gone.
func TestWhatAMachineDeclinedIsReleasedThoughItExists(t *testing.T) {
	g, r := NewWithT(t), Releasing{Store: stored(t), Now: time.Now(), IP: address}
	r.Exists = func(context.Context, lease.VM) (bool, error) { return true, nil }
	now, err := r.Store.Get(t.Context(), address)
	g.Expect(err).NotTo(HaveOccurred())
	now.State = lease.Declined
	_, err = r.Store.Update(t.Context(), now)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(r.Release(t.Context(), quiet)).To(Succeed())
	g.Expect(r.Store.Get(t.Context(), address)).To(HaveField("State", lease.Released))
}

func TestAReleasedAddressIsNotFreeUntilEveryInstanceSaysSo(t *testing.T) {
	g, r := NewWithT(t), Releasing{Store: stored(t), Now: time.Now(), IP: address, Exists: gone, Instances: []netip.Addr{first, second}}
	done := make(chan error, 1)
	go func() { done <- r.Release(t.Context(), quiet) }()
	dropped(g, r.Store, first)
	g.Consistently(done, time.Second).ShouldNot(Receive())
	dropped(g, r.Store, second)
	g.Eventually(done).WithTimeout(5 * time.Second).Should(Receive(BeNil()))
}

func TestAnInstanceThatDoesNotDropALeaseIsNamed(t *testing.T) {
	g, r := NewWithT(t), Releasing{Store: stored(t), Now: time.Now(), IP: address, Exists: gone, Instances: []netip.Addr{first, second}}
	patience = time.Second
	defer func() { patience = 15 * time.Second }()
	done := make(chan error, 1)
	go func() { done <- r.Release(t.Context(), quiet) }()
	dropped(g, r.Store, first)
	g.Eventually(done).WithTimeout(5 * time.Second).Should(Receive(MatchError("192.168.77.20 is released, and not free yet: instance 192.168.77.3 has not dropped it; it is free once that runs, or horizon and grace are over (oooi leases show 192.168.77.20)")))
}

func TestAnAddressThatIsAskedForAgainIsNotFree(t *testing.T) {
	g, r := NewWithT(t), Releasing{Store: stored(t), Now: time.Now(), IP: address, Exists: gone, Instances: []netip.Addr{first}}
	done := make(chan error, 1)
	go func() { done <- r.Release(t.Context(), quiet) }()
	dropped(g, r.Store, second)
	now, err := r.Store.Get(t.Context(), address)
	g.Expect(err).NotTo(HaveOccurred())
	now.State = lease.Bound
	_, err = r.Store.Update(t.Context(), now)
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(done).WithTimeout(5 * time.Second).Should(Receive(MatchError("192.168.77.20 was asked for again, and is bound to 52:54:00:00:00:01 now: that machine runs")))
}

// dropped waits until the lease is released, and has an instance drop it.
func dropped(g *WithT, store lease.Store, by netip.Addr) {
	g.Eventually(func() error {
		now, err := store.Get(context.Background(), address)
		if err != nil || now.State != lease.Released {
			return errors.Join(errors.New("not released yet"), err)
		}
		now.Dropped = append(now.Dropped, by)
		_, err = store.Update(context.Background(), now)
		return err
	}).Should(Succeed())
}
