package apply

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var writes = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "oooi_manager_writes_total",
	Help: "Objects that the manager applied or deleted, by verb and kind. It stands still while nothing changes.",
}, []string{"verb", "kind"})

func init() { metrics.Registry.MustRegister(writes) }

func written(verb, kind string) { writes.WithLabelValues(verb, kind).Inc() }
