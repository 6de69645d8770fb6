package boot_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/cldmnky/oooi/internal/boot"
)

// boots are how many an Infra counts at a stage, and the sum of their seconds.
func boots(g Gomega, infra, stage string) (uint64, float64) {
	m := &dto.Metric{}
	g.Expect(boot.Times().WithLabelValues(infra, stage).(prometheus.Metric).Write(m)).To(Succeed())
	return m.Histogram.GetSampleCount(), m.Histogram.GetSampleSum()
}

func series() int {
	all := make(chan prometheus.Metric, 10)
	boot.Times().Collect(all)
	return len(all)
}

func TestABootIsCountedUpToThreeHours(t *testing.T) {
	g := NewWithT(t)
	boot.Times().Reset()
	boot.WillCount("default/none", boot.LeaseToIgnition)
	g.Expect(series()).To(Equal(1), "an increase from 0 is one")
	boot.Count("default/none", boot.LeaseToIgnition, boot.Longest+time.Second)
	n, _ := boots(g, "default/none", boot.LeaseToIgnition)
	g.Expect(n).To(BeZero(), "it is a worker that begins anew")
	boot.Count("default/none", boot.LeaseToIgnition, -time.Second)
	n, sum := boots(g, "default/none", boot.LeaseToIgnition)
	g.Expect(n).To(BeEquivalentTo(1))
	g.Expect(sum).To(BeZero(), "two nodes' clocks differ")
	boot.Forget("default/none", boot.LeaseToReady)
	g.Expect(series()).To(Equal(1))
	boot.Forget("default/none", boot.LeaseToIgnition)
	g.Expect(series()).To(BeZero())
}
