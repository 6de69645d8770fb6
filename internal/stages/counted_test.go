package stages

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/boot"
	"github.com/cldmnky/oooi/internal/dhcp/lease"
)

// boots are how many an Infra counts at a stage, and the sum of their seconds.
func boots(g Gomega, infra, stage string) (uint64, float64) {
	m := &dto.Metric{}
	g.Expect(boot.Times().WithLabelValues(infra, stage).(prometheus.Metric).Write(m)).To(Succeed())
	return m.Histogram.GetSampleCount(), m.Histogram.GetSampleSum()
}

// uncounted takes back what a former run of the test counted.
func uncounted(infra string) { boot.Times().DeletePartialMatch(prometheus.Labels{"infra": infra}) }

func after(s v1alpha1.Stage, since time.Time, took time.Duration) v1alpha1.Stage {
	s.FirstTime = metav1.NewMicroTime(since.Add(took))
	return s
}

// Both proxies see a worker, and one of them ends and is made anew: each stage is counted by the write that made it durable.
func TestABootIsCountedOnceByWhoeverWroteIt(t *testing.T) {
	g, s := NewWithT(t), newSite(t, "counted")
	uncounted("default/counted")
	begun := time.Now().Add(-time.Minute).Truncate(time.Second)
	s.since = lease.SecondsOf(begun)
	s.leased()
	refused := after(sight(v1alpha1.StageIgnitionHello, v1alpha1.StageNoTarget, 0), begun, 5*time.Second)
	config := after(sight(v1alpha1.StageIgnitionHello, v1alpha1.StageForwarded, v1alpha1.MuchReceived), begun, 20*time.Second)
	joined := after(sight(v1alpha1.StageKonnectivityHello, v1alpha1.StageForwarded, 0), begun, 50*time.Second)
	s.books[0].Saw(at, refused)
	g.Eventually(s.stage(refused.Name), 20*time.Second).ShouldNot(BeZero())
	for _, each := range []v1alpha1.Stage{config, joined} {
		for _, b := range s.books {
			b.Saw(at, each)
		}
	}
	g.Eventually(s.stage(joined.Name), 20*time.Second).ShouldNot(BeZero())
	anew := New(api, "default", s.books[0].log)
	anew.infra = s.books[0].infra
	g.Expect(anew.write(t.Context(), worker{lease: s.lease().Name, client: mac, saw: []v1alpha1.Stage{config, joined}})).To(Succeed())
	for stage, seconds := range map[string]float64{boot.LeaseToIgnition: 20, boot.LeaseToKonnectivity: 50} {
		g.Eventually(func(g Gomega) { // it is counted once the API server has answered
			n, _ := boots(g, "default/counted", stage)
			g.Expect(n).To(BeEquivalentTo(1), stage)
		}, 20*time.Second).Should(Succeed())
		_, sum := boots(g, "default/counted", stage)
		g.Expect(sum).To(BeNumerically("~", seconds, 0.01), stage)
	}
}

func TestWhatIsNoBootIsNotCounted(t *testing.T) {
	begun := time.Now().Add(-time.Hour)
	config := after(sight(v1alpha1.StageIgnitionHello, v1alpha1.StageForwarded, v1alpha1.MuchReceived), begun, time.Minute)
	handshake := after(sight(v1alpha1.StageIgnitionHello, v1alpha1.StageForwarded, 5000), begun, time.Minute)
	joined := after(sight(v1alpha1.StageKonnectivityHello, v1alpha1.StageForwarded, 0), begun, 2*time.Minute)
	unheard := after(sight(v1alpha1.StageKonnectivityHello, v1alpha1.StageNoTarget, 0), begun, 2*time.Minute)
	since := metav1.NewTime(begun)
	for name, c := range map[string]struct {
		since     *metav1.Time
		told, saw []v1alpha1.Stage
		counts    map[string]time.Duration
	}{
		"a whole boot":  {&since, nil, []v1alpha1.Stage{config, joined}, map[string]time.Duration{boot.LeaseToIgnition: time.Minute, boot.LeaseToKonnectivity: 2 * time.Minute}},
		"in two writes": {&since, []v1alpha1.Stage{config}, []v1alpha1.Stage{joined}, map[string]time.Duration{boot.LeaseToKonnectivity: 2 * time.Minute}},
		"a worker that joined before this was noted":    {&since, nil, []v1alpha1.Stage{joined}, nil},
		"a handshake or a refusal is no config":         {&since, nil, []v1alpha1.Stage{handshake, joined}, nil},
		"nobody is behind konnectivity":                 {&since, []v1alpha1.Stage{config}, []v1alpha1.Stage{unheard}, nil},
		"it was told":                                   {&since, []v1alpha1.Stage{config, joined}, []v1alpha1.Stage{config, joined}, nil},
		"an older release wrote the lease, and no time": {nil, nil, []v1alpha1.Stage{config, joined}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			l := &v1alpha1.DHCPLease{Spec: v1alpha1.DHCPLeaseSpec{MAC: mac, LastTransitionTime: c.since}, Status: v1alpha1.DHCPLeaseStatus{Client: mac, Stages: c.told}}
			times := counted(l, c.saw)
			for stage, took := range times {
				times[stage] = took.Round(time.Second)
			}
			if len(c.counts) == 0 {
				NewWithT(t).Expect(times).To(BeEmpty())
				return
			}
			NewWithT(t).Expect(times).To(Equal(c.counts))
		})
	}
}
