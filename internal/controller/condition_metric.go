package controller

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/component"
)

// conditions exports what Ready and Degraded of each Infra and DPUHCPBridge say, and the conditions of an Infra's components, as the cache has it
// when it is scraped. Every replica exports them, the leader or not.
type conditions struct {
	cache  client.Reader
	groups Groups
}

// Conditions is the collector of a manager's cache.
func Conditions(cache client.Reader, groups Groups) prometheus.Collector {
	return conditions{cache, groups}
}

// The object is one label: Prometheus gives "namespace" to the scraped pod's.
var conditionDesc = prometheus.NewDesc("oooi_condition", "1: the status and reason that a condition (Ready, Degraded) of an Infra or DPUHCPBridge has, and of a component of an Infra (DHCPReady, DNSReady, ProxyReady); object is namespace/name.",
	[]string{"kind", "object", "type", "status", "reason"}, nil)

// Describe implements prometheus.Collector.
func (conditions) Describe(to chan<- *prometheus.Desc) { to <- conditionDesc }

// Collect implements prometheus.Collector. While the cache is not there it exports nothing.
func (c conditions) Collect(to chan<- prometheus.Metric) {
	ctx, stop := context.WithTimeout(context.Background(), time.Second) // a list waits until its cache is there
	defer stop()
	if infras := (v1alpha1.InfraList{}); c.groups.VLAN && c.cache.List(ctx, &infras, client.UnsafeDisableDeepCopy) == nil {
		types := conditionsOfInfra()
		for i := range infras.Items {
			collect(to, "Infra", &infras.Items[i], infras.Items[i].Status.Conditions, types...)
		}
	}
	if bridges := (dpuv1.DPUHCPBridgeList{}); c.groups.Bridges != nil && c.cache.List(ctx, &bridges, client.UnsafeDisableDeepCopy) == nil {
		for i := range bridges.Items {
			collect(to, "DPUHCPBridge", &bridges.Items[i], bridges.Items[i].Status.Conditions, dpuv1.ConditionReady)
		}
	}
}

func conditionsOfInfra() []string {
	all := []string{v1alpha1.ConditionReady, v1alpha1.ConditionDegraded}
	for _, c := range component.All {
		all = append(all, c.Ready)
	}
	return all
}

func collect(to chan<- prometheus.Metric, kind string, of client.Object, all []metav1.Condition, types ...string) {
	for _, t := range types {
		if c := meta.FindStatusCondition(all, t); c != nil {
			to <- prometheus.MustNewConstMetric(conditionDesc, prometheus.GaugeValue, 1, kind, of.GetNamespace()+"/"+of.GetName(), t, string(c.Status), c.Reason)
		}
	}
}
