package daemon

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
)

// resultsOf are the successes by address, and how many good answers were measured.
func resultsOf(t *testing.T, m *ProbeMetrics) (success map[string]float64, good uint64) {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(m)
	families, err := registry.Gather()
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	success = map[string]float64{}
	for _, family := range families {
		for _, one := range family.GetMetric() {
			if family.GetName() == "success" {
				success[one.GetLabel()[0].GetValue()] = one.GetGauge().GetValue()
			}
			good += one.GetHistogram().GetSampleCount()
		}
	}
	return success, good
}

// What stands still costs one probe its patience, and neither ends the round nor delays the next.
func TestAnInstanceThatStandsStillIsToldOfAfterOneRound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, m := NewWithT(t), NewProbeMetrics("success", "took", "instance")
		hangs := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		answers := func(context.Context) error { return nil }
		second := hangs
		p := &Prober{Metrics: m, Pause: ProbePause, Log: slog.New(slog.DiscardHandler), Probes: func() []Probe {
			return []Probe{{"dns-udp", netip.MustParseAddr("192.0.2.1"), second}, {"dns-udp", netip.MustParseAddr("192.0.2.2"), answers}}
		}}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- p.Run(ctx) }()
		time.Sleep(ProbePause + probePatience)
		synctest.Wait()
		success, good := resultsOf(t, m)
		g.Expect(success).To(Equal(map[string]float64{"192.0.2.1": 0, "192.0.2.2": 1}))
		g.Expect(good).To(Equal(uint64(1)), "what failed took no time")
		second = answers
		time.Sleep(ProbePause - probePatience)
		synctest.Wait()
		success, good = resultsOf(t, m)
		g.Expect(success).To(Equal(map[string]float64{"192.0.2.1": 1, "192.0.2.2": 1}))
		g.Expect(good).To(Equal(uint64(3)))
		stop()
		g.Expect(<-ended).To(Succeed())
	})
}

func TestAFailureIsSaidTheSameEachTime(t *testing.T) {
	g := NewWithT(t)
	for _, port := range []int{40001, 40002} {
		from := &net.UDPAddr{IP: net.IP{10, 0, 0, 1}, Port: port}
		g.Expect(Fault(&net.OpError{Op: "read", Addr: from, Err: errors.New("no route to host")})).To(Equal("no route to host"))
		g.Expect(Fault(&net.OpError{Op: "read", Addr: from, Err: os.ErrDeadlineExceeded})).To(Equal("nothing came within 4s"))
	}
	g.Expect(Fault(errors.New("REFUSED without authority"))).To(Equal("REFUSED without authority"))
}
