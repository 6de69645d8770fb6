package controller_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/controller"
)

func TestConditionsAreExported(t *testing.T) {
	w := newDPUWorld(t)
	w.creates(w.smallest("i1"))
	w.creates(w.bridge())
	registry := prometheus.NewRegistry()
	registry.MustRegister(controller.Conditions(w.api, w.groups))
	w.Eventually(func() []string { return seriesOf(w, registry) }).Should(ContainElements(
		MatchRegexp("kind=Infra object="+w.ns+"/i1 reason=[A-Za-z]+ status=False type="+v1alpha1.ConditionReady+"$"),
		MatchRegexp("kind=Infra object="+w.ns+"/i1 reason=[A-Za-z]+ status=False type="+v1alpha1.ConditionDegraded+"$"),
		MatchRegexp("kind=Infra object="+w.ns+"/i1 reason=[A-Za-z]+ status=[A-Za-z]+ type="+v1alpha1.ConditionProxyReady+"$"),
		MatchRegexp("kind=DPUHCPBridge object="+w.ns+"/b1 reason=[A-Za-z]+ status=False type="+dpuv1.ConditionReady+"$"),
	))
}

func seriesOf(g Gomega, registry *prometheus.Registry) (series []string) {
	families, err := registry.Gather()
	g.Expect(err).NotTo(HaveOccurred())
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			series = append(series, strings.Join(labels, " "))
		}
	}
	return series
}
