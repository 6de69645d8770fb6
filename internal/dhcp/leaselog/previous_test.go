package leaselog

import (
	"bytes"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cldmnky/oooi/internal/dhcp/lease"
)

// Commit f911f69 made testdata/previous.leases.
func TestAFileOfThePreviousTreeIsReadWhole(t *testing.T) {
	g, path, said := NewWithT(t), filepath.Join(t.TempDir(), "leases"), &bytes.Buffer{}
	content, err := os.ReadFile("testdata/previous.leases")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(os.WriteFile(path, content, 0o600)).To(Succeed())
	l, err := Open(path, slog.New(slog.NewTextHandler(said, nil)), func(error) {})
	g.Expect(err).NotTo(HaveOccurred())
	defer func() { g.Expect(l.Close()).To(Succeed()) }()
	g.Expect(said.String()).To(BeEmpty(), "it lacks only the end that we write since")

	at, ip := time.Date(2026, 11, 24, 11, 0, 0, 123456000, time.UTC), netip.MustParseAddr
	var all []lease.Record
	_, err = l.List(t.Context(), func(r lease.Record) { all = append(all, r) })
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(all).To(ConsistOf(lease.Record{
		IP: ip("192.168.100.43"), Client: lease.Client{MAC: "52:54:00:00:01:01"}, ClientID: "ff:00:00:01:01:00:01:00:01", Hostname: "worker-1",
		State: lease.Bound, Horizon: at.Add(24 * time.Hour), Expires: at.Add(24 * time.Hour),
		VM: lease.VM{Namespace: "clusters-c1", Name: "worker-1", UID: "vm-1"}, Dropped: []netip.Addr{ip("192.168.100.44")}, Version: 1,
	}, lease.Record{
		IP: ip("192.168.100.45"), Client: lease.Client{ID: "ff:00:00:01:02"}, State: lease.Bound, Horizon: at.Add(time.Hour), Expires: at.Add(time.Hour), Version: 2,
	}, lease.Record{
		IP: ip("192.168.100.46"), State: lease.Declined, Horizon: at.Add(time.Hour), Expires: at.Add(time.Hour), Version: 3,
	}, lease.Record{
		IP: ip("192.168.100.47"), Client: lease.Client{MAC: "52:54:00:00:01:02"}, State: lease.Released, Horizon: at, Version: 4,
	}))
}
