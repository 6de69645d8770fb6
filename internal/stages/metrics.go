package stages

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

var (
	written = promauto.NewCounter(prometheus.CounterOpts{Name: "oooi_stages_written_total", Help: "Writes of what was seen of a worker to its lease's status."})
	dropped = promauto.NewCounter(prometheus.CounterOpts{Name: "oooi_stages_dropped_total", Help: "Workers of which something was seen and not written: too many waited, or the write failed."})
)

// Metrics are in the default registry, and are for others that are served.
func Metrics() []prometheus.Collector { return []prometheus.Collector{written, dropped} }
