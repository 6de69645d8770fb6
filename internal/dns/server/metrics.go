package server

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// The metrics are in the default registry, beside those of CoreDNS' cache and forwarder.
var (
	queries = promauto.NewCounterVec(prometheus.CounterOpts{
		Name: "oooi_dns_queries_total",
		Help: "Queries by the view that they arrived on and the rule that decided their answer.",
	}, []string{"view", "rule"})
	seconds = promauto.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "oooi_dns_query_seconds",
		Help:    "Time from a query to its answer, by view and rule.",
		Buckets: prometheus.ExponentialBuckets(0.0001, 4, 9),
	}, []string{"view", "rule"})
)
