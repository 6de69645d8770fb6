package dns

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cldmnky/oooi/internal/dns/server"
	"github.com/cldmnky/oooi/internal/stages"
	"github.com/cldmnky/oooi/internal/testkit/manyleases"
)

// The daemon's container has 256 MiB, and the volume of its copy, which is written beside the former one, 64 (internal/plan/workload).
func TestTheNamesOfTheLargestPoolFit(t *testing.T) {
	g, dir := NewWithT(t), t.TempDir()
	before := manyleases.Memory()
	book := newLeaseBook(dir, time.Now, slog.New(slog.DiscardHandler))
	answers := server.New()
	t.Cleanup(answers.Close)
	published := make(chan error, 100)
	workers := stages.New(manyleases.Client(t), manyleases.Namespace, book.log)
	ctx, end := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { workers.Follow(ctx, manyleases.Infra, book) })
	running.Go(func() {
		_ = book.follow(ctx, func() error {
			in, err := IntentOf(object("192.168.100.4"), book.promised())
			if err == nil {
				err = answers.Say(in)
			}
			if len(in.Leases) == manyleases.Count {
				published <- err
			}
			return err
		})
	})
	g.Eventually(published, time.Minute).Should(Receive(BeNil()))
	copied := filepath.Join(dir, "leases.json")
	g.Eventually(func() (int64, error) {
		file, err := os.Stat(copied)
		if err != nil {
			return 0, err
		}
		return file.Size(), nil
	}, time.Minute).Should(And(BeNumerically(">", 1<<20), BeNumerically("<", 32<<20)))
	file, err := os.Stat(copied)
	g.Expect(err).NotTo(HaveOccurred())
	end()
	running.Wait()
	live := manyleases.Memory()
	runtime.KeepAlive(workers)
	runtime.KeepAlive(book)
	t.Logf("%d leases: %d MiB, their copy %d MiB", manyleases.Count, live-before, file.Size()>>20)
	g.Expect(live - before).To(BeNumerically("<", 140))
}
