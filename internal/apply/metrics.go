package apply

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var writes = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "oooi_manager_writes_total",
	Help: "Objects that the manager applied or deleted, by verb and kind. It stands still while nothing changes.",
}, []string{"verb", "kind"})

func init() { metrics.Registry.MustRegister(writes) }

// written counts a write, and logs it beside the object for which it is made.
func written(ctx context.Context, verb, kind string, o client.Object) {
	writes.WithLabelValues(verb, kind).Inc()
	logf.FromContext(ctx).Info("written", "verb", verb, "object", kind+" "+client.ObjectKeyFromObject(o).String())
}
