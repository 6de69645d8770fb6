package bounded

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var (
	readBytes = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "oooi_hosted_cluster_read_bytes_total",
		Help: "Bytes that were read from a hosted API server: server (host:port of the control plane's Service). Of all together 16 MiB a second are read, of one 8.",
	}, []string{"server"})
	lateObjects = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "oooi_hosted_cluster_late_objects_total",
		Help: "Objects of a hosted API server that waited to be taken in, because it sent more than its share: server (host:port of the control plane's Service). It has 250 a second, after 40000.",
	}, []string{"server"})
)

func init() { metrics.Registry.MustRegister(readBytes, lateObjects) }
