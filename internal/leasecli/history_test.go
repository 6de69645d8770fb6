package leasecli

import (
	"bytes"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cldmnky/oooi/internal/dhcp/lease"
)

func hour(n int) time.Time { return time.Date(2026, 11, 24, n, 0, 0, 0, time.UTC) }

// had is an address that was mine from 1 to 3, theirs from 5 to 6, and is mine from 8 on, with a horizon at 10.
func had() Lease {
	return Lease{
		Record: lease.Record{IP: address, Client: mine, Hostname: "w", VM: machine, State: lease.Bound, Since: lease.SecondsOf(hour(8)), Horizon: hour(10)},
		Past: []lease.Past{
			{Client: mine, From: hour(1), Until: hour(3), End: lease.EndReleased},
			{Client: theirs, From: hour(5), Until: hour(6), End: lease.EndExpired},
		},
	}
}

// An admin pastes what a switch or Windows shows.
func TestAHardwareAddressIsFoundInEachNotation(t *testing.T) {
	l := had()
	l.Client.MAC = "52:54:00:00:00:0a"
	for _, who := range []string{"52:54:00:00:00:0a", "52-54-00-00-00-0A", "5254.0000.000a", "52:54:00:00:00:0A"} {
		NewWithT(t).Expect(Matching([]Lease{l}, who)).To(HaveLen(1), who)
	}
	NewWithT(t).Expect(Matching([]Lease{l}, "52-54-00-00-00-0b")).To(BeEmpty())
}

func TestWhoHadAnAddress(t *testing.T) {
	released, unknown, full, fresh := had(), had(), had(), had()
	released.State = lease.Released
	unknown.Past[1].From = time.Time{}
	for len(full.Past) < lease.Kept {
		full.Past = append(full.Past, full.Past[1])
	}
	fresh.Past = nil
	never := Lease{Record: lease.Record{IP: address, State: lease.Released}}
	for name, c := range map[string]struct {
		of   Lease
		at   time.Time
		had  lease.Client
		says string
	}{
		"from the moment it was leased":    {of: had(), at: hour(1), had: mine},
		"to the one in which it ended":     {had(), hour(3), lease.Client{}, "52:54:00:00:00:01 had it until 2026-11-24T03:00:00Z; 52:54:00:00:00:02 got it at 2026-11-24T05:00:00Z"},
		"another":                          {of: had(), at: hour(5), had: theirs},
		"who has it":                       {of: had(), at: hour(9), had: mine},
		"whose time is over":               {had(), hour(10), lease.Client{}, "the lease of 52:54:00:00:00:01 was over at 2026-11-24T10:00:00Z, and no other client has got it since"},
		"who gave it back":                 {released, hour(9), lease.Client{}, "52:54:00:00:00:02 had it until 2026-11-24T06:00:00Z"},
		"before the first":                 {had(), hour(0), lease.Client{}, "its record begins at 2026-11-24T01:00:00Z, with a lease of 52:54:00:00:00:01"},
		"before the only one":              {fresh, hour(7), lease.Client{}, "its record begins at 2026-11-24T08:00:00Z, with a lease of 52:54:00:00:00:01"},
		"before the first that is kept":    {full, hour(0), lease.Client{}, "of an address the last 16 leases that have ended are kept, and they begin at 2026-11-24T01:00:00Z; earlier ones are in the log of the DHCP pods"},
		"since when is not known":          {unknown, hour(4), lease.Client{}, "it is not known since when 52:54:00:00:00:02 had it: an older release leased it"},
		"nobody ever":                      {never, hour(4), lease.Client{}, "it was never leased"},
		"after what is not known, for one": {of: unknown, at: hour(9), had: mine},
	} {
		t.Run(name, func(t *testing.T) {
			holding, why := At(c.of, c.at)
			NewWithT(t).Expect(holding.Client).To(Equal(c.had))
			NewWithT(t).Expect(why).To(Equal(c.says))
		})
	}
}

func TestAHolderAndATimelineAreTold(t *testing.T) {
	g, out := NewWithT(t), &bytes.Buffer{}
	for _, at := range []int{5, 8} {
		holding, _ := At(had(), hour(at))
		g.Expect(holding.Tell(out)).To(Succeed())
	}
	unknown := had()
	unknown.Past[0].From = time.Time{}
	g.Expect(Timeline(out, History([]Lease{unknown}))).To(Succeed())
	g.Expect(out.String()).To(Equal(`Address:           192.168.77.20
Hardware address:  52:54:00:00:00:02
From:              2026-11-24T05:00:00Z
Until:             2026-11-24T06:00:00Z
Ended:             Expired
Address:           192.168.77.20
Hardware address:  52:54:00:00:00:01
Host name:         w
Virtual machine:   vms/worker-1
From:              2026-11-24T08:00:00Z
Until:             it has it still
IP             CLIENT             HOSTNAME  VM        FROM                  UNTIL                 ENDED     SERVER
192.168.77.20  52:54:00:00:00:01  -         -         ?                     2026-11-24T03:00:00Z  Released  -
192.168.77.20  52:54:00:00:00:02  -         -         2026-11-24T05:00:00Z  2026-11-24T06:00:00Z  Expired   -
192.168.77.20  52:54:00:00:00:01  w         worker-1  2026-11-24T08:00:00Z  -                     -         -
`))
	g.Expect(Of(History([]Lease{had()}), "52:54:00:00:00:02")).To(HaveLen(1))
	g.Expect(Of(History([]Lease{had()}), "192.168.77.20")).To(HaveLen(3))
	g.Expect(Of(History([]Lease{had()}), "192.168.77.2")).To(BeEmpty())
}
