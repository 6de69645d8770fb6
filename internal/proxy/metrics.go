package proxy

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/cldmnky/oooi/internal/boot"
	"github.com/cldmnky/oooi/internal/stages"
)

// metrics are the sidecar's own, then Envoy's.
func (p *Proxy) metrics() http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(
		p.gauge("oooi_proxy_configuration_accepted", "1 while Envoy holds exactly the newest configuration.", func() bool { return p.ads.Verdict().Accepted }),
		p.gauge("oooi_proxy_ready", "1 while nothing keeps the proxy from serving.", func() bool { return p.ready.Problem() == nil }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "oooi_proxy_backends_unanswered", Help: "Backends with no target that answers."}, p.unanswered),
	)
	registry.MustRegister(append(stages.Metrics(), boot.Times(), p.probes)...)
	// Plain text, uncompressed: Envoy's text is appended.
	own := promhttp.HandlerFor(registry, promhttp.HandlerOpts{DisableCompression: true})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Del("Accept")
		own.ServeHTTP(w, r)
		if err := p.envoy.appendMetrics(r.Context(), w); err != nil {
			p.Log.Debug("Envoy's metrics are not passed on", "error", err)
		}
	})
}

func (p *Proxy) gauge(name, help string, holds func() bool) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 {
		if holds() {
			return 1
		}
		return 0
	})
}
