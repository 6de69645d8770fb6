package leasecli

import (
	"context"
	"net/netip"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cldmnky/oooi/internal/dhcp/lease"
	"github.com/cldmnky/oooi/internal/dhcp/leaselog"
	"github.com/cldmnky/oooi/internal/dhcp/pool"
	"github.com/cldmnky/oooi/internal/moving/leasefile"
)

var (
	mine   = lease.Client{MAC: "52:54:00:00:00:01"}
	theirs = lease.Client{MAC: "52:54:00:00:00:02"}
	now    = time.Now().UTC().Truncate(time.Second)
)

// imports an entry of the address beside a record, really or for trial, and returns what became of both.
func imports(t *testing.T, has lease.Record, e leasefile.Entry, trial bool) (Count, lease.Record) {
	g := NewWithT(t)
	log, err := leaselog.Open(filepath.Join(t.TempDir(), "leases"), nothing, func(error) {})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = log.Close() })
	if has.IP = address; has.Client.Known() {
		has, err = log.Create(t.Context(), has)
		g.Expect(err).NotTo(HaveOccurred())
	}
	i := Importing{Store: log, Now: now, Instances: []netip.Addr{first, second}, Config: pool.Config{LeaseTime: time.Hour}}
	i.Config.Network.Subnet = netip.MustParsePrefix("192.168.77.0/24")
	if trial {
		p := Pool{Read: func(ctx context.Context, take func(lease.Record, []lease.Past)) error {
			_, err := log.List(ctx, func(r lease.Record) { take(r, nil) })
			return err
		}}
		i.Store, _, err = p.Trial(t.Context())()
		g.Expect(err).NotTo(HaveOccurred())
	}
	var count Count
	e.IP = address
	g.Expect(i.All(t.Context(), []leasefile.Entry{e}, &count, func(int, string) {})).To(Succeed())
	if trial {
		after, _ := log.Get(t.Context(), address)
		g.Expect(after.Version).To(Equal(has.Version), "a trial writes nothing")
	}
	after, _ := i.Store.Get(t.Context(), address)
	return count, after
}

// Who had an address last week is asked of the cluster that the leases were carried to.
func TestALeaseIsHeldSinceItsFileSays(t *testing.T) {
	g, e := NewWithT(t), leasefile.Entry{Client: mine, Ends: now.Add(time.Hour)}
	for since, want := range map[time.Time]time.Time{{}: now, now.Add(-7 * 24 * time.Hour): now.Add(-7 * 24 * time.Hour), now.Add(time.Hour): now} {
		e.Since = since
		_, after := imports(t, lease.Record{}, e, false)
		g.Expect(after.Since.Time()).To(BeTemporally("==", want))
	}
}

func TestAnEntryMeetsWhatOooiHas(t *testing.T) {
	record := func(c lease.Client, state lease.State, ends time.Duration, dropped ...netip.Addr) lease.Record {
		return lease.Record{Client: c, State: state, Horizon: now.Add(ends), Expires: now.Add(ends), Dropped: dropped}
	}
	ours := leasefile.Entry{Client: mine, Ends: now.Add(2 * time.Hour)}
	machines := leasefile.Entry{Client: mine, Ends: now.Add(-time.Hour), VM: true}
	ended := leasefile.Entry{Client: mine, Ends: now.Add(-time.Hour)}
	for name, c := range map[string]struct {
		has   lease.Record
		entry leasefile.Entry
		count Count
		who   lease.Client
		ends  time.Duration
	}{
		"nothing":                             {lease.Record{}, ours, Count{Leased: 1}, mine, 2 * time.Hour},
		"a later end":                         {record(mine, lease.Bound, 3*time.Hour), ours, Count{Already: 1}, mine, 3 * time.Hour},
		"an earlier end":                      {record(mine, lease.Bound, time.Hour), ours, Count{Leased: 1}, mine, 2 * time.Hour},
		"another client":                      {record(theirs, lease.Bound, time.Hour), ours, Count{Refused: 1}, theirs, time.Hour},
		"a release of the client":             {record(mine, lease.Released, time.Hour), ours, Count{Leased: 1}, mine, 2 * time.Hour},
		"a release that one has not dropped":  {record(theirs, lease.Released, time.Hour, first), ours, Count{Refused: 1}, theirs, time.Hour},
		"a release that all have dropped":     {record(theirs, lease.Released, time.Hour, first, second), ours, Count{Leased: 1}, mine, 2 * time.Hour},
		"nothing, of a machine":               {lease.Record{}, machines, Count{Leased: 1}, mine, 2 * time.Hour},
		"what it has of a machine already":    {record(mine, lease.Bound, time.Hour), machines, Count{Already: 1}, mine, time.Hour},
		"nothing, and the lease has ended":    {record(theirs, lease.Bound, time.Hour), ended, Count{Ended: 1}, theirs, time.Hour},
		"a declined address is no one's here": {record(theirs, lease.Declined, time.Hour), ours, Count{Refused: 1}, theirs, time.Hour},
	} {
		for _, trial := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				g := NewWithT(t)
				count, after := imports(t, c.has, c.entry, trial)
				g.Expect(count).To(Equal(c.count))
				g.Expect(after.Client).To(Equal(c.who))
				g.Expect(after.Horizon).To(BeTemporally("==", now.Add(c.ends)))
				if c.count.Leased > 0 {
					g.Expect(after.State).To(Equal(lease.Bound))
				}
			})
		}
	}
}
